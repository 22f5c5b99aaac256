# Of public headers, a linker's version script: what they declare is exported, all else of the library is not.

# The header without comments, macros and what is in braces: declarations and type definitions, a semicolon after each.
function declarations(text, out, i, c, depth) {
    gsub(/extern "C" *\{/, "", text)
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "{") depth++
        else if (c == "}") { if (--depth == 0) out = out (inline(out) ? ";" : "") }
        else if (depth == 0) out = out c
    }
    return out
}

# The declaration at the end begins with static: its body has no semicolon after it.
function inline(out) {
    sub(/.*;/, "", out)
    return out ~ /^[ \n]*(DRPS_[A-Z_]+[ \n]+)*static/
}

function without_comments(text, out, from) {
    while ((from = index(text, "/*")) > 0) {
        out = out substr(text, 1, from - 1) " "
        text = substr(text, from + 2)
        text = substr(text, index(text, "*/") + 2)
    }
    return out text
}

function name_of(declaration) {
    if (declaration ~ /^[ \n]*(DRPS_[A-Z_]+[ \n]+)*(static|typedef)/) return ""
    if (match(declaration, /drps_[a-z0-9_]+\(/)) return substr(declaration, RSTART, RLENGTH - 1)
    if (declaration ~ /^[ \n]*extern[ \n]/ && match(declaration, /drps_[a-z0-9_]+(\[[^\]]*\])?[ \n]*$/)) {
        declaration = substr(declaration, RSTART)
        sub(/[^a-z0-9_].*/, "", declaration)
        return declaration
    }
    return ""
}

function header_ends(n, i, part, name) {
    n = split(declarations(without_comments(text)), part, ";")
    for (i = 1; i <= n; i++) {
        name = name_of(part[i])
        if (name != "" && !(name in seen)) {
            seen[name] = 1
            names[++count] = name
        }
    }
    text = ""
}

FNR == 1 && NR > 1 { header_ends() }
/^ *#/ || continued { continued = /\\$/; next }
{ text = text $0 "\n" }

END {
    header_ends()
    print "{ global:"
    for (i = 1; i <= count; i++) print "    " names[i] ";"
    print "local: *; };"
}
