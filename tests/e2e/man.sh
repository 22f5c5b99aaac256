#!/usr/bin/env bash
# The man pages under groff: no warnings, and all of the text up to the last section (a word like "Ad" at the start of a
# macro's arguments is taken for a macro, and swallows what follows).
. "$(dirname "$0")/lib.sh"

command -v groff >/dev/null || skip "groff is not installed"
for page in "$source"/tools/man/*.[13]; do
    for macros in man mdoc; do # -man finds out by itself that these are mdoc
        groff -"$macros" -ww -Tascii -P-cbou "$page" >page.txt 2>err.txt || fail "$page: $(cat err.txt)"
        [[ ! -s err.txt ]] || fail "groff -$macros $page: $(cat err.txt)"
        last=$(sed -n 's/^\.Sh //p' "$page" | tail -1)
        grep -qx "$last" page.txt || fail "groff -$macros $page: the section '$last' is not there"
        grep -q '[a-z]' <<<"$(sed "1,/^$last\$/d" page.txt)" || fail "groff -$macros $page: nothing is below '$last'"
    done
done
echo "ok man pages"

# --help keeps its two columns: an option that is too long for the left one pushes the text out of the right one.
for tool in gen import index train predict recommend stat top; do
    "$tools/drps-$tool" --help >help.txt || fail "drps-$tool --help failed"
    cat -s help.txt | cmp -s - help.txt || fail "drps-$tool --help: empty lines follow each other"
    awk '/^ {7,}--/ || length > 79 {print; bad = 1} END {exit bad}' help.txt || fail "drps-$tool --help: lines that break the layout"
done
echo "ok help"
