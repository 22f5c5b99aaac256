#!/usr/bin/env bash
# Is a cluster faster than one machine? Hosts inside one machine (bench/namespaces.sh), each with links of 1 Gbit/s and a core
# of its own, against one host with one core: seconds an epoch (the median from the second on), how many times one host's
# speed that is, and how it compares with the least time that the links and the arithmetic allow. That is the larger of the
# busiest link's bytes at its rate and one host's time shared by all; where each round needs what the one before has changed,
# as in rounds of most rows, it is their sum.
#   bench/speedup.sh [HOSTS [RATE]]      how many hosts (default 5, at most 5), and the links' rate in Mbit/s (default 1000)
# Where there are fewer cores than hosts, each host gets the same share of a core, its links that share of the rate, and times
# are multiplied by it: all is slower alike (DRPS_BENCH_SHARE sets the share; DRPS_BENCH_CORES, as of taskset, the cores).
# Environment, besides lib.sh's: DRPS_BENCH_CASES (a pattern of the cases' names, default all), DRPS_BENCH_EPOCHS (default 6),
# DRPS_BENCH_SAMPLES (of generated sets, default 400K), DRPS_BENCH_DATA (real sets, default ../shared/data beside the repository)
. "$(dirname "$0")/lib.sh"
hosts=${1:-5} full=${2:-1000} memory=2048
cores=${DRPS_BENCH_CORES:-0-$(($(nproc) - 1))}
n_cores=$(taskset -c "$cores" nproc)
share=${DRPS_BENCH_SHARE:-$(awk "BEGIN {print ($n_cores >= $hosts ? 1 : int(100 * .9 * $n_cores / $hosts) / 100)}")}
rate=$(awk "BEGIN {print int($full * $share)}") # of bench/namespaces.sh
samples=${DRPS_BENCH_SAMPLES:-400K} epochs=${DRPS_BENCH_EPOCHS:-6} cases=${DRPS_BENCH_CASES:-.}
data=${DRPS_BENCH_DATA:-$root/../shared/data}
. "$(dirname "$0")/namespaces.sh"

# ---- Shares of a core ----

shares=()
make_shares() {
    local r group
    [[ $share != 1 ]] || return 0
    [[ -d /sys/fs/cgroup/cpu ]] || fail "a share of a core needs the cpu cgroup of version 1"
    for ((r = 0; r < hosts; r++)); do
        group=/sys/fs/cgroup/cpu/$space-$r
        mkdir "$group"
        shares+=("$group")
        echo 4000 >"$group/cpu.cfs_period_us"
        awk "BEGIN {print int(4000 * $share)}" >"$group/cpu.cfs_quota_us"
    done
}
trap 'clean_up; ((${#shares[@]} == 0)) || rmdir "${shares[@]}"' EXIT

# on_host R COMMAND...: in place of this shell
on_host() {
    local r=$1 on=$cores
    shift
    echo $BASHPID >"${groups[r]}/cgroup.procs"
    if [[ $share = 1 ]]; then
        on=${core_list[r]}
    else
        echo $BASHPID >"${shares[r]}/cgroup.procs"
    fi
    exec taskset -c "$on" timeout 300 nsenter --net="/run/netns/$space-$r" "$@"
}

# ---- Training ----

# train WORKERS PEERS TRAIN-OPTIONS...: $work/plan; rank 0's JSON is in out-0
train() {
    local workers=$1 peers=$2 r how
    shift 2
    pids=()
    for ((r = 0; r < workers; r++)); do
        how=(--peers "$work/peers-$peers" --rank "$r" --timeout 60)
        [[ $peers = keys ]] && how+=(--keys "$work/host-$r/keys") || how+=(--insecure)
        ((workers > 1)) || how=()
        on_host "$r" "$tools/drps-train" "$work/plan" -o "$work/host-$r/model" --force "${how[@]}" --epochs "$epochs" --quiet --json "$@" \
            >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < workers; r++)); do wait "${pids[r]}" || fail "rank $r ended with $?: $(cat "$work/err-$r")"; done
    pids=()
}

# seconds: of an epoch, as if each host had a core
seconds() { jq '.epochs[1:][].seconds' "$work/out-0" | median | awk "{printf \"%.4f\", \$1 * $share}"; }

# link_megabytes: of the busiest link, the larger way, an epoch
link_megabytes() { jq --argjson epochs "$epochs" '[.ranks[] | .sent_bytes, .received_bytes] | max / 1e6 / $epochs' "$work/out-0"; }

# run CASE HOW PEERS TRAIN-OPTIONS...
run() {
    local case=$1 name=$2 peers=$3 took loss megabytes link
    shift 3
    train "$hosts" "$peers" "$@"
    took=$(seconds)
    loss=$(jq '.epochs[-1] | .test_rmse // .test_loss // .train_loss' "$work/out-0")
    megabytes=$(link_megabytes)
    link=$(awk "BEGIN {printf \"%.4f\", $megabytes * 8 / $full}")
    [[ $peers = keys ]] && name+=", keys"
    awk -v set="$case" -v how="$name" -v took="$took" -v one="$one" -v loss="$loss" -v mb="$megabytes" -v link="$link" -v hosts="$hosts" 'BEGIN {
        shared = one / hosts
        larger = link > shared ? link : shared
        printf "%-32s %-42s %9.4f %8.2f %9.3f %8.4f %8.4f %6.2f %6.2f %9.5f\n", set, how, took, one / took, mb, link, shared, took / larger, took / (link + shared), loss
    }'
    if [[ $peers = keys ]]; then
        record "speedup|$case: ${name%, keys}|s an epoch, with keys" "$took" s
        return
    fi
    record "speedup|$case: $name|s an epoch" "$took" s
    record "speedup|$case: $name|times one host" "$(awk "BEGIN {printf \"%.2f\", $one / $took}")"
    record "speedup|$case: $name|s of the busiest link" "$link" s
    record "speedup|$case: $name|of the larger" "$(awk "BEGIN {s = $one / $hosts; printf \"%.2f\", $took / ($link > s ? $link : s)}")"
    record "speedup|$case: $name|of the sum" "$(awk "BEGIN {printf \"%.2f\", $took / ($link + $one / $hosts)}")"
    record "speedup|$case: $name|loss" "$(awk "BEGIN {printf \"%.4f\", $loss}")"
}

# alone CASE INPUT INDEX-OPTIONS...: one host with a core; sets `one`
alone() {
    local case=$1
    shift
    "$tools/drps-index" "$@" -o "$work/plan" --force --quiet
    train 1 insecure
    one=$(seconds)
    printf '%-32s %-42s %9.4f %60.5f\n' "$case" "one host" "$one" "$(jq '.epochs[-1] | .test_rmse // .test_loss // .train_loss' "$work/out-0")"
    record "speedup|$case: one host|s an epoch" "$one" s
    record "speedup|$case: one host|loss" "$(jq '.epochs[-1] | .test_rmse // .test_loss // .train_loss | . * 10000 | round / 10000' "$work/out-0")"
}

index() { "$tools/drps-index" "$@" --workers "$hosts" -o "$work/plan" --force --quiet; }

# clicks CASE BATCH INPUT INDEX-OPTIONS...: by batches of BATCH on each host
clicks() {
    local case=$1 batch=$2 peers
    shift 2
    alone "$case" "$@" --batch-size $((batch * hosts))
    index "$@" --batch-size "$batch" --partition hash --samples dealt
    run "$case" "hashed, dealt, no overlap" insecure --no-overlap --no-fresh
    index "$@" --batch-size "$batch" --residuals all
    for peers in insecure keys; do run "$case" "placed" $peers; done
    [[ $* != *" fm "* ]] || {
        for peers in insecure keys; do run "$case" "placed, 8-bit gradients" $peers --push-values 8bit; done
        run "$case" "placed, gradients and parameters filtered" insecure --push-values 8bit --push-top 10% --pull-values 8bit --pull-filter psi=0.01
    }
}

# ratings CASE BATCH INPUT INDEX-OPTIONS...
ratings() {
    local case=$1 batch=$2 peers
    shift 2
    alone "$case" "$@" --order grid --grid 1,2 --batch-size "$batch"
    index "$@" --order grid --grid 1,2 --batch-size "$batch"
    for peers in insecure keys; do run "$case" "rows circulate" $peers; done
}

mapfile -t core_list < <(taskset -c "$cores" bash -c 'taskset -cp $$' | sed 's/.*: //' | tr ',' '\n' | awk -F- '{for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i}')
echo "$hosts hosts on $n_cores cores, $share of a core each, load $(cut -d ' ' -f 1-3 /proc/loadavg), links of $rate Mbit/s, $epochs epochs"
printf '%-32s %-42s %9s %8s %9s %8s %8s %6s %6s %9s\n' set how "s/epoch" "speed-up" "link's MB" "link, s" "shared" "larger" "sum" loss
make_hosts
make_shares
# shellcheck disable=SC2154 # of lib.sh
set_of() { [[ -d $data/$1 ]] || { echo "skipped: $data/$1 is not there" && return 1; }; }
wants() { [[ $1 =~ $cases ]]; }
if wants MF; then
    "$tools/drps-gen" matrix --users 60K --items 8K --ratings 2M --seed 1 -o "$work/ratings.tsv" --force --quiet
    ratings "MF 64" 1000 "$work/ratings.tsv" --algo lmf --factors 64 --test-fraction 0.05
fi
if wants ctr; then
    "$tools/drps-gen" ctr --samples "$samples" --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
    clicks "LR ctr" 8000 "$work/ctr.svm" --algo lor
    clicks "FM 16 ctr" 2000 "$work/ctr.svm" --algo fm --factors 16
fi
if wants frappe && set_of frappe; then
    for f in "$data"/frappe/*.xz; do xz -dc "$f"; done >"$work/frappe.svm"
    clicks "FM 64 frappe" 4000 "$work/frappe.svm" --format libsvm --algo fm --factors 64
fi
if wants ipinyou && set_of ipinyou; then
    for _ in 1 2 3 4 5 6 7 8 9 10; do xz -dc "$data/ipinyou/train.fm.txt.xz"; done >"$work/ipinyou.svm" # ten times over: an epoch is some rounds then
    clicks "LR ipinyou" 4000 "$work/ipinyou.svm" --format libsvm --algo lor
    clicks "FM 64 ipinyou" 4000 "$work/ipinyou.svm" --format libsvm --algo fm --factors 64
    clicks "FM 64 ipinyou, batches of 16000" 16000 "$work/ipinyou.svm" --format libsvm --algo fm --factors 64
fi
