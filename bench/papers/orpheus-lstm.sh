#!/usr/bin/env bash
# Xie et al., "Orpheus", Table 3, LSTM: the matrix's gradient by servers (Matrix+PS) and as vectors (SVB), and added up by an all-reduce,
# which the paper has not. A language model on the first lines of the Penn Treebank: `lstm 1000` over `bag 200`, and scores of all words;
# sequences of 20 words, batches of 100 a rank; 2, 4 and 8 hosts inside this machine (bench/namespaces.sh) with links of 1 Gbit/s and a thread
# each. It fails where a way comes to another model. Seconds are of the last epoch; gradients (a rank's own, and those of others' vectors) and
# waiting of an epoch of a rank on average; bytes are with copies of the parameters, which rank 0 sends once. Times are of hosts that share
# this machine's cores; bytes do not depend on it.
#   bench/papers/orpheus-lstm.sh [--quick] [DATA]
# Needs root, iproute2 and util-linux. Environment: bench/lib.sh's; DRPS_BENCH_HOSTS (at most, default 8), DRPS_BENCH_RATE (Mbit/s of a
# link, default 1000), DRPS_BENCH_EPOCHS (default 2), DRPS_BENCH_LINES (default 300).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
there ptb "nothing" || exit 77
figure=paper-orpheus-lstm
hosts=$(quickly 2 "${DRPS_BENCH_HOSTS:-8}") rate=${DRPS_BENCH_RATE:-1000} memory=4096
epochs=$(quickly 1 "${DRPS_BENCH_EPOCHS:-2}")
. "$(dirname "${BASH_SOURCE[0]}")/../namespaces.sh"

# train RANKS WAY: all ranks; rank 0's result is in $work/out-0
train() {
    local ranks=$1 r
    for ((r = 0; r < ranks; r++)); do
        timeout 1200 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$work/plan-$ranks" -o "$work/host-$r/model" --force --peers "$work/peers-$ranks" --insecure --rank "$r" \
            --net-exchange "$2" --epochs "$epochs" --lr .008 --threads 1 --checkpoint-every never --timeout 120 --quiet --json \
            >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < ranks; r++)); do
        wait "${pids[r]}" || fail "$ranks, $2: rank $r ended with $?: $(cat "$work/err-$r")"
    done
    pids=()
}

# row NAME FIRST: a line of the table; FIRST: seconds of the first way
# shellcheck disable=SC2016 # jq expands
row() {
    jq -r --arg name "$1" --argjson first "$2" --argjson rate "$rate" '
        def places(n): . * pow(10; n) | round / pow(10; n);
        (.epochs | length) as $n | .epochs[-1].seconds as $s | ([.ranks[] | .sent_bytes, .received_bytes] | max / $n / 1e6) as $most
        | def mean: add / length / $n;
        "| \($name) | \($s | places(1)) | \($s / $first | places(2)) | \([.ranks[].sent_bytes] | mean / 1e6 | round) | \($most | round) | "
        + "\($most * 8 / $rate | places(2)) | \([.ranks[].compute_seconds] | mean | places(1)) | \([.ranks[].waiting_seconds] | mean | places(1)) |"' \
        "$work/out-0"
}

# compare RANKS: lines of the table
compare() {
    local way name want="" first=""
    "$tools/drps-index" "$work/train.txt" --algo net --net "$work/net" --sequence 20 --batch-size 100 --workers "$1" -o "$work/plan-$1" --quiet \
        --no-forecast
    head -n "$1" "$work/peers-insecure" >"$work/peers-$1"
    for way in servers sums vectors; do
        train "$1" $way
        [[ -z $want || $(jq -r .content "$work/out-0") = "$want" ]] || fail "$1 ranks, $way: another model"
        want=$(jq -r .content "$work/out-0")
        first=${first:-$(jq .epochs[-1].seconds "$work/out-0")}
        case $way in servers) name="servers (Matrix+PS)" ;; sums) name="all-reduce" ;; vectors) name="vectors (SVB)" ;; esac
        row "$1, $name" "$first"
    done
}

packed ptb/ptb.train.txt.xz "$(quickly 100 "${DRPS_BENCH_LINES:-300}")" >"$work/train.txt"
printf 'x = bag 200\nh = lstm 1000 x\nscore = full classes h\n' >"$work/net"
make_hosts
echo "$hosts hosts on $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg), links of $rate Mbit/s; $(wc -w <"$work/train.txt") words, $epochs epochs"
while read -r hours name; do record "$figure|40 in the paper, $name|paper: hours" "$hours"; done <<'TEXT'
16.8 servers (Matrix+PS)
8.6 vectors (SVB)
TEXT
for ranks in 2 4 8; do
    ((ranks > hosts)) || compare "$ranks"
done | table "$figure" 1 "ranks, way | s of an epoch | of servers | MB a rank sends in an epoch | MB of the busiest link | s of the busiest link | s of gradients | s waiting"
