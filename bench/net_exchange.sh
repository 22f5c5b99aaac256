#!/usr/bin/env bash
# Nets on one host with one thread, and on 2 and 5 hosts, whose ranks exchange the net's own parameters by a server, add up their
# gradients, or send vectors of layers (drps-train --net-exchange), or exchange all rows by servers with filters. A host is a
# network namespace and a memory cgroup of this machine with a link of its own. For each: samples/s and milliseconds of a round, medians of the epochs but the first; of a round, the
# milliseconds that rank 0 waits for others, the KB that it sends and gets, and the most KB of any rank (with copies of the net's
# parameters, which are sent once); and the last epoch's loss of training samples. The model must be the same whichever way, but with
# filters.
#   bench/net_exchange.sh [RATE...]      the links' rates in Mbit/s (default 1000 and 100)
#   deepfm   DeepFM of 16 factors, generated clicks; with filters, too
#   wide     784-4096-4096-10 with relu, the first images of MNIST (../shared/data/mnist, or in DRPS_BENCH_DATA)
#   alexnet  AlexNet, generated images; 2 hosts alone
# All hosts share this machine's cores: with more hosts than cores a round's computation takes longer than on hosts of their own.
# Needs root, ip, tc and nsenter. Everything it makes goes away at the end.
# Environment, besides lib.sh's: DRPS_BENCH_NETS (nets and samples of a batch, default "deepfm:100 deepfm:1000 wide:100 alexnet:16"),
# DRPS_BENCH_ROUNDS (of an epoch of one host, default 100 of deepfm, 10 of others), DRPS_BENCH_EPOCHS (default 5, 2 of others),
# DRPS_BENCH_HOST_MEMORY (MiB of each host, default 512, 16384 if there are others)
. "$(dirname "$0")/lib.sh"
rates=("$@")
[[ $# -gt 0 ]] || rates=(1000 100)
hosts=5 rate=${rates[0]}
read -ra nets <<<"${DRPS_BENCH_NETS:-deepfm:100 deepfm:1000 wide:100 alexnet:16}"
[[ ${nets[*]} = *[wx]* ]] && memory=16384 || memory=512
memory=${DRPS_BENCH_HOST_MEMORY:-$memory}
. "$(dirname "$0")/namespaces.sh"

# make_data NET SAMPLES: sets `index`, what drps-index is given
make_data() {
    local mnist=${DRPS_BENCH_DATA:-$root/../shared/data}/mnist/train
    case $1 in
    deepfm)
        "$tools/drps-gen" ctr --format libffm --interactions 4 --samples "$2" --rows 100K --seed 1 -o "$work/train" --force --quiet
        index=("$work/train" --algo deepfm --factors 16)
        ;;
    wide)
        "$root/bench/images.py" enlarge 1 "$2" "$mnist-images-idx3-ubyte.xz" "$mnist-labels-idx1-ubyte.xz" "$work/train"
        printf 'x = numbers 784\nh = full 4096 x\nh = relu h\nh = full 4096 h\nh = relu h\nscore = full classes h\n' >"$work/net"
        index=("$work/train-images-idx3-ubyte" --algo net --net "$work/net")
        ;;
    alexnet)
        "$root/bench/images.py" stripes "$2" 1 "$work/train"
        index=("$work/train-images-idx3-ubyte" --algo alexnet)
        ;;
    *) fail "no net is called $1" ;;
    esac
}

# make_plans NET BATCH: for one host in plan-1, and for several, of which each gets its part
make_plans() {
    local n r index
    rm -rf "$work"/plan-* "$work"/host-*/plan-*
    make_data "$1" $((rounds * $2))
    for n in 1 "${counts[@]}"; do
        "$tools/drps-index" "${index[@]}" --batch-size "$2" --workers "$n" -o "$work/plan-$n" --quiet --no-forecast $([[ $n = 1 || $1 != deepfm ]] || echo --residuals each)
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
    local r how=(--net-exchange "$2")
    [[ $2 != filters ]] || how=(--push-values 8bit --push-top 10% --push-flush last --pull-values 8bit --pull-filter psi=0.01)
    for ((r = 0; r < $1; r++)); do
        timeout 1200 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$work/host-$r/plan-$1" -o "$work/host-$r/model" --force --peers "$work/peers-$1" --insecure --rank "$r" \
            "${how[@]}" --epochs "$epochs" --threads 1 --checkpoint-every never --quiet --json >"$work/out-$r" 2>"$work/err-$r" &
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
              else "- | - | - |" end + " \(.epochs[-1].train_loss * 1e4 | round / 1e4) |"' "$work/out-0"
}

# compare NET BATCH
compare() {
    local n r way want rounds epochs counts=(2 "$hosts") ways=(servers sums vectors)
    [[ $1 != deepfm ]] || ways+=(filters)
    [[ $1 = deepfm ]] && rounds=100 epochs=5 || rounds=10 epochs=2
    [[ $1 != alexnet ]] || counts=(2)
    rounds=${DRPS_BENCH_ROUNDS:-$rounds} epochs=${DRPS_BENCH_EPOCHS:-$epochs}
    make_plans "$1" "$2"
    "$tools/drps-train" "$work/plan-1" -o "$work/model" --force --epochs "$epochs" --threads 1 --checkpoint-every never --quiet --json >"$work/out-0"
    row "$1, batches of $2, one host" 1
    for rate in "${rates[@]}"; do
        for ((r = 0; r < hosts; r++)); do
            shape "$space-$r" eth0
            shape "$space-bridge" "port-$r"
        done
        for n in "${counts[@]}"; do
            want=
            for way in "${ways[@]}"; do
                train "$n" $way
                [[ -z $want || $way = filters || $(jq -r .content "$work/out-0") = "$want" ]] || fail "$n hosts, $way: another model"
                want=$(jq -r .content "$work/out-0")
                row "$1, batches of $2, $n hosts, $way, $rate Mbit/s" "$n"
            done
        done
    done
}

make_hosts
{
    echo "| hosts, exchange, link | samples/s | ms of a round | ms that rank 0 waits | KB that rank 0 sends, gets | most KB of any rank | training loss |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    for net in "${nets[@]}"; do compare "${net%:*}" "${net#*:}"; done
} | tables nets-hosts
