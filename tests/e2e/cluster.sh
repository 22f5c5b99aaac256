#!/usr/bin/env bash
# Several ranks on this machine: the same parameters over ZeroMQ and within one process, from every store; losses of one
# worker with batches as large as a round; placed rows; bytes on the wire as the plan says; mistakes, interruption and a
# killed rank.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 12K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-gen" matrix --users 600 --items 300 --ratings 12K --seed 3 -o ratings.tsv --quiet

# train PLAN TRAIN-OPTIONS...: its JSON is left in train.json
train() {
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o model --force --epochs 2 "$@" --quiet --json >train.json
}
losses() { echo "$(all_values train_loss <train.json) $(all_values test_loss <train.json)"; }
content() { value content <train.json; }

# estimated: what drps-index says that one thread takes, and that the rounds' messages take, follows from the plan
"$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 500 --workers 3 --test-fraction 0.1 -o estimated --quiet --json >index.json
want=$(value nnz <index.json && value test_nnz <index.json && sed -n '/"ranks": \[/,$p' index.json | all_values row_uses)
want=$(xargs <<<"$want" | awk '{printf "%.9f", 1e-9 * (($1 + $2) * (1.2 + .23 * 5) + .85 * 5 * ($3 + $4 + $5))}')
near "$(value one_thread_seconds <index.json)" "$want" 0.001 || fail "one thread: $(value one_thread_seconds <index.json), not $want"
rounds=$(awk "BEGIN {n = $(value batches <index.json) + $(value test_batches <index.json); print .0003 * n}")
near "$(value messages_seconds <index.json)" "$rounds" 0.001 || fail "messages: $(value messages_seconds <index.json), not $rounds"

# least PLAN N TRAIN-OPTIONS...: KiB that the relay store of every rank takes at least, by their own refusals
least() {
    local plan=$1 n=$2 memory=1024 need
    shift 2
    for _ in 1 2 3 4 5 6 7 8; do
        "$tools/drps-train" "$plan" -o refused --local "$n" "$@" --store relay --memory "${memory}K" --quiet 2>refused.txt && break
        need=$(sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' refused.txt | sort -n | tail -1)
        [[ -n $need ]] || fail "no number in: $(cat refused.txt)"
        memory=$(awk "BEGIN {print int(($need + 0.1) * 1024)}")
        rm -rf refused
    done
    rm -rf refused
    echo "$memory"
}

wire() { # sent and received bytes of every rank are those that the plan says, to within a tenth, as rows that nobody has trained are not sent
    local kind
    for kind in sent received; do
        near "$(all_values ${kind}_bytes <train.json | xargs)" "$(all_values forecast_${kind}_bytes <train.json | xargs)" 0.1 ||
            fail "$1: ${kind} $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
    done
    [[ $(all_values sent_bytes <train.json | awk '{n += $1} END {print n}') -gt 0 ]] || fail "$1: nothing was sent"
}

compare() { # NAME BATCH TRAIN-OPTIONS-OR-EMPTY INDEX-OPTIONS...
    local name=$1 batch=$2 options=$3 n store want losses got memory place
    shift 3
    for n in 1 2 3 5; do
        place=() # rows keep their numbers, from which FM and LMF begin
        ((n == 1)) || place=(--partition range)
        "$tools/drps-index" "${place[@]}" "$@" --batch-size "$batch" --workers $n --test-fraction 0.1 --memory 64M -o plan-$name-$n --quiet --json >/dev/null
        "$tools/drps-stat" plan-$name-$n --verify >/dev/null || fail "plan-$name-$n does not verify"
        # shellcheck disable=SC2086
        if [[ $n = 1 ]]; then
            train plan-$name-1 $options
            want=$(content) && train plan-$name-1 --local 1 $options
            [[ $(content) = "$want" ]] || fail "$name: --local 1 gives $(content), not $want"
            continue
        fi
        # shellcheck disable=SC2086
        train plan-$name-$n --local $n --transport inproc --store resident $options
        want=$(content) losses=$(losses)
        # shellcheck disable=SC2086
        train plan-$name-$n --local $n --no-overlap $options
        [[ $(content) = "$want" ]] || fail "$name: $n ranks that do not send ahead give $(content), not $want"
        memory=$(least plan-$name-$n $n)
        for store in resident relay file rocksdb leveldb; do
            # shellcheck disable=SC2086
            if [[ $store = relay ]]; then
                train plan-$name-$n --local $n --store relay --memory "$((memory + 20))K" $options
                [[ $(all_values windows <train.json | awk '/^[0-9]/') -gt 1 ]] || fail "$name: one window"
            else
                train plan-$name-$n --local $n --store $store $options
            fi
            [[ $(content) = "$want" ]] || fail "$name, $n ranks, $store: $(content) instead of $want"
            [[ $(losses) = "$losses" ]] || fail "$name, $n ranks, $store: losses $(losses) instead of $losses"
            wire "$name, $n ranks, $store"
        done
        "$tools/drps-stat" model --verify >/dev/null || fail "the model of $name, $n ranks, does not verify"
        "$tools/drps-index" "$@" --batch-size $((batch * n)) --test-fraction 0.1 --memory 64M -o plan-one --force --quiet --json >/dev/null
        # shellcheck disable=SC2086
        train plan-one --store resident $options
        near "$losses" "$(losses)" 1e-5 || fail "$name, $n ranks: losses $losses; one worker with $n times the batch: $(losses)"
        echo "ok $name, $n ranks"
    done
}

"$tools/drps-index" data.svm --algo lor --workers 2 --test-fraction 0.1 -o plan-2 --quiet
if ! "$tools/drps-train" plan-2 -o model --local 2 --quiet 2>err.txt; then
    grep -q "this build has no ZeroMQ: the transport inproc.*--transport" err.txt || fail "--local 2: $(cat err.txt)"
    train plan-2 --local 2 --transport inproc
    skip "this build has no ZeroMQ; ranks as threads train"
fi

compare lor 100 "" data.svm --algo lor
compare fm 60 "--optimizer ftrl --l1 0.01" data.svm --algo fm --factors 4
compare adam 60 "--optimizer adam --beta2 0.99 --l2 0.001" data.svm --algo fm --factors 4
compare lmf 100 "--l2 0.001" ratings.tsv --algo lmf --factors 4
compare sgd 500 "--optimizer sgd --l1 0.0001 --threads 2" data.svm --algo lor --no-bias

# Gradients that are shortened: over processes as over threads; and the model of before where nothing is held back.
"$tools/drps-index" ratings.tsv --algo lmf --factors 4 --batch-size 100 --workers 3 --residuals all --test-fraction 0.1 --memory 64M -o filtered --quiet
"$tools/drps-stat" filtered --verify >/dev/null || fail "filtered does not verify"
train filtered --local 3
want=$(content)
train filtered --local 3 --push-filter phi=0,d=1
[[ $(content) = "$want" ]] || fail "filters that hold nothing back give $(content), not $want"
for options in "--push-values 8bit --push-top 10%" "--push-filter phi=0.3,d=0.1,p=0.9 --push-values 16bit"; do
    # shellcheck disable=SC2086
    train filtered --local 3 --transport inproc $options
    got=$(content)
    # shellcheck disable=SC2086
    train filtered --local 3 --store relay $options
    [[ $(content) = "$got" ]] || fail "$options: $(content) instead of $got"
    [[ $(content) != "$want" ]] || fail "$options: nothing was held back"
    [[ $(all_values sent_bytes <train.json | awk '{n += $1} END {print n}') -lt $(all_values forecast_sent_bytes <train.json | awk '{n += $1} END {print n}') ]] ||
        fail "$options: not less was sent"
done
"$tools/drps-index" --from-plan filtered --workers 2 --residuals 50 -o filtered-2 --quiet
train filtered-2 --local 2 --push-values 8bit

# Gradients that wait over epochs.
"$tools/drps-index" --from-plan filtered --workers 3 --residuals each -o filtered-each --quiet
"$tools/drps-stat" filtered-each --verify >/dev/null || fail "filtered-each does not verify"
"$tools/drps-stat" filtered-each | grep "a place of its own" >/dev/null || fail "drps-stat does not say that rows have places of their own"
train filtered-each --local 3 --epochs 4 --push-top 10%
sent=$(all_values sent_bytes <train.json | awk '{n += $1} END {print n}')
for options in 2 last last,16bit; do
    train filtered-each --local 3 --epochs 4 --push-top 10% --push-flush "$options" --transport inproc
    got=$(content)
    train filtered-each --local 3 --epochs 4 --push-top 10% --push-flush "$options" --store relay
    [[ $(content) = "$got" ]] || fail "--push-flush $options: $(content) instead of $got"
    now=$(all_values sent_bytes <train.json | awk '{n += $1} END {print n}')
    ((now < sent)) || fail "--push-flush $options: $now bytes sent, with less waiting $sent"
    sent=$now
done
(($(all_values left_rows <train.json | awk '{n += $1} END {print n}') > 0)) || fail "--json says nothing of what is left"
"$tools/drps-train" filtered-each -o model --force --local 3 --push-values 8bit --push-flush last,8bit >summary.txt
grep "workers still held some of the gradients" summary.txt >/dev/null || fail "nothing of what is left: $(cat summary.txt)"
if "$tools/drps-train" filtered -o model --force --local 3 --push-flush 2 --quiet 2>err.txt; then fail "gradients wait without places of their own"; fi
grep -- "drps-index --residuals each" err.txt >/dev/null || fail "no hint at --residuals each: $(cat err.txt)"
for bad in 0 never 2,4bit last,; do
    if "$tools/drps-train" filtered-each -o model --force --local 3 --push-flush "$bad" --quiet 2>err.txt; then fail "--push-flush $bad was taken"; fi
done

# Parameters that are shortened, in the same way.
train filtered --local 3 --pull-filter psi=0
[[ $(content) = "$want" ]] || fail "--pull-filter psi=0 gives $(content), not $want"
for options in "--pull-values 8bit" "--pull-filter psi=0.05,d=0.1,eps=1 --pull-values 16bit --push-top 10%"; do
    # shellcheck disable=SC2086
    train filtered --local 3 --transport inproc $options
    got=$(content)
    # shellcheck disable=SC2086
    train filtered --local 3 --store relay $options
    [[ $(content) = "$got" ]] || fail "$options: $(content) instead of $got"
    [[ $(all_values sent_bytes <train.json | awk '{n += $1} END {print n}') -lt $(all_values forecast_sent_bytes <train.json | awk '{n += $1} END {print n}') ]] ||
        fail "$options: not less was sent"
done
"$tools/drps-stat" model >stat.txt
grep -q "changed by too little" stat.txt || fail "drps-stat does not say what was not sent: $(cat stat.txt)"
train filtered-2 --local 2 --pull-values 8bit
"$tools/drps-index" ratings.tsv --algo lmf --factors 4 --batch-size 100 --workers 3 --servers 2 --residuals all --memory 64M -o filtered-3 --quiet
"$tools/drps-stat" filtered-3 --verify >/dev/null || fail "filtered-3 does not verify"
train filtered-3 --local 3
want=$(content)
train filtered-3 --local 3 --pull-values 32bit --push-filter phi=0
[[ $(content) = "$want" ]] || fail "on unequal ranks filters that change nothing give $(content), not $want"
if "$tools/drps-train" filtered -o model --force --local 3 --sync asp --pull-values 8bit --quiet 2>err.txt; then fail "asp was filtered"; fi
grep -q -- "--pull-values" err.txt || fail "no hint at --pull-values: $(cat err.txt)"
if "$tools/drps-train" plan-2 -o model --force --local 2 --push-values 8bit --quiet 2>err.txt; then fail "a plan without slots was filtered"; fi
grep -q -- "--residuals" err.txt || fail "no hint at --residuals: $(cat err.txt)"
for options in "asp --push-values 8bit --pull-values 16bit" "wsp --push-top 10%" "ssp --staleness 8 --pull-cached --push-values 8bit --pull-values 16bit"; do
    # shellcheck disable=SC2086
    train filtered --local 3 --epochs 2 --sync $options
    "$tools/drps-stat" model --verify >/dev/null || fail "$options: the model does not verify"
done
"$tools/drps-train" filtered -o model --force --local 3 --epochs 2 --sync ssp --pull-cached >summary.txt
grep -q "% were not asked for, as workers had copies" summary.txt || fail "nothing of copies: $(cat summary.txt)"
"$tools/drps-stat" model | grep "cached " >/dev/null || fail "drps-stat says nothing of copies"
if "$tools/drps-train" filtered -o model --force --local 3 --sync asp --pull-cached --quiet 2>err.txt; then fail "copies without a bound"; fi
grep -q -- "--pull-cached" err.txt || fail "no hint at --pull-cached: $(cat err.txt)"
echo "ok filtered"

# Rows placed otherwise than by range: the same parameters from every store and transport, and the losses of ranges where
# rows start alike (factors start from their ids).
for name in lor lmf; do
    input=data.svm
    [[ $name = lor ]] || input=ratings.tsv
    "$tools/drps-index" $input --algo $name --batch-size 100 --workers 3 --partition auto --test-fraction 0.1 --memory 64M -o placed-$name --quiet
    "$tools/drps-stat" placed-$name --verify >/dev/null || fail "placed-$name does not verify"
    train placed-$name --local 3 --transport inproc --store resident
    want=$(content) losses=$(losses)
    for store in resident relay file; do
        train placed-$name --local 3 --store $store
        [[ $(content) = "$want" ]] || fail "placed $name, $store: $(content) instead of $want"
        [[ $(losses) = "$losses" ]] || fail "placed $name, $store: losses $(losses) instead of $losses"
        wire "placed $name, $store"
    done
    "$tools/drps-stat" model --verify >/dev/null || fail "the model of placed-$name does not verify"
done
# Load by machine: what the plan asks, what training took.
[[ $("$tools/drps-stat" placed-lmf | grep -cE '^ +[012] +[0-9]+ +[0-9]+ +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB') = 3 ]] || fail "no load of three machines in the plan"
train placed-lmf --local 3 --transport inproc --no-fresh
[[ $("$tools/drps-stat" model | awk '/^ +rank +sent/ {n = 4} n-- > 0 && $1 ~ /^[012]$/ && $2 " " $3 == $4 " " $5 && $2 > 0' | wc -l) = 3 ]] || fail "no measured load of three machines"
want=$(content) all_sent=$(all_values sent_bytes <train.json | awk '{n += $1} END {print n}')
[[ $(all_values sent_bytes <train.json | xargs) = $(all_values forecast_sent_bytes <train.json | xargs) ]] || fail "sent $(all_values sent_bytes <train.json | xargs), forecast $(all_values forecast_sent_bytes <train.json | xargs)"
# Rows that nobody has trained are made, not sent: less is sent, and the model is the same.
train placed-lmf --local 3 --transport inproc
[[ $(content) = "$want" ]] || fail "--no-fresh changes the model"
[[ $(all_values sent_bytes <train.json | xargs) = $(all_values forecast_sent_bytes <train.json | xargs) ]] || fail "without fresh rows $(all_values sent_bytes <train.json | xargs) were sent, forecast $(all_values forecast_sent_bytes <train.json | xargs)"
(($(all_values sent_bytes <train.json | awk '{n += $1} END {print n}') < all_sent)) || fail "no less than $all_sent bytes are sent without --no-fresh"
"$tools/drps-stat" model --link 100Mbit >stat.txt
grep -q "^traffic between ranks, of all epochs" stat.txt && grep -qE "^  with links of 100 Mbit/s .* takes [0-9.e-]+ s at least" stat.txt && grep -q "^training rounds, seconds an epoch" stat.txt || fail "no traffic of three machines: $(cat stat.txt)"
"$tools/drps-stat" placed-lmf --link 100Mbit | grep -E "^  with links of 100 Mbit/s .* takes [0-9.e-]+ s at least" >/dev/null || fail "no least time in the plan"
"$tools/drps-index" ratings.tsv --algo lmf --batch-size 100 --workers 3 --test-fraction 0.1 --memory 64M --link 100Mbit -o linked >screen.txt
grep -qE "^  network  at 100 Mbit/s .*: 3 machines (will|may|can) be (slower|faster) than one$" screen.txt || fail "no word on whether three machines are faster: $(cat screen.txt)"
# Samples that are placed, too, learn as much, and send less than those dealt in turn: the same where they stay in their round.
placed_losses=$losses placed_sent=$(all_values sent_bytes <train.json | awk '{n += $1} END {print n}')
train placed-lor --local 3 --transport inproc
lor_losses=$(losses)
"$tools/drps-index" ratings.tsv --algo lmf --batch-size 100 --workers 3 --partition auto --samples dealt --test-fraction 0.1 --memory 64M -o dealt-lmf --quiet
train dealt-lmf --local 3 --transport inproc
near "$placed_losses" "$(losses)" 0.1 || fail "placed samples: losses $placed_losses; dealt: $(losses)"
dealt_sent=$(all_values sent_bytes <train.json | awk '{n += $1} END {print n}')
[[ $placed_sent -lt $dealt_sent ]] || fail "placed samples: $placed_sent bytes sent, dealt: $dealt_sent"
"$tools/drps-index" data.svm --algo lor --batch-size 100 --workers 3 --partition auto --samples dealt --test-fraction 0.1 --memory 64M -o dealt-lor --quiet
train dealt-lor --local 3 --transport inproc
losses=$(losses)
near "$lor_losses" "$losses" 1e-5 || fail "samples placed in their round: losses $lor_losses; dealt: $losses"
"$tools/drps-index" data.svm --algo lor --batch-size 100 --workers 3 --partition auto --samples placed --test-fraction 0.1 --memory 64M -o any-lor >any.txt
grep -qE '^  links    an epoch moves 0\.[0-9]+ of what .*; the busiest carries 1\.0[0-5] of the average$' any.txt || fail "any-lor: $(cat any.txt)"
"$tools/drps-stat" any-lor --verify >/dev/null || fail "any-lor does not verify"
train any-lor --local 3 --transport inproc
near "$losses" "$(losses)" 0.05 || fail "samples placed in any round: losses $(losses); dealt: $losses"
train plan-lor-3 --local 3 --transport inproc
near "$losses" "$(losses)" 1e-5 || fail "placed rows: losses $losses; ranges: $(losses)"
fails 2 "needs 2 workers or more .*--workers" "$tools/drps-index" data.svm --algo lor --partition auto -o never
echo "ok placed rows"

# The best epoch is chosen, and written, by all ranks together.
train plan-fm-3 --local 3 --transport inproc --epochs 30 --patience 2 --lr 0.05
[[ $(value stopped_early <train.json) = true ]] || fail "patience never ran out"
want=$(content)
train plan-fm-3 --local 3 --epochs 30 --patience 2 --lr 0.05
[[ $(content) = "$want" ]] || fail "patience: $(content) instead of $want"
echo "ok patience"

# ---- Asynchronous rounds ----

# Every batch once an epoch, losses not far from bulk synchronous ones, over both transports and from every store.
batches() { sed -n 's/^ "batches": \([0-9]*\).*/\1/p' "$1/plan.json"; } # training batches of each share
train plan-lor-3 --local 3
bsp=$(all_values train_loss <train.json | tail -1)
asynchronous() { # TEXT TRAIN-OPTIONS...
    local name=$1 loss
    shift
    train plan-lor-3 --local 3 "$@"
    [[ $(all_values iterations <train.json | awk '{n += $1} END {print n}') = $((2 * 3 * $(batches plan-lor-3))) ]] ||
        fail "$name: $(all_values iterations <train.json | xargs) iterations of $(batches plan-lor-3) batches a share and epoch"
    loss=$(all_values train_loss <train.json | tail -1)
    awk "BEGIN {exit !($loss < 1.05 * $bsp)}" || fail "$name: loss $loss, bulk synchronous $bsp"
    "$tools/drps-stat" model --verify >/dev/null || fail "$name: the model does not verify"
}
memory=$(least plan-lor-3 3 --sync wsp)
for mode in asp ssp wsp wsp-literal; do
    asynchronous "$mode" --sync $mode
    [[ $(value sync <train.json) = "$mode" ]] || fail "$mode: the report says $(value sync <train.json)"
    asynchronous "$mode within one process" --sync $mode --transport inproc
    asynchronous "$mode, relay" --sync $mode --store relay --memory "$((memory + 40))K"
    [[ $(all_values windows <train.json | awk '/^[0-9]/') -gt 1 ]] || fail "$mode: one window"
    asynchronous "$mode, file" --sync $mode --store file
done
asynchronous "no claims" --sync wsp --no-claim --staleness 8
[[ $(all_values claimed <train.json | xargs) = "0 0 0" ]] || fail "--no-claim: $(all_values claimed <train.json | xargs) were claimed"
for n in 2 5; do
    "$tools/drps-train" plan-fm-$n -o model --force --epochs 2 --local $n --sync wsp --quiet --json >train.json
    [[ $(all_values iterations <train.json | awk '{n += $1} END {print n}') = $((2 * n * $(batches plan-fm-$n))) ]] ||
        fail "$n ranks: $(all_values iterations <train.json | xargs) iterations"
done
# With a bound of 0 ssp is bsp, to the bit; with none it is asp.
train plan-lor-3 --local 3
want=$(content)
train plan-lor-3 --local 3 --sync ssp --staleness 0
[[ $(content) = "$want" && $(value sync <train.json) = bsp ]] || fail "--staleness 0: $(content) by $(value sync <train.json) instead of $want"
asynchronous "ssp without a bound" --sync ssp --staleness inf
[[ $(value sync <train.json) = asp ]] || fail "--staleness inf: the report says $(value sync <train.json)"
# What wsp waits by, and rates for stale gradients, are in the report, and a run that goes on keeps them.
asynchronous "wsp by other weights" --sync wsp --wsp-lambda .5 --wsp-ema 1 --wsp-patience 2
weights=$(sed -n '/"wsp": {/,/}/p' train.json | awk '/: [0-9]/ {printf "%s", $1 $2}' | tr -d '", ')
[[ $weights = lambda:0.5ema:1.0patience:2.0 ]] || fail "weights of wsp: $weights"
asynchronous "stale gradients by rounds" --sync asp --lr-stale rounds --keep-checkpoints --checkpoint-every 1e
[[ $(value lr_stale <train.json) = rounds ]] || fail "--lr-stale: the report says $(value lr_stale <train.json)"
"$tools/drps-train" plan-lor-3 -o model --local 3 --resume --epochs 3 --quiet --json >train.json
[[ $(value sync <model/model.json) = asp && $(value lr_stale <model/model.json) = rounds ]] || fail "a run that goes on: $(value sync <model/model.json), $(value lr_stale <model/model.json)"
asynchronous "stale gradients by batches" --sync ssp --lr-stale batches --store relay --memory "$((memory + 40))K"
echo "ok asynchronous rounds"

# ---- Mistakes ----

fails 2 "is a plan for 2 workers: run 2 ranks here.*--local, --rank, --peers" "$tools/drps-train" plan-2 -o never
fails 2 "is a plan for 2 workers, not 3" "$tools/drps-train" plan-2 -o never --local 3
fails 2 "is a plan for 1 worker, not 2" "$tools/drps-train" plan-one -o never --local 2
fails 2 "local-steps" "$tools/drps-train" plan-2 -o never --local 2 --local-steps
fails 2 "needs --local" "$tools/drps-train" plan-2 -o never --transport inproc
fails 2 "is a plan for 2 workers, not 3: run 2 ranks here.*--local" "$tools/drps-train" plan-2 -o never --local 3
printf '127.0.0.1:7001\n127.0.0.1:7002\n' >two.txt
fails 2 "two.txt has 2 ranks, and .* is a part of a plan for 3: give each rank a line" "$tools/drps-train" plan-lor-3 -o never --peers two.txt --rank 1
printf '127.0.0.1:7001\n127.0.0.1:7001\n' >same.txt
fails 1 "same.txt:2: 127.0.0.1:7001 is the address of rank 0 already" "$tools/drps-train" plan-2 -o never --peers same.txt --rank 1
fails 2 "silence" "$tools/drps-train" plan-2 -o never --local 2 --silence 0
fails 2 "staleness" "$tools/drps-train" plan-2 -o never --local 2 --sync asp --staleness 3
fails 2 "no-claim" "$tools/drps-train" plan-2 -o never --local 2 --no-claim
for mode in bsp wsp; do
    fails 2 "--staleness of 0 .* is of --sync ssp" "$tools/drps-train" plan-2 -o never --local 2 --sync $mode --staleness 0
done
fails 2 "weights of waiting.*ssp chooses nobody.*--wsp-ema" "$tools/drps-train" plan-2 -o never --local 2 --sync ssp --wsp-ema .5
fails 2 "weights of waiting.*bsp chooses nobody" "$tools/drps-train" plan-2 -o never --local 2 --wsp-lambda 2
fails 2 "under synchronisation bsp none is stale.*--lr-stale" "$tools/drps-train" plan-2 -o never --local 2 --lr-stale rounds
fails 2 "and not of ftrl.*--lr-stale" "$tools/drps-train" plan-lor-3 -o never --local 3 --sync asp --lr-stale rounds --optimizer ftrl
fails 2 "goes with whole gradients.*--lr-stale" "$tools/drps-train" plan-2 -o never --local 2 --sync asp --lr-stale rounds --push-values 16bit
fails 2 "synchronisation asp is of several workers.*--sync" "$tools/drps-train" plan-one -o never --sync asp
fails 2 "sync" "$tools/drps-train" plan-2 -o never --local 2 --sync often
cp -r plan-2 lacking && rm -r lacking/rank-1
fails 1 "lacking/rank-1 is not there" "$tools/drps-train" lacking -o never --local 2
cp -r plan-fm-2/rank-1 lacking/rank-1
fails 1 "rank-1 is the part of another plan" "$tools/drps-stat" lacking --verify
fails 2 "rank 1 .*another plan|rank 1 was started with another plan" "$tools/drps-train" lacking -o never --local 2 --transport inproc
fails 2 "plan" "$tools/drps-train" lacking -o never --local 2
absent never
absent never.rank-1
echo "ok mistakes"

# ---- Closed to other users of the machine ----

# inodes FILE: of the TCP sockets that listen, by a file of /proc
inodes() { awk '$4 == "0A" {print $10}' "$1"; }
# begin TRAIN-OPTIONS...: a long job in the background; its first process is $master, all of them $family
begin() {
    : >out.txt
    env "${how[@]}" "$tools/drps-train" plan-lor-3 -o closed --force --local 3 --epochs 100000 "$@" 2>err.txt >out.txt &
    master=$!
    until [[ $(wc -l <out.txt) -ge 3 ]]; do kill -0 $master || fail "$(cat err.txt)"; pause; done
    family="$master $(cat /proc/$master/task/*/children 2>/dev/null || true)"
}
listening() { # how many TCP sockets its processes listen at
    local pid inode n=0
    for pid in $family; do
        for inode in $(inodes /proc/net/tcp) $(inodes /proc/net/tcp6); do
            [[ -z $(find "/proc/$pid/fd" -lname "socket:\[$inode\]" 2>/dev/null) ]] || n=$((n + 1))
        done
    done
    echo $n
}
stop() {
    local status=0
    kill -INT $master
    wait $master || status=$?
    [[ $status = 130 ]] || fail "the job ended with $status: $(cat err.txt)"
}
mkdir meet
how=(-u XDG_RUNTIME_DIR "TMPDIR=$PWD/meet")
if [[ $PWD = */????????????????????????????????????????????????????????????????????????????????* ]]; then
    echo "skipped: the path of $PWD is too long for sockets"
else
    begin
    [[ $(listening) = 0 ]] || fail "ranks that others can connect to"
    [[ -z $(ls -A meet) ]] || fail "still there when all have met: $(ls -A meet)"
    stop
    fails 1 "at least" env "${how[@]}" "$tools/drps-train" plan-lor-3 -o never --local 3 --store relay --memory 4K
    [[ -z $(ls -A meet) ]] || fail "left behind by a start that failed: $(ls -A meet)"
fi
how=(-u XDG_RUNTIME_DIR TMPDIR=/nonexistent)
begin
grep -q "with keys made for this run.*/nonexistent: No such file" err.txt || fail "says nothing of keys: $(cat err.txt)"
[[ $(listening) = 3 ]] || fail "$(listening) ranks listen"
stop
want=$(train plan-lor-3 --local 3 && content)
[[ $(TMPDIR=/nonexistent XDG_RUNTIME_DIR='' train plan-lor-3 --local 3 && content) = "$want" ]] || fail "another model with keys"
echo "ok closed to others"

# Strangers who connect and say nothing, while ranks with few open files train: the job ends with its model.
for r in 0 1 2; do "$tools/drps-train" --make-keys "keys-$r" >"key-$r.txt"; done
ports 3 >bare.txt
paste -d' ' bare.txt <(cat key-0.txt key-1.txt key-2.txt) >keyed.txt
: >out-0.txt
pids=()
for r in 0 1 2; do
    (ulimit -n 300 && exec "$tools/drps-train" plan-lor-3 -o crowded --force --peers keyed.txt --rank $r --keys keys-$r --epochs 100000 --timeout 60 \
        2>rank-$r.txt >out-$r.txt) &
    pids+=($!)
done
until [[ $(wc -l <out-0.txt) -ge 3 ]]; do kill -0 "${pids[0]}" || fail "$(cat rank-0.txt)"; pause; done
address=$(head -1 bare.txt)
strangers=()
for ((n = 0; n < 400; n++)); do # each stays until it is told to go; when no more are let in, others wait for that
    (exec 3<>"/dev/tcp/${address/://}" && cat <&3) >/dev/null 2>&1 &
    strangers+=($!)
done
wait -n "${strangers[@]}" || true # the first was told to go
lines=$(($(wc -l <out-0.txt) + 3))
until [[ $(wc -l <out-0.txt) -ge $lines ]]; do kill -0 "${pids[0]}" || fail "$(cat rank-0.txt)"; pause; done
kill -INT "${pids[0]}"
for r in 0 1 2; do
    status=0 && wait "${pids[r]}" || status=$?
    [[ $status = 130 ]] || fail "rank $r with strangers ended with $status: $(cat rank-$r.txt)"
done
kill "${strangers[@]}" 2>/dev/null || true
"$tools/drps-stat" crowded --verify >/dev/null || fail "the model of the job with strangers does not verify"
grep -q "connections of strangers were refused or ended before they said who they are" rank-0.txt || fail "nothing is said of strangers: $(cat rank-0.txt)"
echo "ok strangers: $(grep strangers rank-0.txt)"

# ---- Ranks that are started one by one ----

# ranks PLAN N OPTIONS...: start ranks 1 to N - 1 (each with its own folder alone) in the background; their ids are in pids
ranks() {
    local plan=$1 n=$2 r
    shift 2
    ports "$n" >peers.txt
    pids=()
    for ((r = 1; r < n; r++)); do
        rm -rf "machine-$r" && mkdir -p "machine-$r/plan" && cp -r "$plan/rank-$r" "machine-$r/plan/"
        "$tools/drps-train" "machine-$r/plan" -o "machine-$r/model" --peers peers.txt --rank $r "$@" --timeout 60 --quiet 2>"rank-$r.txt" &
        pids+=($!)
    done
}

want=$(train plan-lor-3 --local 3 --transport inproc && content)
ranks plan-lor-3 3 --epochs 2
train plan-lor-3 --peers peers.txt --rank 0 --timeout 60
[[ $(content) = "$want" ]] || fail "ranks started one by one: $(content) instead of $want"
for pid in "${pids[@]}"; do wait "$pid" || fail "a rank ended with $?: $(cat rank-*.txt)"; done
[[ -z $(ls -A machine-1 | grep -v '^plan$') ]] || fail "rank 1 left behind: $(ls machine-1)"
echo "ok ranks started one by one"

ranks plan-lor-3 3 --epochs 2 --lr 0.5
fails 2 "rank 1 was started with learning rate 0.5, rank 0 with 0.07.*--lr" "$tools/drps-train" plan-lor-3 -o never --peers peers.txt --rank 0 --epochs 2 --timeout 60
for pid in "${pids[@]}"; do wait "$pid" && fail "a rank did not notice"; done
grep -q "rank 1 was started with learning rate 0.5" rank-2.txt || fail "rank 2 says: $(cat rank-2.txt)"
ranks plan-fm-2 2
fails 2 "rank 1.*plan" "$tools/drps-train" plan-lor-2 -o never --peers peers.txt --rank 0 --timeout 60
wait "${pids[0]}" && fail "rank 1 of another plan did not notice"
fails 75 "rank 1 " "$tools/drps-train" plan-2 -o never --peers peers.txt --rank 0 --timeout 1 # nobody is there
fails 2 "which rank is this" "$tools/drps-train" plan-2 -o never --peers peers.txt
absent never
echo "ok other options"

# Stopped while it waits for others: at once, not after --timeout.
ports 3 >peers.txt
"$tools/drps-train" plan-lor-3 -o never --peers peers.txt --rank 0 --timeout 100000 2>err.txt >out.txt &
waiting=$!
until [[ -S /tmp/drps-ranks.$UID/$(head -1 peers.txt) ]]; do kill -0 $waiting || fail "$(cat err.txt)"; pause; done
kill -INT $waiting
status=0 && wait $waiting || status=$?
[[ $status = 130 ]] || fail "waiting rank 0 ended with $status: $(cat err.txt)"
grep -q "interrupted while waiting for rank 1 " err.txt || fail "waiting rank 0 says: $(cat err.txt)"
absent never
echo "ok interrupted at the start"

# A rank that was killed and started again: all others say so and end, long before they would notice a silence; it waits for
# them, and when they are started again all go on from a checkpoint.
restarted() { # RANK
    local victim=$1 says=(rank-0.txt rank-1.txt rank-2.txt) all r status
    local how=(--epochs 100000 --silence 100 --timeout 60 --checkpoint-every 50b)
    start() { # RANK
        local command=("$tools/drps-train" plan-lor-3 -o never)
        (($1 == 0)) || command=("$tools/drps-train" "machine-$1/plan" -o "machine-$1/model")
        "${command[@]}" --peers peers.txt --rank "$1" "${how[@]}" --resume 2>"${says[$1]}" >again.txt &
        all[$1]=$!
    }
    rm -rf never.checkpoint
    ranks plan-lor-3 3 "${how[@]}"
    "$tools/drps-train" plan-lor-3 -o never --peers peers.txt --rank 0 "${how[@]}" 2>rank-0.txt >out.txt &
    all=($! "${pids[@]}")
    until (($(newest never.checkpoint/rank-0) >= 2)); do kill -0 "${all[0]}" || fail "$(cat rank-0.txt)"; pause; done
    kill -KILL "${all[victim]}"
    wait "${all[victim]}" 2>/dev/null || true
    start $victim
    for r in 0 1 2; do
        ((r != victim)) || continue
        status=0 && wait "${all[r]}" || status=$?
        [[ $status = 75 ]] || fail "rank $r ended with $status after rank $victim was restarted: $(cat "${says[r]}")"
        grep -q "rank $victim was restarted: start all anew" "${says[r]}" || fail "rank $r does not say that rank $victim was restarted: $(cat "${says[r]}")"
    done
    [[ ! -e never ]] || fail "a model although rank $victim was restarted"
    for r in 0 1 2; do ((r == victim)) || start $r; done
    until grep -q "going on from checkpoint" rank-0.txt; do kill -0 "${all[0]}" || fail "$(cat rank-0.txt)"; pause; done
    kill -INT "${all[0]}"
    for r in 0 1 2; do
        status=0 && wait "${all[r]}" || status=$?
        [[ $status = 130 ]] || fail "rank $r ended with $status when all had met again: $(cat "${says[r]}")"
    done
    rm -rf never never.checkpoint
    echo "ok restarted rank $victim"
}
for victim in 0 1; do restarted $victim; done

# Killed, and stopped, while they train.
ends() { # TRAIN-OPTIONS...
    : >out.txt # not by the shell that starts the next command, which may be late: the loop would see the old lines
    ranks plan-lor-3 3 --epochs 100000 "$@"
    "$tools/drps-train" plan-lor-3 -o never --peers peers.txt --rank 0 --epochs 100000 --timeout 60 "$@" 2>err.txt >out.txt &
    master=$!
    until [[ $(wc -l <out.txt) -ge 3 ]]; do kill -0 $master || fail "$(cat err.txt)"; pause; done # a head and two epochs
    kill -KILL "${pids[1]}"
    wait $master && fail "rank 0 did not notice that rank 2 was killed"
    grep -q "rank 2 " err.txt || fail "rank 0 says: $(cat err.txt)"
    wait "${pids[0]}" && fail "rank 1 did not notice that rank 2 was killed"
    grep -q "rank 2 " rank-1.txt || fail "rank 1 says: $(cat rank-1.txt)"
    absent never
    echo "ok killed $*: $(cat err.txt)"

    : >out.txt
    ranks plan-lor-3 3 --epochs 100000 "$@"
    "$tools/drps-train" plan-lor-3 -o stopped --force --peers peers.txt --rank 0 --epochs 100000 --timeout 60 "$@" 2>err.txt >out.txt &
    master=$!
    until [[ $(wc -l <out.txt) -ge 3 ]]; do kill -0 $master || fail "$(cat err.txt)"; pause; done
    kill -INT "${pids[1]}"
    status=0 && wait $master || status=$?
    [[ $status = 130 ]] || fail "rank 0 ended with $status: $(cat err.txt)"
    for pid in "${pids[@]}"; do
        status=0 && wait "$pid" || status=$?
        [[ $status = 130 ]] || fail "a rank ended with $status: $(cat rank-*.txt)"
    done
    "$tools/drps-stat" stopped --verify >/dev/null || fail "the model of the interrupted run does not verify"
    echo "ok interrupted $*"
}
ends
ends --sync asp --silence 1
ends --sync wsp --silence 1

# Killed at any round, the master's process too.
killed() { # RANK TRAIN-OPTIONS...
    local victim=$1 lines=$((1 + RANDOM % 8)) all says=(err.txt rank-1.txt rank-2.txt) r status
    shift
    : >out.txt
    ranks plan-lor-3 3 --epochs 100000 --silence 1 "$@"
    "$tools/drps-train" plan-lor-3 -o never --peers peers.txt --rank 0 --epochs 100000 --silence 1 --timeout 60 "$@" 2>err.txt >out.txt &
    all=($! "${pids[@]}")
    until [[ $(wc -l <out.txt) -ge $lines ]]; do kill -0 "${all[0]}" || fail "$(cat err.txt)"; pause; done
    kill -KILL "${all[victim]}"
    for r in 0 1 2; do
        status=0 && wait "${all[r]}" 2>/dev/null || status=$?
        ((r != victim)) || continue
        [[ $status = 75 ]] || fail "rank $r ended with $status after rank $victim was killed: $(cat "${says[r]}")"
        grep -q "rank $victim (.*dead or cut off" "${says[r]}" || fail "rank $r does not name rank $victim: $(cat "${says[r]}")"
    done
    [[ ! -e never ]] || fail "a model although rank $victim was killed"
    rm -rf never.partial # rank 0 could not tidy up when it was the one
    echo "ok killed rank $victim after $lines lines, $*"
}
for sync in bsp asp wsp; do
    for victim in 0 1; do killed $victim --sync $sync; done
done
