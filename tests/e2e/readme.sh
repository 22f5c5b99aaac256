#!/usr/bin/env bash
# The README's example: its commands run, and print the lines that it shows. Times and rates are left out.
. "$(dirname "$0")/lib.sh"
PATH=$tools:$PATH
ln -s "$source/examples" examples

# same_anywhere: lines without what differs from machine to machine: seconds, rates, all of an epoch behind its losses, and the
# last digits of losses
same_anywhere() {
    sed -E 's/[0-9.]+ s\b/N s/; s| \(reading it: [0-9]+ MB/s\)||; s/^( +[0-9]+( +[0-9]+\.[0-9]{6}){3}) .*/\1/; s/([0-9]\.[0-9]{3})[0-9]{3}\b/\1/g'
}

commands=0 lines=0
while IFS= read -r line; do
    if [[ $line = '$ '* ]]; then
        read -ra command <<<"${line#$ }"
        "${command[@]}" >printed.txt 2>&1 || fail "README's '${command[*]}': $(cat printed.txt)"
        same_anywhere <printed.txt >want.txt
        commands=$((commands + 1))
    elif [[ -n $line && $line != ... ]]; then
        grep -qxF -- "$(same_anywhere <<<"$line")" want.txt ||
            fail "README shows '$line', but '${command[*]}' prints: $(cat printed.txt)"
        lines=$((lines + 1))
    fi
done < <(awk '/^```/ {inside = !inside; run = 0; next} inside && /^\$ drps-/ {run = 1} run' "$source/README.md")
((commands == 3 && lines > 10)) || fail "the README has $commands commands and $lines lines of an example"
echo ok
