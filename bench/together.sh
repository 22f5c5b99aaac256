#!/usr/bin/env bash
# drps-index on several machines, each with its own files, beside one machine with all of them: the same plan, by how many
# processors' seconds, and what crosses the network. Hosts are network namespaces with links of RATE, each in a memory cgroup of
# --memory + 10 %.
#   bench/together.sh [RANKS...]       how many (default 2 4)
# Generated clicks, 39 features, exponent 1.05 over 5 M ids, cut into four files. Prints for each number of ranks, and for samples
# kept and dealt: processor seconds of one machine that makes the plan for as many workers, and of the slowest of several; their
# ratio; the largest peak of memory; MB sent by all, and that to its forecast. Fails where plans differ.
# Environment, besides lib.sh's: DRPS_BENCH_SAMPLES (default 8M), DRPS_BENCH_MEMORY (MiB, default 1024). Needs root, iproute2.
. "$(dirname "$0")/lib.sh"
hosts=4 rate=1000 memory=${DRPS_BENCH_MEMORY:-1024}
samples=${DRPS_BENCH_SAMPLES:-8M}
. "$(dirname "$0")/namespaces.sh"
counts=("$@")
(($#)) || counts=(2 4)
make_hosts
"$tools/drps-gen" ctr --samples "$samples" --fields 39 --rows 5M --zipf 1.05 --seed 3 -o "$work/clicks" --force --quiet
split -n l/4 -d -a 1 "$work/clicks" "$work/part-"
rm "$work/clicks"
options=(--algo lor --batch-size 500 --test-fraction 0.05 --memory "${memory}M" --no-forecast --quiet)

# on HOST COMMAND...: in its namespace and cgroup; user and system seconds and peak KiB go to $work/time-HOST
on() {
    local r=$1
    shift
    bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "${groups[r]}" nsenter --net="/run/netns/$space-$r" \
        /usr/bin/time -f '%U %S %M' -o "$work/time-$r" "$@"
}
seconds() { awk '{print $1 + $2}' "$work/time-$1"; }
plain() { find "$1" -name plan.json -exec sed -i '/^ "command": /d; /^ "checksum": /d' {} +; }

one() { # RANKS SAMPLES: the plan of one machine for as many workers, in $work/one
    rm -rf "$work/one"
    on 0 "$tools/drps-index" "$work"/part-? "${options[@]}" --workers "$1" --samples "$2" --partition auto -o "$work/one" ||
        fail "one machine: $?"
    plain "$work/one"
}
several() { # RANKS SAMPLES: the same of several, whose folders are put together in $work/host-0/plan
    local ranks=$1 each=$((4 / $1)) r
    head -n "$ranks" "$work/peers-keys" >"$work/peers"
    rm -rf "$work"/host-?/plan*
    for ((r = 0; r < ranks; r++)); do
        local files=("$work"/part-[$((r * each))-$((r * each + each - 1))])
        on $r "$tools/drps-index" "${files[@]}" "${options[@]}" --samples "$2" --partition auto --peers "$work/peers" --peer-rank $r \
            --keys "$work/host-$r/keys" -o "$work/host-$r/plan" --json >"$work/json-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for r in "${!pids[@]}"; do wait "${pids[r]}" || fail "rank $r: $(cat "$work"/err-*)"; done
    pids=()
    for ((r = 1; r < ranks; r++)); do mv "$work/host-$r/plan/rank-$r" "$work/host-0/plan/"; done
    plain "$work/host-0/plan"
}

titles="ranks, samples | one machine, s | slowest of several, s | of one | peak, MiB | sent by all, MB | of the forecast | wall, s"
echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for ranks in "${counts[@]}"; do
    for how in kept dealt; do
        one "$ranks" $how
        alone=$(seconds 0)
        several "$ranks" $how
        diff -r "$work/one" "$work/host-0/plan" >/dev/null || fail "$ranks ranks make another plan than one machine"
        slowest=$(for ((r = 0; r < ranks; r++)); do seconds $r; done | sort -n | tail -1)
        peak=$(for ((r = 0; r < ranks; r++)); do awk '{print int($3 / 1024)}' "$work/time-$r"; done | sort -n | tail -1)
        echo "| $ranks, $how | $alone | $slowest | $(awk "BEGIN {printf \"%.3f\", $slowest / $alone}") | $peak |" \
            "$(jq '[.ranks[].sent_bytes] | add / 1e6 | round' "$work/json-0") |" \
            "$(jq '.ranks | (map(.sent_bytes) | add) / (map(.sent_forecast_bytes) | add) * 1000 | round / 1000' "$work/json-0") | $(jq '.seconds * 10 | round / 10' "$work/json-0") |" |
            tables together 1 "$titles"
    done
done
