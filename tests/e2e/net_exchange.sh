#!/usr/bin/env bash
# Nets on several ranks: whether a server sends the net's own parameters to all, or all add up their gradients, the model is the same
# to the bit, wherever rows lie and whatever happens on the way; bytes are as forecast and even; what cannot be is refused. Filters that
# hold nothing back change no bit; others come to one model, which learns.
. "$(dirname "$0")/lib.sh"
. "$source/tests/e2e/lib_net_ranks.sh"

clicks 3000 1 3000 >train.ffm
clicks 610 2 3000 >test.ffm
cat >net.txt <<'END'
x     = embedding 8
first = linear
pairs = fm x
h     = full 64 x
h     = relu h
h     = dropout 0.2 h
h     = full 64 h
h     = relu h
deep  = full 1 h
score = sum first pairs deep
END
# both PLAN OPTIONS...: each way comes to one model and the same losses; the last run is that of sums
both() {
    local want seen
    train "$@" -o model --net-exchange servers
    want=$(content) seen=$(losses)
    as_forecast "servers, $*"
    train "$@" -o model --net-exchange sums
    [[ -n $want && $(content) = "$want" ]] || fail "$*: sums: $(content), not $want"
    [[ $(losses) = "$seen" ]] || fail "$*: sums: losses $(losses | xargs), not $(xargs <<<"$seen")"
    as_forecast "sums, $*"
}

# ---- One model ----

index train.ffm --test test.ffm --algo net --net net.txt --batch-size 40 --workers 3 -o plan-3
if ! train plan-3 -o model --local 3 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
for ranks in 2 3 5; do
    [[ $ranks = 3 ]] || index train.ffm --test test.ffm --algo net --net net.txt --batch-size 40 --workers $ranks -o plan-$ranks
    for store in resident relay; do both plan-$ranks --local $ranks --epochs 2 --store $store; done
    # 5,826 parameters are 23 KB. Of 3 and more ranks sums take less time, of 2 servers do.
    want=$(content)
    train plan-$ranks -o model --local $ranks --epochs 2
    [[ $(content) = "$want" ]] || fail "$ranks ranks, auto: $(content), not $want"
    sums=$(grep -A 3 '"sums": {' train.json | all_values bytes | awk '{ sum += $1 } END { print (sum > 0) }')
    [[ $sums = "$((ranks > 2))" ]] || fail "$ranks ranks, auto: sums of $(grep -A 3 '"sums": {' train.json | all_values bytes | xargs) bytes"
done
both plan-3 --local 3 --epochs 2 --store file --memory 60M
for options in "--l2 0.001" "--l1 0.0001 --l2 0.001" "--optimizer sgd --lr 0.01" "--optimizer ftrl --l1 0.001" "--optimizer adam" "--no-overlap" "--no-fresh" "--threads 2" "--batch-mean" "--lr-decay cosine" \
    "--patience 1" "--transport inproc"; do
    # shellcheck disable=SC2086  # several words
    both plan-3 --local 3 --epochs 3 $options
done
train plan-3 -o old --local 3 --epochs 1
both plan-3 --local 3 --epochs 2 --from old
for partition in range counts hash greedy; do
    index train.ffm --test test.ffm --algo net --net net.txt --batch-size 40 --workers 3 --partition $partition -o placed
    both placed --local 3 --epochs 2
    [[ $partition != range ]] || both placed --local 3 --epochs 2 --store relay --optimizer adam
done
head -250 train.ffm >few.ffm # whose last round some workers have no samples of
index few.ffm --test test.ffm --algo net --net net.txt --batch-size 40 --workers 5 -o few
both few --local 5 --epochs 3
both few --local 5 --epochs 3 --store relay
echo "ok one model"

# ---- Even shares of bytes ----

train plan-5 -o model --local 5 --epochs 2 --net-exchange servers
most=$(all_values sent_bytes <train.json | sort -g | tail -1)
train plan-5 -o model --local 5 --epochs 2 --net-exchange sums
(($(all_values sent_bytes <train.json | sort -g | tail -1) < most / 2)) || fail "a rank sends $(all_values sent_bytes <train.json | sort -g | tail -1) bytes, with servers $most"
grep -q "each rank has them, and ranks add up their gradients" < <("$tools/drps-stat" plan-5) || fail "drps-stat PLAN does not say what travels"
grep -qE "^ +sums .*own parameters" < <("$tools/drps-stat" model) || fail "drps-stat MODEL does not show sums: $("$tools/drps-stat" model)"
echo "ok bytes"

# ---- Going on: an end, a kill, a rank that is lost ----

local=(--local 3 --epochs 40)
train plan-3 -o model "${local[@]}" --net-exchange servers
want=$(content)
for ways in "sums sums" "sums servers" "servers sums"; do
    rm -rf resumed resumed.checkpoint
    "$tools/drps-train" plan-3 -o resumed --local 3 --epochs 3 --quiet --keep-checkpoints --net-exchange "${ways% *}"
    train plan-3 -o resumed "${local[@]}" --resume --net-exchange "${ways#* }"
    [[ $(content) = "$want" ]] || fail "$ways, resumed: $(content), not $want"
done
children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
# killed PLAN OPTIONS...: a run that is killed after its third checkpoint, which it leaves
killed() {
    local i pid others
    rm -rf killed killed.checkpoint
    "$tools/drps-train" "$1" -o killed "${@:2}" --quiet &
    pid=$!
    for ((i = 0; i < 1000; i++)); do
        (($(newest killed.checkpoint/rank-0) < 3)) || break
        kill -0 $pid 2>/dev/null || break
        pause
    done
    others=$(children $pid)
    # shellcheck disable=SC2086  # several processes
    kill -9 $pid $others 2>/dev/null || :
    wait $pid 2>/dev/null || :
    (($(newest killed.checkpoint/rank-0) >= 3)) || fail "$*: no checkpoint before it was killed"
}
for store in resident relay; do
    killed plan-3 "${local[@]}" --store $store --checkpoint-every 20b --net-exchange sums
    train plan-3 -o killed "${local[@]}" --store $store --resume --net-exchange sums
    [[ $(content) = "$want" ]] || fail "$store: killed and resumed: $(content), not $want"
done
for whom in 0 2; do # rank 0 has the net's parameters, rank 2 a copy
    rm -rf lost lost.checkpoint
    "$tools/drps-train" plan-3 -o lost "${local[@]}" --checkpoint-every 30b --on-failure resume --json --net-exchange sums >train.json 2>err.txt &
    watcher=$!
    until (($(newest lost.checkpoint/rank-0) >= 2)); do
        kill -0 $watcher 2>/dev/null || fail "no checkpoint: $(cat err.txt)"
        pause
    done
    read -ra pids <<<"$(children $watcher) $(for pid in $(children $watcher); do children "$pid"; done)"
    kill -KILL "${pids[whom]}"
    wait $watcher || fail "rank $whom lost: $(cat err.txt)"
    grep -q "rank $whom was killed by signal 9 (Killed): starting anew" err.txt || fail "rank $whom lost, and not noticed: $(cat err.txt)"
    [[ $(content) = "$want" ]] || fail "rank $whom lost: $(content), not $want"
done
echo "ok going on"

# ---- Filters ----

sent() { all_values sent_bytes <train.json | awk '{ sum += $1 } END { print sum }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
learns() { # WHAT
    less "$(all_values test_loss <train.json | tail -1)" 0.3 || fail "$1 does not learn: $(all_values test_loss <train.json | xargs)"
}
for placed in "3 auto" "2 range"; do # by range several ranks have the net's parameters
    ranks=${placed% *}
    index train.ffm --test test.ffm --algo net --net net.txt --batch-size 40 --workers "$ranks" --partition "${placed#* }" --residuals each -o kept
    "$tools/drps-stat" kept --verify >/dev/null || fail "$placed: the plan does not verify"
    run=(kept -o model --local "$ranks" --epochs 4 --lr 0.05)
    train "${run[@]}" --net-exchange sums
    want=$(content)
    for options in "--push-filter phi=0,d=0" "--push-values 32bit --push-flush last" "--pull-filter psi=0" "--push-filter phi=0 --pull-values 32bit"; do
        # shellcheck disable=SC2086  # several words
        train "${run[@]}" $options
        [[ $(content) = "$want" ]] || fail "$placed, $options: $(content), not $want"
        grep -q '"sums": {' train.json && (($(grep -A 3 '"sums": {' train.json | all_values bytes | awk '{ sum += $1 } END { print sum }') > 0)) &&
            fail "$placed, $options: gradients are added up by all"
    done
    train "${run[@]}" --net-exchange servers
    most=$(sent)
    for options in "--push-values 8bit --push-top 10%" "--push-values 16bit --push-filter phi=0.1,d=0.1,p=0.9" "--push-values 8bit --push-top 10% --push-flush last,8bit" \
        "--pull-values 8bit" "--pull-values 16bit --pull-filter psi=0.02,d=0.1" "--push-values 8bit --push-top 10% --pull-values 8bit --pull-filter psi=0.02"; do
        # shellcheck disable=SC2086  # several words
        train "${run[@]}" $options --transport inproc
        got=$(content)
        [[ $got != "$want" ]] || fail "$placed, $options: nothing was held back"
        less "$(sent)" $((most * 9 / 10)) || fail "$placed, $options: $(sent) bytes, without $most"
        learns "$placed, $options"
        for store in relay file; do
            # shellcheck disable=SC2086  # several words
            train "${run[@]}" $options --store $store --memory 60M --no-overlap
            [[ $(content) = "$got" ]] || fail "$placed, $options, $store: $(content), not $got"
        done
    done
    options=(--local "$ranks" --epochs 200 --push-values 8bit --push-top 10% --push-flush last --pull-values 8bit --pull-filter psi=0.01)
    train kept -o model "${options[@]}"
    got=$(content)
    killed kept "${options[@]}" --checkpoint-every 10e # with what is held back over epochs
    train kept -o killed "${options[@]}" --resume
    [[ $(content) = "$got" ]] || fail "$placed: killed with gradients held back, and resumed: $(content), not $got"
    for sync in "asp --push-values 8bit --push-top 10% --pull-values 16bit" "wsp --push-values 8bit --push-top 10%" \
        "ssp --staleness 4 --push-values 8bit --push-top 10% --push-flush last --pull-values 16bit --pull-cached"; do
        # shellcheck disable=SC2086  # several words
        train "${run[@]}" --sync $sync
        less "$(sent)" $((most * 9 / 10)) || fail "$placed, $sync: $(sent) bytes, under bsp and without filters $most"
        learns "$placed, $sync"
    done
    fails 2 "filters are for what goes to servers, or comes from there.*leave the exchange of a net's own parameters to servers \(--net-exchange\)" \
        "$tools/drps-train" "${run[@]}" --push-values 8bit --net-exchange sums --quiet --force
done
index --from-plan plan-3 --workers 3 --residuals 700 -o few # for 648 rows of the net, and some of features
train few -o model --local 3 --epochs 4 --lr 0.05 --push-values 8bit
learns "few slots"
train few -o model --local 3 --epochs 2 --filter-target 2%
grep -q '"filter_target"' train.json || fail "no filters are tried"
echo "ok filters"

# ---- What cannot be ----

refused() { # PATTERN TRAIN-OPTIONS...
    fails 2 "$1" "$tools/drps-train" "${@:2}" -o none --net-exchange sums --quiet
    absent none
}
refused "workers add up gradients in rounds, which are of synchronisation bsp" plan-3 --local 3 --sync ssp
index train.ffm --algo net --net net.txt -o one
refused "a plan for one worker" one
index train.ffm --algo fm --workers 3 -o fm
refused "its model is no net" fm --local 3
index --from-plan plan-2 --workers 2 --servers 1 --separate -o separate
refused "not every rank is a worker" separate --local 3
for plan in "plan-3 --local 3 --sync asp" "separate --local 3" "fm --local 3"; do
    # shellcheck disable=SC2086  # several words
    train $plan -o model --epochs 1
    [[ -n $(content) ]] || fail "$plan: no model"
done
fails 2 "'all' is not one of: auto, servers, sums, vectors" "$tools/drps-train" plan-3 -o none --local 3 --net-exchange all
echo "ok"
