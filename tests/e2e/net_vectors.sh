#!/usr/bin/env bash
# Nets on several ranks whose gradients of full and lstm layers go as vectors: the model is that of sums and of servers, to the bit,
# whatever happens on the way; fewer bytes are sent; memory is what was given; what cannot be is refused.
. "$(dirname "$0")/lib.sh"
. "$source/tests/e2e/lib_net_ranks.sh"

clicks 1200 1 900 >train.ffm
clicks 310 2 900 >test.ffm
# Line 7 is 96 x 200, of which 20 samples are fewer bytes. Line 4 has too few floats for that.
cat >net.txt <<'END'
x     = embedding 4
first = linear
pairs = fm x
h     = full 96 x
h     = relu h
h     = dropout 0.2 h
h     = full 200 h
h     = relu h
deep  = full 1 h
score = sum first pairs deep
END
# kind NAME: bytes of it that all ranks have sent
kind() { grep -A 3 "\"$1\": {" train.json | all_values bytes | awk '{ sum += $1 } END { print sum + 0 }'; }
lines() { grep -A 100 '"vectors_of": \[' train.json | all_values line | xargs; }
# both PLAN OPTIONS...: each way comes to one model and the same losses; the last run is that of vectors
both() {
    local want seen sums
    train "$@" -o model --net-exchange sums
    want=$(content) seen=$(losses) sums=$(kind sums)
    [[ $(kind vectors) = 0 ]] || fail "$*: sums: vectors of $(kind vectors) bytes"
    train "$@" -o model --net-exchange vectors
    [[ -n $want && $(content) = "$want" ]] || fail "$*: vectors: $(content), not $want"
    [[ $(losses) = "$seen" ]] || fail "$*: vectors: losses $(losses | xargs), not $(xargs <<<"$seen")"
    as_forecast "vectors, $*"
    (($(kind vectors) > 0 && $(kind vectors) + $(kind sums) < sums)) || fail "$*: vectors $(kind vectors) and sums $(kind sums), alone $sums"
}

# ---- One model ----

index train.ffm --test test.ffm --algo net --net net.txt --batch-size 20 --workers 3 -o plan-3
if ! train plan-3 -o model --local 3 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
for ranks in 2 3 5; do
    [[ $ranks = 3 ]] || index train.ffm --test test.ffm --algo net --net net.txt --batch-size 20 --workers $ranks -o plan-$ranks
    train plan-$ranks -o model --local $ranks --epochs 2 --net-exchange servers
    want=$(content)
    for store in resident relay; do both plan-$ranks --local $ranks --epochs 2 --store $store; done
    [[ $(content) = "$want" ]] || fail "$ranks ranks: $(content), not $want of servers"
    [[ $(value way <<<"$(sed 's/^    /  /' train.json)") = vectors && $(lines) = 7 ]] || fail "$ranks ranks: vectors of lines $(lines)"
done
both plan-3 --local 3 --epochs 2 --store file --memory 60M
for options in "--l2 0.001" "--l1 0.0001 --l2 0.001" "--optimizer sgd --lr 0.01" "--optimizer ftrl --l1 0.001" "--optimizer adam" "--no-overlap" "--threads 3" "--batch-mean" "--lr-decay cosine" \
    "--patience 1" "--transport inproc" "--transport inproc --threads 2"; do
    # shellcheck disable=SC2086  # several words
    both plan-3 --local 3 --epochs 2 $options
done
for partition in range hash; do
    index train.ffm --test test.ffm --algo net --net net.txt --batch-size 20 --workers 3 --partition $partition -o placed
    both placed --local 3 --epochs 2
done
head -250 train.ffm >few.ffm # whose last round some workers have no samples of
index few.ffm --test test.ffm --algo net --net net.txt --batch-size 20 --workers 5 -o few
both few --local 5 --epochs 3
both few --local 5 --epochs 2 --store relay --threads 2
# Sequences, whose chunks end where these do: the gates of lstm, 76 x 280, and `full classes`.
awk 'BEGIN { srand(3); for (i = 0; i < 150; i++) { for (k = 0; k < 3 + rand() * 12; k++) printf "w%d ", rand() * rand() * 400; print "" } }' >text.txt
printf 'x = bag 6\nh = lstm 70 x\nscore = full classes h\n' >lstm.txt
for ranks in 2 3 5; do
    index text.txt --algo net --net lstm.txt --format tokens --sequence lines --batch-size 20 --workers $ranks -o text
    train text -o model --local $ranks --epochs 2 --net-exchange servers
    want=$(content)
    both text --local $ranks --epochs 2
    [[ $(content) = "$want" ]] || fail "sequences, $ranks ranks: $(content), not $want of servers"
    [[ $(lines) = "2 3" ]] || fail "sequences, $ranks ranks: vectors of lines $(lines)"
    for options in "--threads 2" "--store relay --threads 2" "--optimizer adam"; do
        # shellcheck disable=SC2086  # several words
        both text --local $ranks --epochs 2 $options
    done
done
index text.txt --algo net --net lstm.txt --format tokens --sequence lines --batch-size 20 --workers 2 -o text
grep -q "of these as vectors those of layers: line 2 (76 x 280), line 3 (70 x 274)" < <("$tools/drps-stat" text) || fail "drps-stat, of lstm: $("$tools/drps-stat" text)"
echo "ok one model"

# ---- What is chosen, and said ----

# By itself it is vectors where they save more than products take; 9 KiB less is not worth a step.
train plan-3 -o model --local 3 --epochs 2
[[ $(lines) = 7 && $(kind vectors) -gt 0 ]] || fail "auto: vectors of lines $(lines)"
index train.ffm --test test.ffm --algo net --net net.txt --batch-size 60 --workers 3 -o large
train large -o model --local 3 --epochs 1 --net-exchange vectors
[[ -z $(lines) && $(kind vectors) = 0 && $(kind sums) -gt 0 ]] || fail "large batches: vectors of lines $(lines)"
grep -q "of these as vectors those of layers: line 7 (96 x 200)" < <("$tools/drps-stat" plan-3) || fail "drps-stat PLAN: $("$tools/drps-stat" plan-3)"
"$tools/drps-train" plan-3 -o model --force --local 3 --epochs 1 --net-exchange vectors >out.txt 2>err.txt
grep -qE "^  net +gradients exchanged as vectors of layers: line 7 \(96 x 200\); as sums of [0-9,]+ parameters$" out.txt || fail "$(cat out.txt)"
grep -qE "^ +vectors .*of a net's layers" < <("$tools/drps-stat" model) || fail "drps-stat MODEL does not show vectors: $("$tools/drps-stat" model)"
echo "ok chosen"

# ---- Memory ----

# A wide net: W of line 3 is 6.1 MiB, of which products need several, with vectors and messages.
printf 'x = embedding 4\nh = full 800 x\nh = full 2000 h\nh = tanh h\nscore = full 1 h\n' >wide.txt
index train.ffm --algo net --net wide.txt --batch-size 20 --workers 2 -o wide
least() { # OPTIONS...: MiB of --memory that do for all ranks
    { "$tools/drps-train" wide -o none --local 2 --memory 1M --quiet "$@" 2>&1 || :; } |
        sed -n 's/.* at least \([0-9]*\)\..* MiB is needed.*/\1/p' | sort -n | tail -1 | awk '{ print $1 + 1 }'
}
sums=$(least --net-exchange sums) vectors=$(least --net-exchange vectors)
((vectors >= sums + 18)) || fail "with sums ${sums}M are the least, with vectors ${vectors}M"
train wide -o model --local 2 --epochs 1 --net-exchange vectors --memory "${vectors}M"
for peak in $(all_values peak_rss_bytes <train.json); do
    ((peak <= vectors << 20)) || fail "$peak bytes in memory, of ${vectors}M"
done
echo "ok memory"

# ---- Going on: an end, a kill, a rank that is lost ----

local=(--local 3 --epochs 30)
train plan-3 -o model "${local[@]}" --net-exchange sums
want=$(content)
for ways in "vectors vectors" "vectors servers" "sums vectors"; do
    rm -rf resumed resumed.checkpoint
    "$tools/drps-train" plan-3 -o resumed --local 3 --epochs 3 --quiet --keep-checkpoints --net-exchange "${ways% *}"
    train plan-3 -o resumed "${local[@]}" --resume --net-exchange "${ways#* }"
    [[ $(content) = "$want" ]] || fail "$ways, resumed: $(content), not $want"
done
children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
"$tools/drps-train" plan-3 -o killed "${local[@]}" --checkpoint-every 20b --quiet --net-exchange vectors &
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
(($(newest killed.checkpoint/rank-0) >= 3)) || fail "no checkpoint before it was killed"
train plan-3 -o killed "${local[@]}" --resume --net-exchange vectors
[[ $(content) = "$want" ]] || fail "killed and resumed: $(content), not $want"
for whom in 0 2; do # rank 0 has the net's parameters, rank 2 a copy
    rm -rf lost lost.checkpoint
    "$tools/drps-train" plan-3 -o lost "${local[@]}" --checkpoint-every 30b --on-failure resume --json --net-exchange vectors >train.json 2>err.txt &
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

# ---- Machines that compute otherwise ----

# Two ranks, of which one takes the kernels of an old processor. start WAY: their messages are in err-0 and err-1
start() {
    local pids=() status=0
    mapfile -t peers < <(ports 2)
    printf '%s\n' "${peers[@]}" >peers.txt
    OPENBLAS_CORETYPE=Prescott "$tools/drps-train" plan-2 -o apart --force --epochs 1 --rank 1 --peers peers.txt --insecure --quiet --net-exchange "$1" 2>err-1 &
    pids+=($!)
    "$tools/drps-train" plan-2 -o apart --force --epochs 1 --rank 0 --peers peers.txt --insecure --quiet --json --net-exchange "$1" >train.json 2>err-0 || status=$?
    wait "${pids[@]}" || status=$?
    return $status
}
if start vectors; then
    [[ $(kind vectors) -gt 0 ]] || fail "no vectors, and no reason" # a build without OpenBLAS, or with another one
else
    grep -q "ranks compute products of matrices with different kernels of OpenBLAS" err-0 || fail "$(cat err-0 err-1)"
    start auto || fail "$(cat err-0 err-1)"
    [[ $(kind vectors) = 0 && $(kind sums) -gt 0 ]] || fail "auto: $(kind vectors) bytes of vectors"
fi
echo "ok machines"

# ---- What cannot be ----

refused() { # PATTERN TRAIN-OPTIONS...
    fails 2 "$1" "$tools/drps-train" "${@:2}" -o none --net-exchange vectors --quiet
    absent none
}
refused "workers add up gradients in rounds, which are of synchronisation bsp" plan-3 --local 3 --sync ssp
index train.ffm --algo net --net net.txt -o one
refused "a plan for one worker" one
index train.ffm --algo fm --workers 3 -o fm
refused "its model is no net" fm --local 3
echo "ok"
