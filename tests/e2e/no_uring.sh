#!/usr/bin/env bash
# Where io_uring is forbidden, as in many containers, relay trains by threads, to the same model, and says why.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 30K --fields 20 --rows 60K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 8 --batch-size 500 --test-fraction 0.1 -o plan --quiet
set -- "$tools/drps-train" plan --store relay --memory 37M --epochs 2 --quiet --json

"$@" -o model >with.json

# A line a window, whose sums are those of all windows.
"$tools/drps-stat" model --windows >windows.txt
awk '/^  window/ {table = 1; next} /^  *[0-9]/ && table {n++; rows += $2; kept += $3; arrived += $4; created += $5}
     END {exit !(n >= 10 && rows - kept - arrived - created < n && kept + arrived + created - rows < n)}' windows.txt ||
    fail "drps-stat --windows: $(cat windows.txt)"
[[ $(awk '/^  window/ {table = 1; next} /^  *[0-9]/ && table {n++} END {print n}' windows.txt) = "$(all_values windows <with.json | awk '/^[0-9]/')" ]] ||
    fail "drps-stat --windows has not a line for every window"
"$tools/drps-train" plan -o resident --store resident --quiet
fails 2 'store resident, not relay' "$tools/drps-stat" resident --windows
echo "ok windows"

[[ $(all_values io_engine <with.json) = io_uring ]] || skip "there is no io_uring to take away: $(all_values remark <with.json)"
status=0
"$tools/without_uring" "$@" -o model-without >without.json || status=$?
[[ $status != 77 ]] || skip "a process may not restrict itself here"
[[ $status = 0 ]] || fail "without io_uring drps-train exited with $status"
[[ $(value content <without.json) = "$(value content <with.json)" ]] || fail "another model without io_uring"
[[ $(all_values io_engine <without.json) = threads ]] || fail "no threads but $(all_values io_engine <without.json)"
"$tools/drps-stat" model-without --verbose >stat.txt
grep -qE "moved by threads.*no io_uring: Operation not permitted" stat.txt || fail "drps-stat does not say why: $(grep chunks stat.txt)"
echo "ok $(grep chunks stat.txt)"
