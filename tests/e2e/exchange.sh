#!/usr/bin/env bash
# Ranks that each have all rows: the model of servers, whatever they exchange and wherever rows lie; bytes on the wire as the plan
# says; the way of fewest bytes is found; a run that is stopped or killed goes on; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

five_classes
"$tools/drps-index" train.svm --test test.svm --algo mlr --workers 3 --batch-size 40 -o plan --quiet
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"

# train OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" plan -o model --force --epochs 3 "$@" --quiet --json >train.json; }
content() { value content <train.json; }
all_bytes() { all_values "$1" <train.json | awk '{ sum += $1 } END { print sum }'; }
as_forecast() {
    for kind in sent received; do
        [[ $(all_values ${kind}_bytes <train.json) = "$(all_values forecast_${kind}_bytes <train.json)" ]] ||
            fail "$1: $kind $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
    done
    [[ $(all_bytes sent_bytes) = "$(all_bytes received_bytes)" ]] || fail "$1: what is sent is not what is received"
}

if ! train --local 3 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
servers=$(all_bytes sent_bytes)
for options in "" "--optimizer sgd --lr 0.1" "--optimizer ftrl --l1 0.2" "--optimizer adam" "--l2 1e-4 --l1 1e-5" "--store relay --memory 80M" "--store file --memory 80M" "--transport inproc"; do
    # shellcheck disable=SC2086  # several words
    train --local 3 $options
    want=$(content)
    for way in vectors rows; do
        # shellcheck disable=SC2086
        train --local 3 $options --exchange $way
        [[ $(content) = "$want" ]] || fail "$way $options: $(content), not $want"
        as_forecast "$way $options"
    done
done
train --local 3 --threads 2
want=$(content)
train --local 3 --threads 2 --exchange rows
[[ $(content) = "$want" ]] || fail "rows of two threads: $(content), not $want"
train --local 3
loss=$(all_values test_loss <train.json)
want=$(content)
train --local 3 --exchange dense
as_forecast dense
near "$(all_values test_loss <train.json)" "$loss" 1e-4 || fail "an all-reduce: losses $(all_values test_loss <train.json | xargs), not $(xargs <<<"$loss")"
[[ $(all_values way <train.json) = dense ]] || fail "the way is $(all_values way <train.json)"
"$tools/drps-index" train.svm --test test.svm --algo svm --workers 3 --batch-size 40 -o plan-svm --quiet
for way in servers vectors rows; do
    "$tools/drps-train" plan-svm -o svm --force --local 3 --epochs 3 --exchange $way --quiet --json >train.json
    [[ $way != servers ]] || want=$(content)
    [[ $(content) = "$want" ]] || fail "one versus the rest, $way: $(content), not $want"
done
train --local 3
want=$(content)
echo "ok the same model"

# The way of fewest bytes, and servers where all rows do not fit.
train --local 3 --exchange auto
[[ $(content) = "$want" && $(all_values way <train.json) = vectors ]] || fail "auto took $(all_values way <train.json)"
(($(all_bytes sent_bytes) < servers)) || fail "$(all_bytes sent_bytes) bytes were sent, $servers by servers"
"$tools/drps-train" plan -o model --force --local 3 --epochs 1 --exchange auto >out.txt
grep -q "exchange  vectors, the fewest bytes" out.txt || fail "$(cat out.txt)"
"$tools/drps-stat" plan >out.txt
grep -q "exchanged in an epoch" out.txt || fail "$(cat out.txt)"
echo "ok auto"

# Some vectors stand for all: fewer bytes, the same model again and wherever rows lie; all of them are all.
train --local 3 --exchange vectors --sv-count 1000
[[ $(content) = "$want" ]] || fail "1000 of 40 vectors: $(content), not $want"
all=$(all_bytes sent_bytes)
for rule in jmcss random; do
    train --local 3 --exchange vectors --sv-count 8 --sv-rule $rule
    chosen=$(content)
    (($(all_bytes sent_bytes) < all / 2)) || fail "$rule: $(all_bytes sent_bytes) bytes were sent, $all with all vectors"
    near "$(all_values test_loss <train.json | tail -1)" "$(tail -1 <<<"$loss")" 0.5 || fail "$rule: loss $(all_values test_loss <train.json | xargs)"
    train --local 3 --exchange vectors --sv-count 8 --sv-rule $rule --store relay --memory 90M
    [[ $(content) = "$chosen" ]] || fail "$rule: another model in a relay store: $(content), not $chosen"
    "$tools/drps-train" plan -o other --force --local 3 --epochs 2 --exchange vectors --sv-count 8 --sv-rule $rule --quiet
    [[ $chosen != "$want" ]] || fail "$rule: all were sent"
done
echo "ok some vectors"

# Each rank from a command of its own; a run that is interrupted goes on.
ports 3 >peers.txt
pids=()
for rank in 1 2; do
    "$tools/drps-train" plan -o unused-$rank --epochs 3 --peers peers.txt --rank $rank --exchange vectors --quiet &
    pids+=($!)
done
train --peers peers.txt --rank 0 --exchange vectors
wait "${pids[@]}"
[[ $(content) = "$want" ]] || fail "by peers: $(content), not $want"
rm -rf model model.checkpoint
train --local 3 --epochs 2 --exchange vectors --checkpoint-every 1e
"$tools/drps-train" plan -o model --force --local 3 --epochs 3 --resume --exchange vectors --quiet --json >train.json 2>err.txt || train --local 3 --epochs 3 --exchange vectors
[[ $(content) = "$want" ]] || fail "resumed: $(content), not $want"
"$tools/drps-train" plan -o half --local 3 --epochs 2 --exchange rows --quiet
"$tools/drps-train" plan -o warm --local 3 --epochs 1 --from half --quiet --json >train.json
want=$(content)
"$tools/drps-train" plan -o warm --force --local 3 --epochs 1 --from half --exchange vectors --quiet --json >train.json
[[ $(content) = "$want" ]] || fail "from a model: $(content), not $want"
echo "ok peers, resumed and warm"

"$tools/drps-index" train.svm --algo mlr --batch-size 40 -o one --quiet
"$tools/drps-index" train.svm --algo mlr --batch-size 40 --workers 3 --servers 2 -o fewer --quiet
"$tools/drps-index" train.svm --algo mlr --batch-size 40 --workers 3 --residuals all -o residuals --quiet
sed 's/^[aby][a-z]*/1/;s/^[a-z]*/-1/' train.svm >two.svm
"$tools/drps-index" two.svm --algo lor --batch-size 40 --workers 3 -o two --quiet
fails 2 "a plan for one worker" "$tools/drps-train" one -o never --exchange rows
fails 2 "not every rank is a worker and a server" "$tools/drps-train" fewer -o never --local 3 --exchange rows
fails 2 "have not several scores" "$tools/drps-train" two -o never --local 3 --exchange auto
fails 2 "of synchronisation bsp" "$tools/drps-train" plan -o never --local 3 --exchange rows --sync asp
fails 2 "filters are for what goes to servers" "$tools/drps-train" residuals -o never --local 3 --exchange vectors --push-values 8bit
fails 2 "where vectors are exchanged" "$tools/drps-train" plan -o never --local 3 --exchange rows --sv-count 8
fails 2 "is not one of" "$tools/drps-train" plan -o never --local 3 --exchange everything
absent never
# A list of rows that are not the batch's is found before it is used.
cp -r plan damaged
printf '\xff' | dd of=damaged/rank-1/numbers.rec bs=1 seek=300 conv=notrunc status=none
fails 1 "numbers.rec" "$tools/drps-stat" damaged --verify
fails 1 "numbers.rec" "$tools/drps-train" damaged -o never --local 3 --exchange vectors
absent never
echo "ok what is refused"
