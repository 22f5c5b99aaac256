#!/usr/bin/env bash
# drps-index on the CTR-like set (1.5 GB of libsvm text) with --memory 512M inside a memory cgroup of 512 MiB + 10 %.
#   bench/index.sh [RUNS]
. "$(dirname "$0")/lib.sh"
text=$(ctr_text)
for ((i = 0; i < ${1:-3}; i++)); do
    in_cgroup $(($(megabytes 512) * 11 / 10)) "$tools/drps-index" "$text" --algo lor --batch-size 1000 --test-fraction 0.1 \
        --memory 512M -o "$work/plan-index" --force --quiet --json >"$work/index.json"
    jq '.input_bytes / 1e6 / .seconds | floor' "$work/index.json" >>"$work/speeds"
    jq -r '"\(.input_bytes / 1e6 | floor) MB in \(.seconds * 100 | floor / 100) s: \(.input_bytes / 1e6 / .seconds | floor) MB/s, peak \(.peak_rss_bytes / 1048576 | floor) MiB, phases \(.phase_seconds | map_values(. * 100 | floor / 100) | tojson)"' "$work/index.json"
done
row="index|$(jq '.input_bytes / 1e6 | floor' "$work/index.json") MB of libsvm, --memory 512M"
record "$row|MB/s" "$(median <"$work/speeds")"
record "$row|MB/s, worst" "$(sort -n "$work/speeds" | head -n 1)"
record "$row|MB/s, best" "$(sort -n "$work/speeds" | tail -n 1)"
record "$row|plan" "$(jq '.plan_bytes / 1e6 | floor' "$work/index.json")" MB
record "$row|peak resident set" "$(jq '.peak_rss_bytes / 1048576 | floor' "$work/index.json")" MiB
