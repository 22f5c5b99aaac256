#!/usr/bin/env bash
# Other numbers of servers than of workers, each rank a process: the model of as many servers as workers, from every store; bytes on
# the wire as the plan says; what drps-index and drps-stat say of it; any rank, also one without samples or without rows, stops
# all, in rounds and without; a rank that is killed.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 6K --fields 12 --rows 10K --seed 3 -o data.svm --quiet
index() { # NAME OPTIONS...: rows keep their numbers, whoever holds them
    "$tools/drps-index" data.svm --partition range --algo fm --factors 4 --batch-size 40 --test-fraction 0.1 --memory 64M -o "$1" "${@:2}" --json >index.json
    "$tools/drps-stat" "$1" --verify >/dev/null || fail "$1 does not verify"
}
# train PLAN OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" "$1" -o model --force --epochs 2 "${@:2}" --quiet --json >train.json; }
content() { value content <train.json; }

index alike --workers 5
train alike --local 5 2>err.txt || {
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
}
want=$(content)
shapes=("2-beside 5 --servers 2" "one 5 --servers 1" "7-beside 7 --servers 7" "apart 7 --servers 2 --separate")
for shape in "${shapes[@]}"; do
    read -r name ranks options <<<"$shape"
    # shellcheck disable=SC2086
    index "$name" --workers 5 $options
    [[ $(value workers <index.json) = 5 && $(value servers <index.json) = "${options//[^0-9]/}" ]] || fail "$name: $(cat index.json)"
    for store in resident relay file rocksdb; do # the plan does not know of fresh rows
        train "$name" --local "$ranks" --no-fresh --store $store 2>err.txt || {
            grep -q "store \"$store\" is none of" err.txt || fail "$name, $store: $(cat err.txt)"
            continue
        }
        [[ $(content) = "$want" ]] || fail "$name, $store: $(content), not $want"
        ! grep "no forecast" err.txt || fail "$name: the plan cannot say what goes from rank to rank"
        for kind in sent received; do
            near "$(all_values ${kind}_bytes <train.json | xargs)" "$(all_values forecast_${kind}_bytes <train.json | xargs)" 0.05 ||
                fail "$name: $kind $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
        done
    done
    # Gradients that are filtered, of which nothing is held back.
    # shellcheck disable=SC2086
    index "$name-kept" --workers 5 $options --residuals all
    train "$name-kept" --local "$ranks" --push-filter phi=0,d=0
    [[ $(content) = "$want" ]] || fail "$name, filtered: $(content), not $want"
done
echo "ok the same model"

# From the plan of as many servers, and back; which rank has what; what is refused.
"$tools/drps-index" --from-plan alike --workers 5 --servers 2 -o dealt --quiet
"$tools/drps-index" --from-plan dealt --workers 5 -o back --quiet
for r in 0 1 2 3 4; do
    cmp dealt/rank-$r/rows.rec 2-beside/rank-$r/rows.rec && cmp back/rank-$r/data.rec alike/rank-$r/data.rec || fail "rank $r differs"
done
"$tools/drps-stat" 2-beside >stat.txt
grep -q "5 workers and 2 servers on 5 ranks: servers from rank 0 on, workers from rank 0" stat.txt || fail "$(cat stat.txt)"
[[ $(awk '$1 == "rank" {on = 1; next} on && NF >= 7 && $1 > 1 {n += $2} END {print n + 0}' stat.txt) = 0 ]] || fail "rows beyond rank 1: $(cat stat.txt)"
grep -q "5 workers and 2 servers on 7 ranks: servers from rank 0 on, workers from rank 2" <("$tools/drps-stat" apart) || fail "drps-stat apart"
"$tools/drps-index" data.svm --algo fm --workers 3 --servers 1 -o three -v >index.txt 2>&1
grep -q "3 workers and 1 server on 3 ranks, in rounds of a batch each" index.txt || fail "$(cat index.txt)"
grep -q "on ranks that hold no rows [0-9]*M is the least" index.txt || fail "$(cat index.txt)"
fails 2 "a plan for 5 workers and 2 servers on 7 ranks, not 5: run 7 ranks here" "$tools/drps-train" apart -o never --local 5
fails 2 "from 1 to 1024|between 1 and 1024" "$tools/drps-index" data.svm --algo fm --workers 3 --servers 0 -o never
fails 2 "5 servers of 3 workers: use auto, range or hash .*--servers.*--partition" "$tools/drps-index" data.svm --algo fm --workers 3 --servers 5 --partition greedy -o never
fails 2 "are 1034 ranks: at most 1024 .*--servers.*--separate" "$tools/drps-index" data.svm --algo fm --workers 10 --servers 1024 --separate -o never
fails 2 "needs --servers M" "$tools/drps-index" data.svm --algo fm --workers 3 --separate -o never
absent never
echo "ok plans"

# Each rank stops all, with the model so far.
index few --workers 2 --servers 3
index own --workers 2 --servers 1 --separate
begin() { # PLAN OPTIONS...: three ranks, in pids
    ports 3 >peers.txt
    : >out-0.txt
    pids=()
    for r in 0 1 2; do
        "$tools/drps-train" "$1" -o stopped --force --peers peers.txt --rank $r --epochs 100000 --timeout 60 "${@:2}" 2>rank-$r.txt >out-$r.txt &
        pids+=($!)
    done
    until [[ $(wc -l <out-0.txt) -ge 3 ]]; do kill -0 "${pids[0]}" || fail "$(cat rank-0.txt)"; pause; done # a head and two epochs
}
for sync in bsp asp; do
    for case in few:2 few:0 own:0 own:2; do
        begin "${case%:*}" --sync $sync
        kill -INT "${pids[${case#*:}]}"
        for r in 0 1 2; do
            status=0 && wait "${pids[r]}" || status=$?
            [[ $status = 130 ]] || fail "$sync, $case: rank $r ended with $status: $(cat rank-$r.txt)"
        done
        "$tools/drps-stat" stopped --verify >/dev/null || fail "$sync, $case: the model does not verify"
    done
done
echo "ok stopped by any rank"

# A rank that has no rows, or no samples, is killed: all begin anew from the checkpoints, and the model is the same.
long=(--epochs 60 --checkpoint-every 2e)
train own "${long[@]}" --local 3
want=$(content)
children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
for plan in own few; do
    "$tools/drps-train" $plan -o got --force "${long[@]}" --local 3 --on-failure resume --silence 1 --json >train.json 2>err.txt &
    watcher=$!
    until (($(newest got.checkpoint/rank-0) >= 2)); do kill -0 $watcher 2>/dev/null || fail "no checkpoint: $(cat err.txt)"; pause; done
    ranks=()
    until ((${#ranks[@]} == 2)); do
        kill -0 $watcher 2>/dev/null || fail "it has ended: $(cat err.txt)"
        first=$(children $watcher)
        read -ra ranks <<<"$(children "${first% }")"
        pause
    done
    kill -KILL "${ranks[1]}"
    wait $watcher || fail "$plan, with rank 2 lost: $(cat err.txt)"
    grep -q "starting anew, from epoch" err.txt || fail "$plan did not start anew: $(cat err.txt)"
    [[ $(content) = "$want" ]] || fail "$plan, with rank 2 lost: $(content), not $want"
done
echo "ok a rank killed"
