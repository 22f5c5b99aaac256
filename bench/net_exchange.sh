#!/usr/bin/env bash
# DeepFM of 16 factors on one host with one thread, and on 2 and 5 hosts, whose ranks exchange the net's own parameters by a server, or
# add up their gradients (drps-train --net-exchange). A host is a network namespace and a memory cgroup of this machine with a link of
# its own. For each: samples/s and milliseconds of a round, medians of the epochs but the first; of a round, the milliseconds that rank 0
# waits for others, the KB that it sends and gets, and the most KB of any rank (with copies of the net's parameters, which are sent
# once). The model must be the same whichever way.
#   bench/net_exchange.sh [RATE...]      the links' rates in Mbit/s (default 1000 and 100)
# All hosts share this machine's cores: with more hosts than cores a round's computation takes longer than on hosts of their own.
# Needs root, ip, tc and nsenter. Everything it makes goes away at the end.
# Environment, besides lib.sh's: DRPS_BENCH_BATCHES (their samples, one size after another, default "100 1000"), DRPS_BENCH_ROUNDS (of an
# epoch of one host, default 100), DRPS_BENCH_EPOCHS (default 5), DRPS_BENCH_HOST_MEMORY (MiB of each host, default 512)
. "$(dirname "$0")/lib.sh"
rates=("$@")
[[ $# -gt 0 ]] || rates=(1000 100)
hosts=5 rate=${rates[0]}
epochs=${DRPS_BENCH_EPOCHS:-5} rounds=${DRPS_BENCH_ROUNDS:-100} memory=${DRPS_BENCH_HOST_MEMORY:-512}
read -ra batches <<<"${DRPS_BENCH_BATCHES:-100 1000}"
. "$(dirname "$0")/namespaces.sh"

# make_plans BATCH: for one host in plan-1, and for 2 and all, of which each gets its part
make_plans() {
    local n r
    rm -rf "$work"/plan-* "$work"/host-*/plan-*
    "$tools/drps-gen" ctr --format libffm --interactions 4 --samples $((rounds * $1)) --rows 100K --seed 1 -o "$work/train" --force --quiet
    for n in 1 2 $hosts; do
        "$tools/drps-index" "$work/train" --algo deepfm --factors 16 --batch-size "$1" --workers "$n" -o "$work/plan-$n" --quiet --no-forecast
        ((n > 1)) || continue
        for ((r = 0; r < n; r++)); do
            mkdir "$work/host-$r/plan-$n"
            mv "$work/plan-$n/rank-$r" "$work/host-$r/plan-$n/"
        done
        mv "$work/plan-$n"/* "$work/host-0/plan-$n/"
        head -n "$n" "$work/peers-insecure" >"$work/peers-$n"
    done
}

# train N WAY: all ranks; rank 0's JSON is left in out-0
train() {
    local r
    for ((r = 0; r < $1; r++)); do
        timeout 300 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$work/host-$r/plan-$1" -o "$work/host-$r/model" --force --peers "$work/peers-$1" --insecure --rank "$r" \
            --net-exchange "$2" --epochs "$epochs" --threads 1 --checkpoint-every never --quiet --json >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < $1; r++)); do
        wait "${pids[r]}" || fail "rank $r ended with $?: $(cat "$work/err-$r")"
    done
    pids=()
}

# row NAME HOSTS: of out-0
row() {
    jq -r --arg name "$1" --argjson rounds $(((rounds - 1) / $2 + 1)) --argjson epochs "$epochs" '
        def kb: . / $epochs / $rounds / 1000 | round;
        ([.epochs[1:][]] | sort_by(.samples_per_s) | .[length / 2 | floor]) as $e
        | "| \($name) | \($e.samples_per_s / 100 | round / 10) K | \($e.seconds * 1e4 / $rounds | round / 10) | "
            + if .ranks then
                "\(.ranks[0].network_seconds * 1e4 / $epochs / $rounds | round / 10) | \(.ranks[0].sent_bytes | kb), \(.ranks[0].received_bytes | kb) | " +
                "\([.ranks[].sent_bytes] | max | kb), \([.ranks[].received_bytes] | max | kb) |"
              else "- | - | - |" end' "$work/out-0"
}

# compare BATCH
compare() {
    local n r way want
    make_plans "$1"
    "$tools/drps-train" "$work/plan-1" -o "$work/model" --force --epochs "$epochs" --threads 1 --checkpoint-every never --quiet --json >"$work/out-0"
    row "batches of $1, one host" 1
    for rate in "${rates[@]}"; do
        for ((r = 0; r < hosts; r++)); do
            shape "$space-$r" eth0
            shape "$space-bridge" "port-$r"
        done
        for n in 2 $hosts; do
            want=
            for way in servers sums; do
                train "$n" $way
                [[ -z $want || $(jq -r .content "$work/out-0") = "$want" ]] || fail "$n hosts, $way: another model"
                want=$(jq -r .content "$work/out-0")
                row "batches of $1, $n hosts, $way, $rate Mbit/s" "$n"
            done
        done
    done
}

make_hosts
{
    echo "| hosts, exchange, link | samples/s | ms of a round | ms that rank 0 waits | KB that rank 0 sends, gets | most KB of any rank |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for batch in "${batches[@]}"; do compare "$batch"; done
} | tables nets-hosts
