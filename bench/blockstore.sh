#!/usr/bin/env bash
# The block store: engines, blocks and eviction rules on CTR-like data, factorisation machine of rank 16, at one --memory.
# The runs of `engines` are stopped after some seconds; their speeds are of all their steps.
#   bench/blockstore.sh engines   file, RocksDB and LevelDB; blocks of several sizes and one row a key
#   bench/blockstore.sh pairs     blocks in a file against one row a key in RocksDB, 1/share of the rows in the pool of each, then at
#                                 equal --memory, RocksDB's; the second of two whole epochs
#   bench/blockstore.sh pages     pages in id order under lru against blocks under farthest, pool of 1/share of the rows
#   bench/blockstore.sh evict     farthest next use against clock and lru, on the file engine, pool of 1/share of the rows; the second epoch
#   bench/blockstore.sh forecast  forecast and measured I/O of the last of two whole epochs, on the file engine
# Options, each with a value: --samples N (400K), --rows N (2M), --batch N (250), --seconds N (45), --rounds N (1),
#   --memory SIZE (72M), --tight SIZE (44M, of forecast), --share N (8; pages: 16),
#   --blocks "none 1K 4K" (pages: "pattern topk auto"): bytes a block, or a builder of drps-index; topk: 1000 rows kept
# Needs jq.
usage() { sed -n '2,/^usage()/{/^usage()/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
case ${1:-} in
engines | pairs | pages | evict | forecast) command=$1 ;;
-h | --help) usage && exit 0 ;;
*) usage >&2 && exit 2 ;;
esac
shift
declare -A option=([samples]=400K [rows]=2M [batch]=250 [seconds]=45 [rounds]=1 [memory]=72M [tight]=44M [blocks]="none 1K 4K" [share]=8)
[[ $command != pages ]] || option+=([blocks]="pattern topk auto" [share]=16)
while (($#)); do
    [[ -n ${option[${1#--}]:-} && $# -gt 1 ]] || { usage >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
. "$(dirname "$0")/lib.sh"

# plan BLOCKS: the folder of the plan with blocks of that size, or of that builder
plan() {
    local plan=$work/plan-$1 text=$work/blockstore.svm kind=(--block-size "$1")
    [[ $1 = [0-9]* ]] || kind=(--blocks "$1")
    [[ $1 != topk ]] || kind+=(--prune-to 1000)
    [[ -e $text ]] || "$tools/drps-gen" ctr --samples "${option[samples]}" --fields 39 --rows "${option[rows]}" --zipf 1.05 \
        --seed 1 -o "$text" --quiet 1>&2
    [[ -e $plan ]] || "$tools/drps-index" "$text" --algo fm --factors 16 --batch-size "${option[batch]}" --memory 2G \
        "${kind[@]}" -o "$plan" --quiet 1>&2
    echo "$plan"
}

# train SECONDS PLAN OPTION...: $work/run.json; stopped after that long (0: never)
train() {
    local seconds=$1 plan=$2 status=0 before=()
    shift 2
    ((seconds == 0)) || before=(timeout --foreground -s INT -k 60 "$seconds")
    "${before[@]}" "$tools/drps-train" "$plan" -o "$work/model" --force --epochs 2 --quiet --json "$@" \
        >"$work/run.json" 2>"$work/run.err" || status=$?
    # 124 and 130: stopped in time
    [[ $status = 0 || $status = 124 || $status = 130 ]] || { cat "$work/run.err" >&2 && return 1; }
}

line() { # WHAT: a row of the table
    jq -r --arg what "$1" --argjson batch "${option[batch]}" '
        (.phase_seconds | .plan + .wait_store + .gather + .compute + .step) as $s |
        "| \($what) | \(.blocks.pool_bytes / 104857.6 | round / 10) MiB | \(.stalls.steps * $batch / $s | round) | \(.stalls.steps) " +
        "| \(.blocks.hit / .blocks.needed * 1000 | round / 10) % | \((.io.reads + .io.writes) / .stalls.steps | round) " +
        "| \(if .device then ((.device.reads + .device.writes) / .stalls.steps | round) else "-" end) " +
        "| \((.io.read_bytes + .io.written_bytes) / .stalls.steps / 1e3 | round) kB |"' "$work/run.json"
}
head_line() {
    echo "| $1 | pool | samples/s | steps | hits | blocks moved a step | requests | moved |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
}

engines() {
    local b s
    head_line "engine, blocks"
    for b in ${option[blocks]}; do
        for s in file rocksdb leveldb; do
            train "${option[seconds]}" "$(plan "$b")" --store $s --memory "${option[memory]}" && line "$s, $b"
        done
    done
}

evict() {
    local b rule
    second_head "blocks, rule"
    for b in ${option[blocks]}; do
        for rule in farthest clock lru; do
            fit "$(pool_bytes "$(plan "$b")")" "$(plan "$b")" --store file --evict $rule
            train 0 "$(plan "$b")" --store file --memory "$memory" --evict $rule && second "$b, $rule"
        done
    done
}

forecast() {
    local b
    echo "| blocks | pool | I/Os: forecast, measured | requests: forecast, measured | MB moved: forecast, measured | seconds: disk by forecast, epoch |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for b in ${option[blocks]}; do
        train 0 "$(plan "$b")" --store file --memory "${option[tight]}"
        jq -r --arg b "$b" '.forecast as $f | .epochs[1] as $e |
            "| \($b) | \(.blocks.pool_bytes / 104857.6 | round / 10) MiB | \($f.ios), \($e.reads + $e.writes) | \($f.requests), \($e.requests) " +
            "| \($f.moved_bytes / 1e6 | round), \($e.moved_bytes / 1e6 | round) | \($f.disk_seconds * 10 | round / 10), \($e.seconds * 10 | round / 10) |"' \
            "$work/run.json"
    done
}

# second WHAT: a row of the table, of the last epoch
second() {
    jq -r --arg what "$1" '.epochs[-1] | [$what, .samples_per_s, .seconds, .reads + .writes, .requests, .read_bytes + .written_bytes, .moved_bytes] | @tsv' \
        "$work/run.json" | awk -F'\t' -v pool="$(jq .blocks.pool_bytes "$work/run.json")" -v memory="$memory" '
        {printf "| %s | %.1f MiB | %.1f MiB | %.0f | %.2f | %d | %s | %.0f | %s |\n", $1, memory / 1048576, pool / 1048576, $2, $3, $4,
            $5 + 0 ? $5 : "-", $6 / 1e6, $7 + 0 ? sprintf("%.0f", $7 / 1e6) : "-"}'
}
second_head() {
    echo "| $1 | --memory | pool | samples/s | epoch, s | blocks moved | requests | MB of blocks | MB moved |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
}
pool_bytes() { # of 1/share of the rows of a plan
    jq --argjson share "${option[share]}" '.rows * .row_bytes / $share | floor' "$1/plan.json"
}

pairs() {
    local b pool given
    pool=$(pool_bytes "$(plan none)")
    second_head "engine, blocks"
    fit "$pool" "$(plan none)" --store rocksdb
    train 0 "$(plan none)" --store rocksdb --memory "$memory" && second "rocksdb, none"
    given=$memory
    for b in ${option[blocks]}; do
        fit "$pool" "$(plan "$b")" --store file
        train 0 "$(plan "$b")" --store file --memory "$memory" && second "file, $b, equal pool"
        memory=$given
        train 0 "$(plan "$b")" --store file --memory "$memory" && second "file, $b, equal --memory"
    done
}

pages() {
    local b pool
    pool=$(pool_bytes "$(plan id)")
    second_head "blocks, rule"
    for b in id,lru id,farthest $(printf '%s,farthest ' ${option[blocks]}); do
        fit "$pool" "$(plan "${b%,*}")" --store file --evict "${b#*,}"
        train 0 "$(plan "${b%,*}")" --store file --evict "${b#*,}" --memory "$memory" && second "$b"
    done
}

echo "$(git -C "$root" rev-parse --short HEAD), $(nproc) processors, $(stat -f -c %T "$work"), load $(cut -d' ' -f1 /proc/loadavg)"
echo
for ((round = 0; round < option[rounds]; round++)); do $command; done | tables "blockstore-$command"
