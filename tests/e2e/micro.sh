#!/usr/bin/env bash
# Micro order on generated clicks: the relay store moves fewer rows than in shuffled order, the loss stays, and stores agree.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 200K --rows 500K --seed 3 -o clicks.svm --quiet

compile() { # ORDER
    "$tools/drps-index" clicks.svm --algo fm --factors 4 --batch-size 200 --test-fraction 0.05 --order "$1" -o "$1" --quiet --json >"$1.json"
}
# traffic ORDER: bytes that the forecast reads in relay with 1/16 of the rows
traffic() {
    sed -n "/\"forecast\": \[/,/\]/p" "$1.json" | tr -d ' \n' | tr '}' '\n' | grep '"store":"relay"' | awk 'NR == 5' |
        sed 's/.*"read_bytes":\([0-9]*\).*/\1/'
}
train() { # ORDER OPTIONS...
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o model --force --quiet --json --threads 1 "$@"
}

compile shuffled
compile micro
"$tools/drps-stat" micro --verify >/dev/null || fail "a plan in micro order does not verify"
grep -q "micro order" < <("$tools/drps-stat" micro) || fail "drps-stat does not show the order: $("$tools/drps-stat" micro | head -1)"
shuffled=$(traffic shuffled) micro=$(traffic micro)
((shuffled > 0 && micro * 10 < shuffled * 9)) || fail "with 1/16 of the rows relay reads $micro bytes an epoch, $shuffled in shuffled order"
echo "ok with 1/16 of the rows relay reads $micro bytes an epoch, $shuffled in shuffled order"

want=$(train micro --store resident | tee resident.json | value content)
got=$(train micro --store relay --memory 40M | value content)
[[ $got = "$want" ]] || fail "relay makes the model $got, memory $want"
loss=$(all_values test_loss <resident.json | head -1) of=$(train shuffled --store resident | all_values test_loss | head -1)
awk "BEGIN {exit !($loss < $of * 1.01)}" || fail "a test loss of $loss, shuffled $of"
echo "ok a test loss of $loss, shuffled $of"

printf 'u1\ti1\t1\nu1\ti2\t1\nu2\ti1\t1\n' >choices.tsv
! "$tools/drps-index" choices.tsv --algo bpr --order micro -o refused 2>message || fail "implicit feedback in micro order"
grep -q "the order micro groups the samples that are read" message || fail "refused with: $(cat message)"
! "$tools/drps-index" clicks.svm --algo lor --local 2 --order micro -o refused 2>message || fail "two ranks in micro order"
grep -q "the order micro: several machines cannot make that together" message || fail "refused with: $(cat message)"
[[ ! -e refused ]] || fail "a plan was left"
echo "ok refusals"
