#!/usr/bin/env bash
# Xie et al., "Orpheus", Table 4, with training: MLR of 20 News Groups on 4 ranks of this machine, which exchange vectors: seconds of a run
# without checkpoints; with all rows every 100 rounds (at the next end of an epoch: of 29 rounds here); with logs of vectors; and of the
# latter two where all ranks are killed (-9), and go on with --resume, after so many rounds of each attempt as a draw with probability
# .01 a round says, counted in epochs that it has told of, and the rest by the clock. All end with the same model, or the script fails. "1 round": each
# round is made durable; "10 s": the default. Bytes are those of rank 0.
#   bench/papers/orpheus-table4-training.sh [--quick] [DATA]
# Environment: bench/lib.sh's; DRPS_BENCH_RUNS (default 3; medians), DRPS_BENCH_SEED.
. "$(dirname "$0")/lib.sh"
there 20news "nothing" || exit 77
epochs=$(quickly 6 60) runs=${DRPS_BENCH_RUNS:-$(quickly 1 3)} seed=${DRPS_BENCH_SEED:-1}
packed 20news/20news.train.libsvm.xz >"$work/train.svm"
packed 20news/20news.test.libsvm.xz >"$work/test.svm"
"$tools/drps-index" "$work/train.svm" --test "$work/test.svm" --algo mlr --workers 4 --batch-size 100 -o "$work/plan" --force --quiet
batches=$(jq .batches "$work/plan/rank-0/plan.json")
rounds=$((epochs * batches))

train() { "$tools/drps-train" "$work/plan" -o "$work/model" --local 4 --epochs "$epochs" --exchange vectors "$@" --quiet --json; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { print b - a }'; }
clear() { rm -rf "$work/model" "$work"/model.*; }
same() {
    [[ $(jq -r .content "$work/$1.json") = "$content" ]] || { echo "$1: another model: $(jq -r .content "$work/$1.json")" >&2 && exit 1; }
}

# once NAME OPTIONS...: a run that nobody disturbs; its seconds go to NAME.times
once() {
    local name=$1 began
    shift
    clear
    began=$(now)
    train "$@" >"$work/$name.json"
    since "$began" >>"$work/$name.times"
}

# draw N: rounds until the Nth failure, from the one before
draw() {
    awk -v seed=$((seed * 1000 + $1)) 'BEGIN { srand(seed); rand(); print 1 + int(log(1 - rand()) / log(.99)) }'
}

# passed RUN EPOCHS SECONDS: waits until a run has told of so many epochs in $work/out, and then so long; fails when it has ended before
passed() {
    while (($(grep -cE '^ +[0-9]+ ' "$work/out" || true) < $2)); do
        kill -0 "$1" 2>/dev/null || return 1
        sleep .01
    done
    ! timeout "$3" tail -s .01 --pid="$1" -f /dev/null
}

# failing NAME OPTIONS...: attempts that each are killed after some rounds, until one comes to its end before that
failing() {
    local name=$1 began k run ranks failures=0
    shift
    clear
    began=$(now)
    while :; do
        k=$(draw $failures)
        : >"$work/out"
        "$tools/drps-train" "$work/plan" -o "$work/model" --local 4 --epochs "$epochs" --exchange vectors "$@" --resume >"$work/out" 2>"$work/err" &
        run=$!
        passed $run $((k / batches)) "$(awk -v k=$((k % batches)) -v r="$round" -v s="$start" 'BEGIN { print s + k * r }')" || break
        mapfile -t ranks < <(pgrep -P "$run")
        kill -9 "$run" "${ranks[@]}" 2>/dev/null || true
        if wait "$run" 2>/dev/null; then break; fi # its work was done
        failures=$((failures + 1))
    done
    wait "$run" || { cat "$work/err" >&2 && exit 1; }
    since "$began" >>"$work/$name.times"
    echo "$failures" >>"$work/$name.failures"
    "$tools/drps-stat" "$work/model" --json >"$work/$name.json"
    same "$name"
}

# restore NAME OPTIONS...: seconds until the first step, where NAME's checkpoints are gone on from at about two thirds of the run
restore() {
    local name=$1 run
    shift
    clear
    train "$@" >/dev/null 2>&1 &
    run=$!
    timeout "$(awk -v s="$start" -v r="$round" -v n="$rounds" 'BEGIN { print s + r * n * 2 / 3 }')" tail -s .02 --pid="$run" -f /dev/null || true
    pgrep -P "$run" | xargs -r kill -9 2>/dev/null || true
    wait "$run" || true
    train "$@" --resume >"$work/$name-resumed.json"
    jq .first_step_seconds "$work/$name-resumed.json" >>"$work/$name.first"
}

once none --checkpoint-every never # and what is measured by it
content=$(jq -r .content "$work/none.json")
start=$(jq .first_step_seconds "$work/none.json")
round=$(jq --argjson n "$rounds" '([.epochs[].seconds] | add) / $n' "$work/none.json")
rm "$work/none.times"
matrix=(--checkpoint-every 100b)
vectors=(--checkpoint-vectors --checkpoint-every 1b)
for ((i = 0; i < runs; i++)); do
    seed=$((seed + i))
    once none --checkpoint-every never
    jq .first_step_seconds "$work/none.json" >>"$work/none.first"
    once matrix "${matrix[@]}" && same matrix
    once vectors "${vectors[@]}" && same vectors
    once seldom --checkpoint-vectors && same seldom
    failing matrix-failing "${matrix[@]}"
    failing vectors-failing "${vectors[@]}"
    restore matrix "${matrix[@]}"
    restore vectors "${vectors[@]}"
done

# row LABEL PAPER NAME: of its runs
row() {
    local seconds none failures=0 first="" bytes="" log=""
    seconds=$(median <"$work/$3.times") none=$(median <"$work/none.times")
    [[ ! -e $work/$3.failures ]] || failures=$(median <"$work/$3.failures")
    [[ ! -e $work/$3.first ]] || first=$(median <"$work/$3.first" | xargs printf '%.3f')
    if [[ $3 != *-failing ]]; then # of a run in attempts the last one's are known alone
        bytes=$(jq '.checkpoints.bytes / 1e6' "$work/$3.json") log=$(jq '(.checkpoints.log_bytes // 0) / 1e6' "$work/$3.json")
    fi
    printf '| %s | %s | %.2f | %.2f | %s | %s | %s | %s |\n' "$1" "$2" "$seconds" \
        "$(awk -v a="$seconds" -v b="$none" 'BEGIN { print a / b }')" "$failures" "${bytes:+$(printf %.1f "$bytes")}" "${log:+$(printf %.1f "$log")}" "$first"
}
{
    row "no checkpoints" 1.9 none
    row "rows every 100 rounds" 2.4 matrix
    row "vectors, 1 round" 1.9 vectors
    row "vectors, 10 s" "" seldom
    row "failures: rows" 2.9 matrix-failing
    row "failures: vectors, 1 round" 2.3 vectors-failing
} | table paper-orpheus-training 1 "run | paper: hours | seconds | of the first | failures | MB of checkpoints | MB of logs | s to the first step"
