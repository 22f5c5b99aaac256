#!/usr/bin/env bash
# Five hosts inside one machine: a network namespace and a memory cgroup each, joined by a bridge over links of 1 Gbit/s each
# way. Trains on them, and prints for each model seconds an epoch and, for each host, the bytes that drps sent and received,
# those that the plan forecast (in bulk synchronous rounds it fails beyond 5 %; in others, workers take batches from each
# other), and those that the kernel counted on the link. Then links fail and a rank is killed, and what docs/operations.md
# promises is checked.
#   bench/hosts.sh [HOSTS [RATE]]      how many (default 5), and the links' rate in Mbit/s (default 1000)
# All hosts share this machine's cores. Needs root, ip, tc and nsenter. Everything it makes goes away at the end.
# Environment, besides lib.sh's: DRPS_BENCH_SAMPLES (default 400K), DRPS_BENCH_EPOCHS (default 10), DRPS_BENCH_HOST_MEMORY
# (MiB of each host, default 256), DRPS_BENCH_CUT (seconds for which a link is cut, default 5), DRPS_BENCH_SYNC (what
# --sync is given, one after another, default "bsp wsp")
. "$(dirname "$0")/lib.sh"
hosts=${1:-5} rate=${2:-1000}
samples=${DRPS_BENCH_SAMPLES:-400K} epochs=${DRPS_BENCH_EPOCHS:-10} memory=${DRPS_BENCH_HOST_MEMORY:-256} cut=${DRPS_BENCH_CUT:-5}
read -ra syncs <<<"${DRPS_BENCH_SYNC:-bsp wsp}"
. "$(dirname "$0")/namespaces.sh"

# ---- Jobs ----

# make_plan NAME BATCH INDEX-OPTIONS...: each host gets its part
make_plan() {
    local name=$1 batch=$2 r
    shift 2
    "$tools/drps-index" "$@" --batch-size "$batch" --workers "$hosts" --partition auto --samples dealt -o "$work/$name" --quiet
    for ((r = 0; r < hosts; r++)); do
        mkdir "$work/host-$r/$name"
        mv "$work/$name/rank-$r" "$work/host-$r/$name/"
    done
    mv "$work/$name"/* "$work/host-0/$name/"
}

# start PLAN insecure|keys: all ranks, with --sync $sync, in the background; their ids are in pids
start() {
    local plan=$1 r how
    pids=()
    for ((r = 0; r < hosts; r++)); do
        how=(--insecure)
        [[ $2 = insecure ]] || how=(--keys "$work/host-$r/keys")
        timeout 120 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$work/host-$r/$plan" -o "$work/host-$r/model" --force --peers "$work/peers-$2" "${how[@]}" \
            --rank "$r" --sync "$sync" --epochs "$epochs" --timeout 60 --quiet --json >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
}

finish() { # all ranks must end well
    local r
    for ((r = 0; r < hosts; r++)); do
        wait "${pids[r]}" || fail "rank $r ended with $?: $(cat "$work/err-$r")"
    done
    pids=()
}

run_case() { # PLAN insecure|keys
    local row keys
    link_bytes >"$work/before"
    start "$1" "$2"
    finish
    link_bytes >"$work/after"
    jq -r '"\(.epochs | map(.seconds) | add) \(.epochs | length)"' "$work/out-0" >"$work/seconds"
    jq -r '.ranks[] | [.sent_bytes, .forecast_sent_bytes, .received_bytes, .forecast_received_bytes, .other_sent_bytes,
        .waiting_share] | @tsv' "$work/out-0" | paste - "$work/before" "$work/after" |
        awk -v name="$1, $2, $sync" -v strict="$([[ $sync != bsp ]] || echo 1)" -v seconds="$(cut -d ' ' -f 1 "$work/seconds")" -v epochs="$(cut -d ' ' -f 2 "$work/seconds")" -v rate="$rate" '
            function off(a, b) { return a > 1.05 * b || a < 0.95 * b }
            NR == 1 { printf "%s: %.3f s an epoch; MB an epoch, share of the link in epochs\n", name, seconds / epochs
                      printf "  %-4s %10s %10s %10s %10s %9s %9s %7s %8s %8s\n", "host", "sent", "forecast", "received", "forecast",
                             "kernel tx", "kernel rx", "headers", "link", "waited" }
            { mb = 1e6 * epochs
              tx = $9 - $7; rx = $10 - $8; used = ($1 > $3 ? $1 : $3) * 8e-6 / seconds / rate
              printf "  %-4d %10.3f %10.3f %10.3f %10.3f %9.3f %9.3f %6.1f%% %7.1f%% %7.1f%%\n", NR - 1, $1 / mb, $2 / mb, $3 / mb, $4 / mb,
                     tx / mb, rx / mb, 100 * (tx / ($1 + $5) - 1), 100 * used, 100 * $6
              sent += $1 + $5; txs += tx
              if (strict && (off($1, $2) || off($3, $4))) wrong = 1 }
            END { printf "  all: the kernel counts %.1f %% more than drps sent, other messages included\n", 100 * (txs / sent - 1)
                  exit wrong }' || fail "$1, $2: not within 5 % of the forecast"
    row="hosts|$(model_name "$(cut -d - -f 1 <<<"${1/lr/lor}")" "${1#*-}")"
    keys=$([[ $2 = keys ]] && echo "with keys" || echo "without keys")
    record "$row|s an epoch, $keys: $sync" "$(awk '{printf "%.3f", $1 / $2}' "$work/seconds")"
    record "$row|MB a host sends in an epoch, least and most, $keys: $sync" "$(jq -r --argjson epochs "$epochs" '[.ranks[].sent_bytes / 1e6 / $epochs * 1000 | round / 1000] | "\(min), \(max)"' "$work/out-0")"
    record "$row|waiting, $keys: $sync" "$(jq -r '[.ranks[].waiting_share * 100 | round] | "\(min) to \(max)"' "$work/out-0")" %
}

# ---- Failures ----

# under_way: wait until host 0 has sent a third of what it sent in the last case
under_way() {
    local had from=$1 third
    third=$(awk 'NR == FNR {b = b ? b : $1; next} FNR == 1 {print int(($1 - b) / 3)}' "$work/before" "$work/after")
    until had=$(passed "$space-0" eth0) && ((had - from > third)); do
        kill -0 "${pids[0]}" 2>/dev/null || fail "rank 0 ended too soon: $(cat "$work/err-0")"
        sleep 0.05
    done
}
start_case() { # PLAN: start it, and return in the middle of training
    local from
    from=$(passed "$space-0" eth0)
    start "$1" insecure
    under_way "$from"
}

short_cut() { # PLAN R: it goes on, and with bsp to the same model
    local want end="all epochs were trained"
    want=$(jq -r .content "$work/out-0")
    start_case "$1"
    link "$2" down
    sleep "$cut"
    link "$2" up
    finish
    [[ $(jq '.epochs | length' "$work/out-0") = "$epochs" ]] || fail "$(jq '.epochs | length' "$work/out-0") of $epochs epochs after the cut"
    jq -e "[.epochs[].seconds] | max >= $cut" "$work/out-0" >/dev/null || fail "the cut missed the training: try more DRPS_BENCH_EPOCHS"
    if [[ $sync = bsp ]]; then
        [[ $(jq -r .content "$work/out-0") = "$want" ]] || fail "another model after the cut: $(jq -r .content "$work/out-0"), not $want"
        end="the same model"
    fi
    record "hosts-cut|a link cut for $cut s|the longest epoch: $sync" "$(jq '[.epochs[].seconds] | max * 10 | round / 10' "$work/out-0")" s
    echo "$sync, link of host $2 cut for $cut s: $end; the longest epoch took $(jq '[.epochs[].seconds] | max' "$work/out-0") s," \
        "the median one $(jq '.epochs[].seconds' "$work/out-0" | median) s"
}

# all_name R: the others end with status 75 and name rank R within 15 seconds of $from; and R itself, unless it was killed
all_name() {
    local lost=$1 r status seconds last=0
    for ((r = 0; r < hosts; r++)); do
        status=0
        wait "${pids[r]}" 2>/dev/null || status=$? # hush: bash reports who was killed
        last=$EPOCHREALTIME
        if ((r == lost)); then
            [[ $status = 75 || $status = 137 ]] || fail "rank $r, the lost one, ended with $status: $(cat "$work/err-$r")"
        else
            [[ $status = 75 ]] || fail "rank $r ended with $status: $(cat "$work/err-$r")"
            grep -q "rank $lost (.*dead or cut off" "$work/err-$r" || fail "rank $r does not name rank $lost: $(cat "$work/err-$r")"
        fi
    done
    pids=()
    seconds=$(awk "BEGIN {printf \"%.1f\", $last - $from}")
    record "hosts-cut|a link cut for ever, or a rank killed|all ranks have ended after: $sync" "$seconds" s
    echo "  all ranks had ended after $seconds s; rank $(((lost + 1) % hosts)) said: $(cat "$work/err-$(((lost + 1) % hosts))")"
    [[ ! -s $work/err-$lost ]] || echo "  rank $lost said: $(cat "$work/err-$lost")"
    awk "BEGIN {exit !($seconds <= 15)}" || fail "that took more than 15 s"
}

long_cut() { # PLAN R
    start_case "$1"
    echo "$sync, link of host $2 cut for ever"
    link "$2" down
    from=$EPOCHREALTIME
    all_name "$2"
    link "$2" up
}

killed() { # PLAN R
    start_case "$1"
    echo "$sync, rank $2 killed"
    kill_all "${groups[$2]}"
    from=$EPOCHREALTIME
    all_name "$2"
}

echo "$hosts hosts on $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg), links of $rate Mbit/s," \
    "$memory MiB each, $samples samples, $epochs epochs"
make_hosts
"$tools/drps-gen" ctr --samples "$samples" --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
"$tools/drps-gen" matrix --users 20K --items 5K --ratings "$samples" --seed 1 -o "$work/ratings.tsv" --force --quiet
make_plan lr 2000 "$work/ctr.svm" --algo lor
make_plan lmf-64 2000 "$work/ratings.tsv" --algo lmf --factors 64
make_plan fm-16 2000 "$work/ctr.svm" --algo fm --factors 16
for sync in "${syncs[@]}"; do
    for plan in lr lmf-64 fm-16; do
        for how in keys insecure; do run_case $plan $how; done
    done
    short_cut fm-16 1
    long_cut fm-16 $((hosts - 1))
    long_cut fm-16 0
    killed fm-16 1
done
