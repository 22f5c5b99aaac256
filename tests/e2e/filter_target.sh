#!/usr/bin/env bash
# --filter-target: the printed options train the same model by hand, with processes, threads, and machine by machine; a pilot that is
# stopped leaves nothing; a run that is resumed keeps its filters; where none will do there are none; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" matrix --users 300 --items 200 --ratings 12K --seed 3 -o ratings.tsv --quiet
index=(--algo lmf --factors 8 --workers 3 --batch-size 50 --memory 64M --quiet)
"$tools/drps-index" ratings.tsv "${index[@]}" --partition auto --residuals all --test-fraction 0.1 -o plan

# train OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" plan -o model --force --epochs 2 "$@" --quiet --json >train.json; }
content() { value content <train.json; }
# of NAME: a member of filter_target
of() { sed -n '/"filter_target": {/,$p' train.json | sed -n "s/^    \"$1\": \(.*[^,]\),\{0,1\}$/\1/p" | tr -d '"' | awk 'NR == 1'; }

if ! train --local 3 --filter-target 2% 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
options=$(of options) want=$(content)
[[ $options = --push-values* && $(of measure) = "test RMSE" && $(of resumed) = false ]] || fail "$(cat train.json)"
[[ $(all_values within <train.json | wc -l) = 5 ]] || fail "$(cat train.json)"
# shellcheck disable=SC2086  # words
train --local 3 $options
[[ $(content) = "$want" ]] || fail "$options: $(content), not $want"
train --local 3 --transport inproc --filter-target 0.02
[[ $(content) = "$want" && $(of options) = "$options" ]] || fail "inproc: $(of options), not $options"

"$tools/drps-train" plan -o model --force --epochs 2 --local 3 --filter-target 2% >out.txt
grep -qF "filters   $options: test RMSE " out.txt && [[ $(grep -c '^pilot [1-5] ' out.txt) = 5 ]] || fail "$(cat out.txt)"
"$tools/drps-stat" model --verify >/dev/null || fail "the model does not verify"
echo "ok by hand"

# Each rank from a command of its own; the target must be all ranks'.
ports 3 >peers.txt
peers() { # RANK-2-OPTIONS...
    local pids
    "$tools/drps-train" plan -o unused-1 --epochs 2 --peers peers.txt --rank 1 --quiet --filter-target 2% 2>err-1.txt &
    pids=($!)
    "$tools/drps-train" plan -o unused-2 --epochs 2 --peers peers.txt --rank 2 --quiet "$@" 2>err-2.txt &
    pids+=($!)
    train --peers peers.txt --rank 0 --filter-target 2% 2>err.txt || true
    wait "${pids[@]}" || true
}
peers --filter-target 2%
[[ $(content) = "$want" && $(of options) = "$options" ]] || fail "peers: $(content), not $want: $(cat err.txt)"
peers
grep -q "rank 2 was started with another target of filters than rank 0.*--filter-target" err.txt || fail "peers: $(cat err.txt)"
rm -rf model
fails 75 "did not start within" "$tools/drps-train" plan -o model --peers peers.txt --rank 0 --timeout 1 --filter-target 2%
absent model
echo "ok by peers"

# Some share is too small for any filter: then there is none.
train --local 3
plain=$(content)
train --local 3 --filter-target 1e-9
[[ $(of options) = "" && $(content) = "$plain" ]] || fail "$(of options): $(content), not $plain"
"$tools/drps-train" plan -o model --force --local 3 --filter-target 1e-9 >out.txt
grep -q "^filters   none: all that were tried change the test RMSE by more than 1e-07 %" out.txt || fail "$(cat out.txt)"
echo "ok none"

# Stopped between the pilots that its output holds up. What is there stays.
rm -rf model
mkfifo go
for before in "" model; do
    : >out.txt # not by the shell that starts the next command, which may be late: the loop would see the old lines
    "$tools/hold_output" 1 go "$tools/drps-train" plan -o model --force --epochs 2 --local 3 --filter-target 2% >out.txt 2>err.txt &
    pid=$! status=0
    until grep -q '^pilot 1 ' out.txt; do
        kill -0 $pid 2>/dev/null || fail "it ended before a pilot: $(cat err.txt)"
        pause
    done
    kill -INT "$(pgrep -P $pid -x drps-train)"
    : >go
    wait $pid || status=$?
    [[ $status = 130 ]] || fail "after SIGINT: $status: $(cat err.txt)"
    grep -q "interrupted while filters were tried: nothing is written" err.txt || fail "$(cat err.txt)"
    absent model.partial
    [[ ! -e model.checkpoint ]] || fail "a checkpoint was left behind"
    if [[ -n $before ]]; then
        [[ $("$tools/drps-stat" model --json | value content) = "$plain" ]] || fail "the model that was there is another one"
    else
        absent model
        train --local 3
    fi
done
echo "ok stopped"

# A run that goes on keeps the filters that were chosen.
train --local 3 --epochs 1 --keep-checkpoints --filter-target 2%
train --local 3 --resume --filter-target 0.1%
[[ $(of resumed) = true && $(content) = "$want" ]] || fail "resumed: $(content), not $want"
echo "ok resumed"

by_hand="--filter-target chooses the filters"
fails 2 "$by_hand" "$tools/drps-train" plan -o never --local 3 --filter-target 1% --push-top 10%
fails 2 "$by_hand" "$tools/drps-train" plan -o never --local 3 --filter-target 1% --pull-values 8bit
fails 2 "$by_hand" "$tools/drps-train" plan -o never --local 3 --filter-target 1% --sync ssp --pull-cached
fails 2 "it needs --local or --peers" "$tools/drps-train" plan -o never --filter-target 1%
fails 2 "allows no filter" "$tools/drps-train" plan -o never --local 3 --filter-target 0
"$tools/drps-index" ratings.tsv "${index[@]}" -o none
fails 2 "has no residual slots.*drps-index --residuals" "$tools/drps-train" none -o never --local 3 --filter-target 1%
"$tools/drps-index" ratings.tsv "${index[@]}" --order grid -o grid
fails 2 "rows circulate.*--filter-target" "$tools/drps-train" grid -o never --local 3 --filter-target 1%
"$tools/drps-index" ratings.tsv --algo lmf --quiet -o one
fails 2 "other workers' servers.*--filter-target" "$tools/drps-train" one -o never --local 1 --filter-target 1%
absent never
echo "ok what is refused"
