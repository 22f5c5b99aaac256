#!/usr/bin/env bash
# Some seeds of bench/chaos.sh: while a network and processes fail at random, each run ends in the right model, or in an error
# that names who or what failed. Together these seeds have every kind of failure, and they are short.
. "$(dirname "$0")/lib.sh"
seeds=(73 428 127 569 192 31 268 13 216 458 311)
status=0
DRPS_TOOLS=$tools TMPDIR=$work bash "$source/bench/chaos.sh" --jobs 4 --slack 60 -v "${seeds[@]}" >out.txt 2>&1 || status=$?
[[ $status != 77 ]] || skip "$(tail -1 out.txt)"
cat out.txt
[[ $status = 0 ]] || { tail -n +1 "$work"/drps-chaos.*/seed-*/* && fail "bench/chaos.sh ended with $status"; }
