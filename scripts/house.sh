#!/usr/bin/env bash
# The structure of the source: checks its rules and draws it. Needs awk, nm and tsort; drawing needs Graphviz.
set -euo pipefail
here=$PWD
tree=$(dirname "${BASH_SOURCE[0]}")/..

usage() {
    cat <<'TEXT'
Usage: scripts/house.sh [-C TREE] check [BUILD]                  the rules; with BUILD, a folder that drps was built in,
                                                                also the one about calls
       scripts/house.sh [-C TREE] draw FILE.png|FILE.svg [FOLDER]
                                                                the folders and which includes which, or the files of one
TREE is the checkout that is looked at; without -C, the one that this script is in.

The rules:
- A folder has at most 25 sources and headers.
- A header that is not named drps_*.h or drps.h is included in its own folder alone. Tests and benchmarks may include it.
- A folder includes only folders of layers below its own, and folders of its own module that do not include it.
- Files do not call each other in a circle.
TEXT
}

most_files=25
modules=(base device net storage partition sched index engine api tools)
layers="tools api engine index storage,net,partition,sched device base" # from the top to the bottom

sources() {
    local module
    for module in "${modules[@]}"; do
        if [[ -d $module ]]; then find "$module" -name '*.[ch]'; fi
    done | LC_ALL=C sort
}

# includes: a line "FILE INCLUDED" for each include of a header of the project.
includes() {
    # shellcheck disable=SC2016  # expanded by awk
    sources | xargs awk '/^#include "/ { split($0, part, "\""); print FILENAME, part[2] }'
}

folder='function folder(path) { sub(/\/[^\/]*$/, "", path); return path }'

# objects FOLDER: the object files of sources that are there: a folder that was built in before has others, too.
objects() {
    find "$1" -name '*.o' | LC_ALL=C sort | while read -r object; do
        source=${object#"$1/"}
        if [[ -e ${source%.o} ]]; then echo "$object"; fi
    done
}

# calls BUILD: a line "FILE CALLED" for each source of the library that uses a symbol of another one.
calls() {
    local objects=$1/CMakeFiles/drps.dir
    objects "$objects" | xargs -r nm -A -g | awk -v skip="$objects/" '
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
    { LC_ALL=C sort -u | tsort 2>&1 >/dev/null || true; } | sed 's/^tsort: //' | awk '
        function tell() { if (line && !told[line]++) print line; line = "" }
        /contains a loop/ { tell(); next }
        { line = line (line ? ", " : "") $0 }
        END { tell() }'
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
            name !~ /^drps[_.]/ && folder($1) != folder($2) { print $1 " includes " $2 }')
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
        local build=$1
        if [[ $build != /* ]]; then build=$here/$build; fi
        [[ -d $build/CMakeFiles/drps.dir ]] || { echo "house.sh: $1 holds no build of drps" >&2; exit 2; }
        rule "files that call each other in a circle:" < <(calls "$build" | circles)
    fi
    ((broken == 0))
}

# folders: the picture of all folders, a box each, in a frame for each module.
folders() {
    sources | awk "$folder"'
        {
            f = folder($0)
            if (!n[f]++) order[++folders] = f
        }
        END {
            for (i = 1; i <= folders; i++) {
                f = order[i]; module = f; name = f
                sub(/\/.*/, "", module); sub(/^[^\/]*\//, "", name)
                box = sprintf("\"%s\" [label=\"%s\\n%d file%s\"%s];", f, name, n[f], n[f] == 1 ? "" : "s",
                              n[f] > most ? ", color=red" : "")
                boxes[module] = boxes[module] box "\n"
            }
            for (m in boxes)
                printf "subgraph \"cluster_%s\" { label=\"%s/\"; bgcolor=\"#f2f2ee\"; color=gray;\n%s}\n", m, m, boxes[m]
        }' most=$most_files
    includes | awk "$folder"'
        { from = folder($1); to = folder($2) }
        from != to && to !~ /^base/ { edge[from, to] = "\"" from "\" -> \"" to "\""; back[from, to] = to SUBSEP from }
        END { for (e in edge) print edge[e] (back[e] in edge ? " [color=red]" : "") }' | LC_ALL=C sort
    printf 'label="An arrow: a folder includes headers of another one; red: each of the two includes the other.\\n'
    printf 'Left out: arrows that others on the way imply, and those to base, which every folder may include.\\n'
    printf 'Red boxes have more than %d files.";\n' $most_files
}

# files FOLDER: the picture of the files of one folder; a source and its header are one.
files() {
    includes | awk -v in_folder="${1%/}" "$folder"'
        function file(path) { sub(/.*\//, "", path); sub(/^drps_/, "", path); sub(/\.[ch]$/, "", path); return path }
        folder($1) == in_folder && folder($2) == in_folder && file($1) != file($2) {
            print "\"" file($1) "\" -> \"" file($2) "\"" }' | LC_ALL=C sort -u
}

draw() {
    local picture=$1
    command -v dot >/dev/null || { echo "house.sh: drawing needs dot: apt-get install graphviz" >&2; exit 1; }
    if [[ $picture != /* ]]; then picture=$here/$picture; fi
    {
        echo 'digraph house { rankdir=TB; nodesep=0.2; ranksep=0.45; newrank=true; fontname="Helvetica"; fontsize=13;'
        echo 'node [shape=box, style=filled, fillcolor=white, fontname="Helvetica", fontsize=12, margin="0.08,0.04"];'
        echo 'edge [color="#404040a0", arrowsize=0.6];'
        if [[ -n ${2-} ]]; then files "$2"; else folders; fi
        echo '}'
    } | tred 2>/dev/null | dot -T"${picture##*.}" -o "$picture"
}

if [[ ${1-} == -C ]]; then
    tree=${2:?a checkout of drps}
    shift 2
fi
cd "$tree"
case ${1-} in
check) check "${2-}" ;;
draw) draw "${2:?a file for the picture}" "${3-}" ;;
-h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
