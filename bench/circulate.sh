#!/usr/bin/env bash
# Ratings on several hosts inside one machine (bench/namespaces.sh), each with links of 1 Gbit/s and one core's share of the
# processors: rows that circulate (drps-index --order grid --workers W) against rounds in the same order (--partition range)
# and one host. Prints seconds an epoch (the median from the second on) and MB that a host sends in an epoch; and checks that
# rows that circulate make the model of one host with the same lanes.
#   bench/circulate.sh [HOSTS [RATE]]      the most hosts, 2, 4, ... of them (default 4), and the links' rate in Mbit/s (default 1000)
# Environment, besides lib.sh's: DRPS_BENCH_RATINGS (a file; default: generated, 60K users and 8K items), DRPS_BENCH_SAMPLES (of
# them, default 4M), DRPS_BENCH_BATCHES (default "100 1000"), DRPS_BENCH_EPOCHS (default 5), DRPS_BENCH_FACTORS (default 32)
. "$(dirname "$0")/lib.sh"
hosts=${1:-4} rate=${2:-1000} memory=1024 # of bench/namespaces.sh
samples=${DRPS_BENCH_SAMPLES:-4M} epochs=${DRPS_BENCH_EPOCHS:-5} factors=${DRPS_BENCH_FACTORS:-32}
read -ra batches <<<"${DRPS_BENCH_BATCHES:-100 1000}"
. "$(dirname "$0")/namespaces.sh"

ratings=${DRPS_BENCH_RATINGS:-$work/ratings.tsv}
[[ -n ${DRPS_BENCH_RATINGS:-} ]] || "$tools/drps-gen" matrix --users 60K --items 8K --ratings "$samples" --seed 1 -o "$ratings" --force --quiet

# make_plan NAME WORKERS BATCH INDEX-OPTIONS...
make_plan() {
    "$tools/drps-index" "$ratings" --algo lmf --factors "$factors" --order grid --grid 1,2 --test-fraction 0.05 --workers "$2" \
        --batch-size "$3" -o "$work/$1" --force --quiet --json "${@:4}" >"$work/$1.json"
}

# train NAME WORKERS: on so many hosts, a core each; rank 0's JSON is in out-0
train() {
    local r how
    pids=()
    head -n "$2" "$work/peers-insecure" >"$work/peers"
    for ((r = 0; r < $2; r++)); do
        how=(--insecure --peers "$work/peers" --rank "$r")
        (($2 > 1)) || how=()
        timeout 300 bash -c "$join_cgroup" "${groups[r]}" taskset -c "$((r % $(nproc)))" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$work/$1" -o "$work/host-$r/model" --force "${how[@]}" --epochs "$epochs" --timeout 60 --quiet \
            --json >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < $2; r++)); do wait "${pids[r]}" || fail "rank $r ended with $?: $(cat "$work/err-$r")"; done
    pids=()
}

content() { jq -r .content "$work/out-0"; }

# show NAME WORKERS BATCH LANES
show() {
    local seconds sent
    seconds=$(jq ".epochs[1:][].seconds" "$work/out-0" | median | awk "{printf \"%.3f\", \$1}")
    sent=$(jq --argjson epochs "$epochs" '[.ranks[]?.sent_bytes] | (max // 0) / 1e6 / $epochs * 1000 | round / 1000' "$work/out-0")
    printf '%6d %5d %6d  %-12s %10.3f %14.3f %10.5f\n' "$3" "$4" "$2" "$1" "$seconds" "$sent" "$(jq '.epochs[-1].test_rmse' "$work/out-0")"
    record "circulate|batch $3, $2 hosts|$1: s an epoch" "$seconds" s
    record "circulate|batch $3, $2 hosts|$1: MB a host sends in an epoch" "$sent" MB
}

echo "hosts on $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg), links of $rate Mbit/s, $factors factors, $epochs epochs"
make_hosts
printf '%6s %5s %6s  %-12s %10s %14s %10s\n' batch lanes hosts how "s an epoch" "MB a host sent" "test RMSE"
for batch in "${batches[@]}"; do
    make_plan plain 1 "$batch"
    train plain 1
    show plain 1 "$batch" 1
    for ((w = 2; w <= hosts; w *= 2)); do
        make_plan one 1 "$batch" --lanes "$w"
        train one 1
        show lanes 1 "$batch" "$w"
        want=$(content)
        make_plan circulating "$w" "$batch"
        train circulating "$w"
        [[ $(content) = "$want" ]] || fail "$w hosts make another model than one with as many lanes: $(content), not $want"
        show circulating "$w" "$batch" "$w"
        make_plan rounds "$w" "$batch" --partition range
        train rounds "$w"
        show rounds "$w" "$batch" 1
    done
done
