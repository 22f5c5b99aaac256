# shellcheck shell=bash
# What the scripts of figures of Xie et al., "Orpheus", share: multinomial logistic regression of 20 News Groups on hosts inside this
# machine (bench/namespaces.sh), trained in one way after another. Source it with "$@", after `figure` is set to the topic of its rows.
#   bench/papers/orpheus-*.sh [--quick] [DATA]
# A way's epochs to the goal are whole and a share of the last one, as if its loss fell evenly. Times are of hosts that share this
# machine's cores; bytes and losses do not depend on it, but with --sync ssp and wsp. Needs root, iproute2 and util-linux.
# Environment: bench/lib.sh's; DRPS_BENCH_HOSTS (default 8), DRPS_BENCH_RATE (Mbit/s of a link, default 1000), DRPS_BENCH_EPOCHS
# (default 12), DRPS_BENCH_GOAL (held-out loss, default .9), DRPS_BENCH_RUNS (default 3; times are medians).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
there 20news "nothing" || exit 77
hosts=${DRPS_BENCH_HOSTS:-8} rate=${DRPS_BENCH_RATE:-1000} memory=1024
epochs=$(quickly 2 "${DRPS_BENCH_EPOCHS:-12}") goal=${DRPS_BENCH_GOAL:-.9} runs=$(quickly 1 "${DRPS_BENCH_RUNS:-3}")
. "$(dirname "${BASH_SOURCE[0]}")/../namespaces.sh"

orpheus_begin() {
    packed 20news/20news.train.libsvm.xz >"$work/train.svm"
    packed 20news/20news.test.libsvm.xz >"$work/test.svm"
    make_hosts
    echo "$hosts hosts on $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg), links of $rate Mbit/s; batches of 100, AdaGrad, rate .05," \
        "$epochs epochs; goal: held-out loss $goal; median of $runs"
}

# plan_of RANKS: the plan of so many ranks is $work/plan-RANKS
plan_of() {
    [[ -d $work/plan-$1 ]] || "$tools/drps-index" "$work/train.svm" --test "$work/test.svm" --algo mlr --workers "$1" --batch-size 100 \
        -o "$work/plan-$1" --quiet
}

# once RANKS OPTIONS...: a run, whose result is in $work/out-0
once() {
    local ranks=$1 r plan=$work/plan-$1
    shift
    ((ranks > 1)) || plan=$plan/rank-0
    [[ -d $plan ]] || plan=$work/plan-$ranks
    if ((ranks == 1)); then
        "$tools/drps-train" "$plan" -o "$work/host-0/model" --force --epochs "$epochs" --lr .05 --checkpoint-every never --quiet --json >"$work/out-0"
        return
    fi
    head -n "$ranks" "$work/peers-insecure" >"$work/peers"
    pids=()
    for ((r = 0; r < ranks; r++)); do
        timeout 300 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
            "$tools/drps-train" "$plan" -o "$work/host-$r/model" --force --peers "$work/peers" --insecure --rank "$r" --epochs "$epochs" \
            --lr .05 --checkpoint-every never --timeout 120 --quiet --json "$@" >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < ranks; r++)); do
        wait "${pids[r]}" || fail "$*: rank $r ended with $?: $(cat "$work/err-$r")"
    done
    pids=()
}

# The results of runs, a line each: loss after the last epoch, epochs to the goal, seconds to it, MB that a rank sends in an epoch, share
# of the forecast, seconds that the busiest link needs for the bytes to the goal; of a rank, in all epochs, the seconds in which it made
# gradients (its own, and those of others' vectors; not stepping with them), and those of waiting.
# shellcheck disable=SC2016 # jq expands
result='
    def to_goal: . as $e | [range(length) | select($e[.].test_loss <= $goal)][0] as $i
        | if $i == null then null elif $i == 0 then 1 else $i + ($e[$i - 1].test_loss - $goal) / ($e[$i - 1].test_loss - $e[$i].test_loss) end;
    (.epochs | to_goal) as $n | (.epochs | length) as $all | (.ranks // []) as $ranks
    | [.epochs[-1].test_loss, $n // "-",
       (if $n then ([.epochs[:($n | floor)][].seconds] | add // 0) + (.epochs[$n | floor].seconds // 0) * ($n - ($n | floor)) else "-" end),
       (if $ranks == [] then 0 else [$ranks[].sent_bytes] | add / length / $all / 1e6 end),
       (if $ranks == [] or ([$ranks[].forecast_sent_bytes] | add) == 0 then "-" else ([$ranks[].sent_bytes] | add) / ([$ranks[].forecast_sent_bytes] | add) end),
       (if $n and $ranks != [] then ([$ranks[] | .sent_bytes, .received_bytes] | max) / $all * $n * 8e-6 / $rate else "-" end),
       (if $ranks == [] then .phase_seconds.compute else [$ranks[].compute_seconds] | add / length end),
       (if $ranks == [] then 0 else [$ranks[].waiting_seconds] | add / length end)] | @tsv'

titles="way | loss at the end | epochs to the goal | s to the goal | of the first | MB a rank sends in an epoch | of the forecast | s of the busiest link | s of gradients | s waiting"

# way RANKS NAME OPTIONS...: runs it, and prints a line of the table
first= # seconds of the first way
way() {
    local ranks=$1 name=$2 i
    shift 2
    plan_of "$ranks"
    : >"$work/results"
    for ((i = 0; i < runs; i++)); do
        once "$ranks" "$@"
        jq -r --argjson goal "$goal" --argjson rate "$rate" "$result" "$work/out-0" >>"$work/results"
    done
    sort -t$'\t' -k3,3g "$work/results" | sed -n "$(((runs + 1) / 2))p" >"$work/median"
    [[ -n $first ]] || first=$(cut -f 3 "$work/median")
    awk -F'\t' -v name="$name" -v first="$first" '
        function cell(value, form) { return value == "-" ? "-" : sprintf(form, value) }
        { printf "| %s | %.4f | %s | %s | %s | %.2f | %s | %s | %.2f | %.2f |\n", name, $1, cell($2, "%.2f"), cell($3, "%.2f"),
              $3 == "-" || first == "-" || first == 0 ? "-" : sprintf("%.2f", $3 / first), $4, cell($5, "%.4f"), cell($6, "%.2f"), $7, $8 }' "$work/median"
}

# ways: lines "NAME: OPTIONS" of its input, on all hosts, as the table of `figure`
ways() {
    local name options
    while IFS=: read -r name options; do
        # shellcheck disable=SC2086 # options
        way "$hosts" "$name" $options </dev/null
    done | table "$figure" 1 "$titles"
}
orpheus_begin
