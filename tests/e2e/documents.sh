#!/usr/bin/env bash
# The documents are held to the tree and the tools:
# - a path that a document names exists, and so does every file that a link leads to;
# - "Where is ...?" of docs/architecture.md names files that have the function, and has the answers that a newcomer looks for;
# - an option that README.md, docs/guide.md or docs/operations.md names is one of a tool's;
# - README.md and docs/architecture.md stay short enough to be read.
# Arguments: the tools' folder, the repository.
set -euo pipefail
tools=$1
cd "$2"
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

documents=(README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md bench/*.md)

# Paths below a folder of the repository, wherever a document names one. A `*` stands for any text, NAME for a file to come.
folders='api|base|net|storage|partition|sched|index|engine|python|tools|tests|bench|docs|examples|scripts|cmake'
checked=0
while IFS=: read -r document path; do
    checked=$((checked + 1))
    compgen -G "$path" >/dev/null || fail "$document names $path, which is not there"
done < <(grep -oHE "(^|[^A-Za-z0-9_./-])($folders)/[A-Za-z0-9_./*-]*[A-Za-z0-9_/*]" "${documents[@]}" |
    sed -E 's/^([^:]*):[^A-Za-z]?/\1:/' | grep -v NAME | LC_ALL=C sort -u)
((checked > 50)) || fail "only $checked paths were found in the documents"

# Links and pictures, relative to the document; the part behind # is a heading of the page, in the form that web pages give it.
headings() {
    grep -E '^#+ ' "$1" | sed -E 's/^#+ //' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 -]//g; s/ /-/g'
}
while IFS=: read -r document target; do
    page=${target%%#*}
    file=$document
    if [[ -n $page ]]; then file=$(dirname "$document")/$page; fi
    if [[ ! -e $file ]]; then
        fail "$document links to $target, which is not there"
    elif [[ $target = *#* ]]; then
        grep -qxF "${target#*#}" <<<"$(headings "$file")" || fail "$document links to $target, which is no heading"
    fi
done < <(grep -oHE '\]\([^)]+\)' "${documents[@]}" | grep -v '://' | sed -E 's/\]\((.*)\)$/\1/')

# Where is ...? Each row of the table has files and a symbol that the first of them defines.
rows=0
while IFS='|' read -r _ what files symbol _; do
    rows=$((rows + 1))
    symbol=$(tr -d '` ' <<<"$symbol")
    for file in $(tr -d '`,' <<<"$files"); do
        if [[ ! -f $file ]]; then
            fail "where is $what: $file is not there"
        elif ! grep -qE "(^|[^A-Za-z0-9_])$symbol([^A-Za-z0-9_]|\$)" "$file"; then
            fail "where is $what: $file has no $symbol"
        fi
    done
done < <(sed -n '/^## Where is/,/^## /p' docs/architecture.md | grep '^| ' | tail -n +3)
((rows >= 15)) || fail "docs/architecture.md says where $rows things are"

# What a newcomer looks for, and the file that docs/architecture.md must name for it.
while IFS='|' read -r file symbol what; do
    grep -qE "^[a-z].*[ *]$symbol\(" "$file" || fail "$what: $file has no function $symbol"
    grep -F "| \`$file\` |" docs/architecture.md | grep -qF "\`$symbol\`" ||
        fail "$what: docs/architecture.md does not name $file and $symbol"
done <<'TEXT'
index/reader/libsvm.c|libsvm_line|a libsvm line is parsed
index/dictionary/dict_place.c|drps_dict_place|a row gets its number
index/windows/cut.c|drps_cut_steps|a window is cut
storage/relay/spill.c|drps_relay_make_room|a row leaves memory
storage/relay/runs/runs_merge.c|drps_runs_merge_some|runs are merged
engine/step/server.c|drps_server_push|a gradient meets its row
net/wire.c|drps_wire_decode|a peer's frame is checked
base/folder/stage.c|drps_stage_commit|a model is renamed into place
TEXT

# Options. Those of other programs and of benchmarks that the pages name are listed here.
foreign=' --install --prefix --allow-run-as-root --oversubscribe --overcommit --mpi --kill-on-bad-exit --requeue --signal --export --only --parallel '
help=$(for tool in index train predict recommend stat import gen top; do "$tools/drps-$tool" --help; done)
help+=$(for kind in ctr classification matrix; do "$tools/drps-gen" --help "$kind"; done)
options=0
while IFS=: read -r document option; do
    options=$((options + 1))
    [[ $foreign = *" $option "* ]] && continue
    grep -qE -- "(^|[ ,(\[])$option([^a-z-]|\$)" <<<"$help" || fail "$document names $option, which no tool has"
done < <(grep -oHE -- '(^|[^A-Za-z0-9-])--[a-z][a-z0-9-]*[a-z0-9]' README.md docs/guide.md docs/operations.md |
    grep -vE 'bench/' | sed -E 's/^([^:]*):[^-]?(--.*)$/\1:\2/' | LC_ALL=C sort -u)
((options > 30)) || fail "only $options options were found in the documents"

# Lengths.
lines=$(wc -l <README.md)
((lines <= 120)) || fail "README.md has $lines lines, not 120 at most"
words=$(wc -w <docs/architecture.md)
((words <= 2000)) || fail "docs/architecture.md has $words words, not 2,000 at most"

((failed == 0)) && echo "$checked paths, $rows places, $options options"
