#!/usr/bin/env bash
# Ranks whose rows differ within an epoch: vectors that go to some of the others, come late, or do not come; replicas that are averaged
# and rotate. The model is the same again but under ssp, bytes are those forecast, losses are near those of all vectors, runs that
# stop go on, and what cannot be is refused.
. "$(dirname "$0")/lib.sh"

five_classes
"$tools/drps-index" train.svm --test test.svm --algo mlr --workers 4 --batch-size 40 -o plan --quiet

# train OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" plan -o model --force --local 4 --epochs 3 --exchange vectors "$@" --quiet --json >train.json; }
content() { value content <train.json; }
all_bytes() { all_values "$1" <train.json | awk '{ sum += $1 } END { print sum }'; }
loss() { all_values test_loss <train.json | tail -1; }

if ! train 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
best=$(loss) all=$(all_bytes sent_bytes) want=$(content)

for options in "--exchange-to 1" "--exchange-to 2 --exchange-rule robin --average 3" "--exchange-to 2 --exchange-rule fixed" \
    "--exchange-to 2 --rotate 4 --average 6" "--exchange-to 2 --sv-count 8 --sv-rule random" "--exchange-to 1 --l2 1e-4"; do
    # shellcheck disable=SC2086  # several words
    train $options
    first=$(content)
    near "$(loss)" "$best" 0.35 || fail "$options: loss $(loss), with all vectors $best"
    [[ $first != "$want" ]] || fail "$options: the model of all vectors"
    [[ $options == *sv-count* || $(all_values sent_bytes <train.json) = "$(all_values forecast_sent_bytes <train.json)" ]] ||
        fail "$options: sent $(all_values sent_bytes <train.json | xargs), forecast $(all_values forecast_sent_bytes <train.json | xargs)"
    [[ $(all_bytes sent_bytes) = "$(all_bytes received_bytes)" ]] || fail "$options: what is sent is not what is received"
    # shellcheck disable=SC2086
    train $options --transport inproc
    [[ $(content) = "$first" ]] || fail "$options: $(content) between threads, not $first"
done
# The table of links counts averages, too: they go to the next rank.
train --exchange-to 2 --exchange-rule robin --average 3
"$tools/drps-stat" model >stat.txt
awk '/from rank to rank [0-9]/ { found = $5 > 90 && $7 < 110 } END { exit !found }' stat.txt || fail "links: $(grep "from rank to rank" stat.txt)"
echo "ok some receivers"

train --exchange-to 3
[[ $(content) = "$want" ]] || fail "to all three others: $(content), not $want"

# A tenth of the links is broken: fewer bytes of vectors, and rows are averaged at the end of an epoch.
train --exchange-loss 0.3
first=$(content)
near "$(loss)" "$best" 0.35 || fail "broken links: loss $(loss), without $best"
train --exchange-loss 0.3
[[ $(content) = "$first" ]] || fail "broken links: another model again"
averages=$(($("$tools/drps-train" plan -o two --force --local 4 --epochs 3 --exchange vectors --exchange-to 2 --quiet --json | all_values sent_bytes | awk '{ sum += $1 } END { print sum }') - all * 2 / 3))
train --exchange-loss 0.3
share=$(awk -v sent=$(($(all_bytes sent_bytes) - averages)) -v all="$all" 'BEGIN { print sent / all }')
near "$share" 0.7 0.1 || fail "broken links: a share of $share was sent"
echo "ok broken links"

# Late by at most S rounds: each time another model, about as good; all that was sent is received.
for options in "" "--staleness 1" "--staleness 4 --exchange-to 2 --average 5"; do
    # shellcheck disable=SC2086
    train --sync ssp $options
    near "$(loss)" "$best" 0.35 || fail "ssp $options: loss $(loss), in step $best"
    [[ $(all_bytes sent_bytes) = "$(all_bytes received_bytes)" ]] || fail "ssp $options: what is sent is not what is received"
done
echo "ok late vectors"

# Without rounds, by batches that workers take over from each other: another model each time, about as good; all that was sent is
# received, each batch goes to all others once whoever computes it, and none is left out.
good() { awk -v loss="$(loss)" -v best="$best" 'BEGIN { exit !(loss < 1.4 * best) }'; } # steps are smaller, and more: it may be less
steps=$("$tools/drps-stat" plan | awk '$1 == "batches" { print $2 }')
for options in "wsp" "asp" "wsp --staleness 2 --threads 2" "wsp --no-claim" "wsp --exchange-to 2 --l2 1e-4" "wsp --sv-count 8 --sv-rule project"; do
    # shellcheck disable=SC2086
    train --sync $options
    good || fail "$options: loss $(loss), in step $best"
    [[ $(all_bytes sent_bytes) = "$(all_bytes received_bytes)" ]] || fail "$options: what is sent is not what is received"
    [[ $options == *sv-count* || $options == *exchange-to* || $(all_bytes sent_bytes) = "$(all_bytes forecast_sent_bytes)" ]] ||
        fail "$options: all ranks sent $(all_bytes sent_bytes), forecast $(all_bytes forecast_sent_bytes)"
    [[ $(all_bytes iterations) = $((3 * 4 * steps)) ]] || fail "$options: $(all_bytes iterations) batches"
    if [[ $options == *no-claim* ]]; then [[ $(all_bytes claimed) = 0 ]] || fail "$options: batches were claimed"; fi
    "$tools/drps-stat" model --verify >/dev/null || fail "$options: the model is not whole"
done
# One of four takes three times as long: it computes fewer batches than the others.
train --sync wsp --emulate straggler:0.01
all_values iterations <train.json | awk 'NR == 1 { slow = $1 } NR > 1 && $1 <= slow { wrong = 1 } END { exit wrong }' ||
    fail "a straggler computed $(all_values iterations <train.json | xargs) batches"
echo "ok without rounds"

# What projection leaves wrong is kept, in checkpoints too.
train --sv-count 8 --sv-rule project --checkpoint-every never
first=$(content)
near "$(loss)" "$best" 0.5 || fail "projected: loss $(loss), with all vectors $best"
train --sv-count 8 --checkpoint-every never
[[ $(content) != "$first" ]] || fail "projected: the model of jmcss"
"$tools/drps-train" plan -o model --force --local 4 --epochs 2 --exchange vectors --sync wsp --checkpoint-every 1e --keep-checkpoints --quiet
train --sync wsp --resume
[[ $(value resumed_epoch <train.json) = 3 ]] || fail "wsp: resumed epoch $(value resumed_epoch <train.json)"
good || fail "wsp, resumed: loss $(loss), in step $best"
rm -rf model model.checkpoint
for options in "--sv-count 8 --sv-rule project" "--exchange-to 1 --average 7"; do
    # shellcheck disable=SC2086
    train $options --checkpoint-every never
    first=$(content)
    rm -rf model model.checkpoint
    # shellcheck disable=SC2086
    "$tools/drps-train" plan -o model --local 4 --epochs 2 --exchange vectors $options --checkpoint-every 1e --keep-checkpoints --quiet
    # shellcheck disable=SC2086
    train $options --resume
    [[ $(content) = "$first" ]] || fail "$options: resumed $(content), not $first"
    [[ $options == *sv-count* || $(all_values sent_bytes <train.json) = "$(all_values forecast_sent_bytes <train.json)" ]] ||
        fail "$options, resumed: sent $(all_values sent_bytes <train.json | xargs), forecast $(all_values forecast_sent_bytes <train.json | xargs)"
    [[ $(value resumed_epoch <train.json) = 3 ]] || fail "$options: resumed epoch $(value resumed_epoch <train.json)"
done
rm -rf model model.checkpoint
"$tools/drps-train" plan -o model --local 4 --epochs 2 --exchange vectors --sv-count 8 --checkpoint-every 1e --keep-checkpoints --quiet
fails 2 "did not project vectors" "$tools/drps-train" plan -o model --force --local 4 --epochs 3 --exchange vectors --sv-count 8 --sv-rule project --resume
rm -rf model model.checkpoint
echo "ok projected, resumed"

# Ranks that do not wait for each other in each round fill queues, which is said to need memory.
least() {
    { "$tools/drps-train" plan -o never --local 4 --exchange vectors --memory 1M "$@" 2>&1 || true; } | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk 'NR == 1'
}
in_step=$(least) apart=$(least --exchange-to 1) wsp=$(least --sync wsp)
awk "BEGIN { exit !($apart > $in_step + 1) }" || fail "memory: $apart MiB where ranks fill queues, $in_step where they do not"
awk "BEGIN { exit !($wsp >= $apart) }" || fail "memory: $wsp MiB without rounds, $apart where ranks fill queues"
echo "ok memory"

refused() { # TEXT OPTIONS...
    local text=$1
    shift
    fails 2 "$text" "$tools/drps-train" plan -o never --local 4 "$@"
}
refused "is of exchange of vectors" --exchange-to 2
refused "is of exchange of vectors" --exchange rows --average 3
refused "cannot go to 4 other ranks where there are 3" --exchange vectors --exchange-to 4
refused "say to how many" --exchange vectors --exchange-rule robin
refused "say how many" --exchange vectors --sv-rule random
refused "nothing to average" --exchange vectors --average 3
refused "nothing to average, or to rotate" --exchange vectors --rotate 3
refused "move them in between" --exchange vectors --exchange-to 2 --average 3 --rotate 6
refused "store relay cannot be" --exchange vectors --exchange-to 2 --store relay
refused "at most 4 rounds late" --exchange vectors --sync ssp --staleness 5
refused "leave one of both out" --exchange vectors --sync ssp --rotate 3
refused "logged where all ranks apply the same" --exchange vectors --exchange-to 1 --checkpoint-vectors
refused "ranks that each have all rows are of synchronisation bsp" --exchange rows --sync wsp
refused "ranks that each have all rows are of synchronisation bsp" --exchange auto --sync asp
refused "there are no rounds, after which replicas" --exchange vectors --sync wsp --average 3
refused "there are no rounds, after which replicas" --exchange vectors --sync asp --rotate 3
refused "store relay cannot be" --exchange vectors --sync wsp --store relay
refused "logged where all ranks apply the same" --exchange vectors --sync wsp --checkpoint-vectors
refused "is out of range" --exchange vectors --exchange-loss 1.5
absent never
echo "ok what is refused"
