#!/usr/bin/env bash
# The structure of the source: checks its rules and draws it. Needs awk, nm and tsort; drawing needs dot (Graphviz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: scripts/house.sh check [BUILD]            the rules; with BUILD, a folder that drps was built in, also calls
       scripts/house.sh draw FILE.png [FOLDER]   the folders and which includes which, or the files of one folder

The rules:
- A folder has at most 25 sources and headers.
- A header that is not named drps_*.h is included in its own folder alone. Tests and benchmarks may include it.
- A folder includes only folders of layers below its own, and folders of its own module that do not include it.
- Files do not call each other in a circle.
TEXT
}

most_files=25
modules="base net storage partition sched index engine tools"
layers="tools engine index storage,net,partition,sched base" # from the top to the bottom

sources() {
    # shellcheck disable=SC2086  # one word a module
    find $modules -name '*.[ch]' | LC_ALL=C sort
}

# includes: a line "FILE INCLUDED" for each include of a header of the project.
includes() {
    sources | xargs awk '/^#include "/ { split($0, part, "\""); print FILENAME, part[2] }'
}

folder='function folder(path) { sub(/\/[^\/]*$/, "", path); return path }'

# calls BUILD: a line "FILE CALLED" for each source of the library that uses a symbol of another one.
calls() {
    local objects=$1/CMakeFiles/drps.dir
    find "$objects" -name '*.o' | LC_ALL=C sort | xargs nm -A -g | awk -v skip="$objects/" '
        {
            file = $1; sub(/:.*/, "", file); sub(/\.o$/, "", file); file = substr(file, length(skip) + 1)
            if ($(NF - 1) == "U") use[file " " $NF] = 1
            else owner[$NF] = file
        }
        END {
            for (u in use) {
                split(u, part, " ")
                if (part[2] in owner && owner[part[2]] != part[1]) print part[1], owner[part[2]]
            }
        }' | LC_ALL=C sort -u
}

# circles: of lines "FROM TO", those circles that tsort finds, a line each.
circles() {
    { tsort 2>&1 >/dev/null || true; } | sed 's/^tsort: //' | awk '
        /contains a loop/ { if (line) print line; line = ""; next }
        { line = line (line ? ", " : "") $0 }
        END { if (line) print line }'
}

broken=0
# rule TEXT: what breaks a rule comes on standard input, a line each.
rule() {
    local lines
    lines=$(cat)
    if [[ -z $lines ]]; then return; fi
    broken=$((broken + 1))
    echo "$1"
    printf '%s\n' "$lines" | sed 's/^/    /'
}

check() {
    rule "folders of more than $most_files files:" < <(
        sources | awk -v most=$most_files "$folder"'
            { n[folder($0)]++ } END { for (f in n) if (n[f] > most) print f ": " n[f] }')
    rule "private headers that another folder includes:" < <(
        includes | awk "$folder"'
            { name = $2; sub(/.*\//, "", name) }
            name !~ /^drps_/ && folder($1) != folder($2) { print $1 " includes " $2 }')
    rule "includes of a layer that is not below:" < <(
        includes | awk -v layers="$layers" '
            BEGIN {
                n = split(layers, layer, " ")
                for (i = 1; i <= n; i++) {
                    m = split(layer[i], module, ",")
                    for (k = 1; k <= m; k++) depth[module[k]] = i
                }
            }
            {
                from = $1; to = $2; sub(/\/.*/, "", from); sub(/\/.*/, "", to)
                if (from != to && depth[to] <= depth[from]) print $1 " includes " $2
            }')
    rule "folders that include each other in a circle:" < <(
        includes | awk "$folder"'folder($1) != folder($2) { print folder($1), folder($2) }' | circles)
    if [[ -n ${1-} ]]; then
        [[ -d $1/CMakeFiles/drps.dir ]] || { echo "house.sh: $1 holds no build of drps" >&2; exit 2; }
        rule "files that call each other in a circle:" < <(calls "$1" | circles)
    fi
    ((broken == 0))
}

# draw FILE [FOLDER]: an arrow is an include; of two folders, or, in one folder, of two files.
draw() {
    command -v dot >/dev/null || { echo "house.sh: drawing needs dot: apt-get install graphviz" >&2; exit 1; }
    {
        echo 'digraph house { rankdir=TB; nodesep=0.25; ranksep=0.5; node [shape=box, fontname="Helvetica", fontsize=11];'
        echo 'edge [color="#00000060", arrowsize=0.6];'
        if [[ -n ${2-} ]]; then
            includes | awk -v in_folder="$2" "$folder"'
                function file(path) { sub(/.*\//, "", path); sub(/^drps_/, "", path); sub(/\.[ch]$/, "", path); return path }
                folder($1) == in_folder && folder($2) == in_folder && file($1) != file($2) {
                    print "\"" file($1) "\" -> \"" file($2) "\"" }' | LC_ALL=C sort -u
        else
            sources | awk "$folder"'
                { n[folder($0)]++ }
                END {
                    for (f in n) {
                        module = f; sub(/\/.*/, "", module)
                        group[module] = group[module] sprintf("\"%s\" [label=\"%s\\n%d files\"]; ", f, f, n[f])
                    }
                    for (m in group) printf "subgraph \"cluster_%s\" { style=rounded; color=gray; %s}\n", m, group[m]
                }'
            includes | awk "$folder"'
                folder($1) != folder($2) && folder($2) != "base" { print "\"" folder($1) "\" -> \"" folder($2) "\"" }' |
                LC_ALL=C sort -u
            echo 'label="An arrow: the upper folder includes the lower one. Everything may include base, which is left out.";'
        fi
        echo '}'
    } | dot -Tpng -o "$1"
}

case ${1-} in
check) check "${2-}" ;;
draw) draw "${2:?a file for the picture}" "${3-}" ;;
-h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
