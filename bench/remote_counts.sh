#!/usr/bin/env bash
# Blocks built over several processes of this machine, joined by ZeroMQ over loopback: what counting sends, and where time goes.
#   bench/remote_counts.sh [RANKS...]       how many (default 1 2 4; 1 is without --peers)
# Prints for each set and builder: seconds of the phase and, of all processes together, of processors; bytes of row lists and
# questions from rank 0 to the others, and of their answers; the longest that one of the others counted, and rank 0 waited. Fails
# where a plan is not that of one process.
# Environment, besides lib.sh's: DRPS_BENCH_SETS (default "ml1m criteo"), DRPS_BENCH_BUILDERS (default "topk auto"; greedy takes minutes),
# DRPS_BENCH_DATA (default ../shared/data)
. "$(dirname "$0")/lib.sh"
data=${DRPS_BENCH_DATA:-$root/../shared/data}
read -ra sets <<<"${DRPS_BENCH_SETS:-ml1m criteo}"
read -ra builders <<<"${DRPS_BENCH_BUILDERS:-topk auto}"
counts=("${@:-1}")
(($#)) || counts=(1 2 4)
fail() { echo "remote_counts.sh: $*" >&2; exit 1; }

load() { # SET: sets `how`, data and options of drps-index
    case $1 in
    ml1m) how=("$data"/ml-1m/ratings*.xz --algo lmf) ;;
    criteo) how=("$data"/criteo-sample/criteo.train*.xz --algo fm) ;;
    *) fail "no set named $1" ;;
    esac
    [[ -e ${how[0]} ]] || { echo "remote_counts.sh: no ${how[0]}: left out" >&2 && return 1; }
    how+=(--factors 8 --batch-size 100 --no-forecast)
}

# build RANKS BUILDER: $work/plan; its summary in $work/index.json, what ranks say in $work/err-R
build() {
    local ranks=$1 how_many=() pids=() r port=$((12000 + RANDOM % 20000))
    local options=(--blocks "$2")
    [[ $2 != topk ]] || options+=(--prune-to 1000)
    rm -rf "$work"/err-* "$work/peers"
    for ((r = 0; r < ranks; r++)); do echo "127.0.0.1:$((port + r))" >>"$work/peers"; done
    ((ranks == 1)) || how_many=(--peers "$work/peers" --timeout 60)
    for ((r = 1; r < ranks; r++)); do
        "$tools/drps-index" "${how_many[@]}" --peer-rank $r -o "$work/plan" 2>"$work/err-$r" &
        pids+=($!)
    done
    ((ranks == 1)) || how_many+=(--peer-rank 0)
    "$tools/drps-index" "${how[@]}" "${options[@]}" "${how_many[@]}" -o "$work/plan" --force --json \
        >"$work/index.json" 2>"$work/err-0" || fail "$(cat "$work"/err-*)"
    for r in "${pids[@]}"; do wait "$r" || fail "$(cat "$work"/err-*)"; done
}

bytes() { sed -n "s/.*: \\([0-9.]* [KMG]*i*B[a-z]*\\) of row lists and questions to other ranks, \\([0-9.]* [KMG]*i*B[a-z]*\\) of answers.*/\\$1/p" "$work/err-0"; }
longest() { cat "$work"/err-* | sed -n "s/.*$1 \\([0-9.]*\\) s.*/\\1/p" | sort -n | tail -1; }

titles="set | builder | processes | phase, s | processors, s | to others | answers | counted at most, s | rank 0 waited, s"
echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for set in "${sets[@]}"; do
    load "$set" || continue
    for builder in "${builders[@]}"; do
        build 1 "$builder"
        rm -rf "$work/one"
        mv "$work/plan" "$work/one"
        for ranks in "${counts[@]}"; do
            TIMEFORMAT='%U %S'
            { time build "$ranks" "$builder" 2>"$work/said"; } 2>"$work/time" || fail "$(cat "$work/said")"
            diff -r "$work/one" "$work/plan" >/dev/null || fail "$set $builder: $ranks processes make another plan than one"
            echo "| $set | $builder | $ranks | $(jq '.phase_seconds.block * 100 | round / 100' "$work/index.json") |" \
                "$(awk '{print $1 + $2}' "$work/time") | $(bytes 1) | $(bytes 2) | $(longest 'counted for') | $(longest 'waited for them') |" | tables counting-ranks 3 "$titles"
        done
    done
done
