#!/usr/bin/env bash
# The commands of README.md and docs/guide.md print what these say (scripts/guide.py). Skipped without Python 3.
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3
[[ -x $python ]] || skip "Python 3 is not there"
arguments=(--bin "$tools")
if [[ -d $source/../shared/data ]]; then arguments+=(--data "$source/../shared/data"); fi
"$python" "$source/scripts/guide.py" check "${arguments[@]}" "$source/README.md" "$source/docs/guide.md" ||
    fail "the pages say other things than the tools"

# A page with another number, another word, a line too many, or a command that fails is told.
printf '%s\n' '```console' '$ printf "loss 0.5 in 2 s, 3 MiB\nend\n"' 'loss 0.5 in 7 s, 4 MiB' 'end' '```' >page.md
"$python" "$source/scripts/guide.py" check "${arguments[@]}" page.md >/dev/null || fail "a page that is right is refused"
for change in 's/^loss 0.5/loss 0.6/' 's/^loss 0.5/lost 0.5/' 's/^end$/end\nend/' 's/4 MiB/7 MiB/' 's/printf/print_f/'; do
    sed "$change" page.md >changed.md
    fails 1 "1 differ" bash -c '"$@" >&2' - "$python" "$source/scripts/guide.py" check "${arguments[@]}" changed.md
done
