# Completion for bash or zsh from a tool's help, so that it has the options that the tool has.
#   drps-train --help | awk -v shell=bash -v tool=drps-train -f completion.awk words.txt -

FNR == NR {
    if ($1 == tool || $1 == "*") {
        option = $2
        if ($1 == tool || !(option in words)) {
            sub(/^[^ ]+ +[^ ]+ +/, "")
            words[option] = $0
        }
    }
    next
}

# "  -o, --output=MODEL         Folder to make"; also --help[=KIND]
/^  (    |-., )--[a-z]/ {
    short = match($0, /^ +-.,/) ? substr($0, RLENGTH - 2, 2) : ""
    match($0, /--[a-z0-9-]+/)
    name = substr($0, RSTART, RLENGTH)
    rest = substr($0, RSTART + RLENGTH)
    value = ""
    if (match(rest, /^\[?=[^ ]+/)) {
        value = substr(rest, 1, RLENGTH)
        optional = value ~ /^\[/
        rest = substr(rest, RLENGTH + 1)
        gsub(/^\[?=|\]$/, "", value)
    } else optional = 0
    sub(/^ +/, "", rest)
    n++
    names[n] = name; shorts[n] = short; values[n] = optional ? "" : value; texts[n] = rest
    next
}
n && substr($0, 1, 29) ~ /^ +$/ && NF { sub(/^ +/, ""); texts[n] = texts[n] (texts[n] ? " " : "") $0; next }

function is_file(value) { return value ~ /^(FILE|DIR|FOLDER|PLAN|MODEL|OLD|RATINGS|DATA)/ }

function bash_completion(i, all, files, name) {
    name = tool
    gsub(/-/, "_", name)
    printf "# bash completion for %s\n_%s() {\n", tool, name
    print "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}"
    print "    # --option=value is three words here."
    print "    if [[ $word = '=' ]]; then word=; elif [[ $option = '=' ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi"
    print "    COMPREPLY=()\n    case $option in"
    for (i = 1; i <= n; i++) {
        if (values[i] == "") continue
        printf("    %s%s)", names[i], (shorts[i] ? " | " shorts[i] : ""))
        if (names[i] in words) printf " mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\") ;;\n", words[names[i]]
        else if (is_file(values[i])) print " mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;"
        else print " ;;"
    }
    print "    *)\n        if [[ $word = -* ]]; then"
    printf "            mapfile -t COMPREPLY < <(compgen -W '"
    for (i = 1; i <= n; i++) printf("%s%s", (i > 1 ? " " : ""), names[i])
    printf "' -- \"$word\")\n        else\n            mapfile -t COMPREPLY < <(compgen %s-f -- \"$word\")\n        fi ;;\n    esac\n}\n",
        (tool == "drps-gen" ? "-W 'ctr classification matrix' " : "")
    printf "complete -o filenames -F _%s %s\n", name, tool
}

function zsh_text(text) {
    gsub("['\\\\:]|\\[|\\]", " ", text)
    gsub(/[`$"]/, "", text)
    gsub(/ +/, " ", text)
    return length(text) > 70 ? substr(text, 1, 67) "..." : text
}

function zsh_completion(i, spec, action) {
    printf "#compdef %s\n_arguments -s \\\n", tool
    for (i = 1; i <= n; i++) {
        spec = names[i] (values[i] == "" ? "" : "=") "[" zsh_text(texts[i]) "]"
        if (values[i] != "") {
            action = names[i] in words ? "(" words[names[i]] ")" : is_file(values[i]) ? "_files" : ""
            spec = spec ":" zsh_text(values[i]) ":" action
        }
        if (shorts[i]) {
            sub(/^--[a-z0-9-]+=?/, "", spec)
            printf "    '(%s %s)'{'%s',%s%s}'%s' \\\n", shorts[i], names[i], shorts[i] (values[i] == "" ? "" : "+"), names[i], (values[i] == "" ? "" : "="), spec
        } else printf "    '%s' \\\n", spec
    }
    print tool == "drps-gen" ? "    '1:kind:(ctr classification matrix)'" : "    '*:file:_files'"
}

END {
    if (!n) exit 1
    if (shell == "bash") bash_completion()
    else zsh_completion()
}
