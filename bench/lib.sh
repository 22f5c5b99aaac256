# What the benchmark scripts share. Source it; it sets `tools` and `work`, and removes `work` at the end.
# Environment: DRPS_TOOLS (default build/bin), DRPS_BENCH_DIR (scratch, default a new folder in TMPDIR or /tmp),
# DRPS_BENCH_KEEP=1 keeps it; DRPS_BENCH_ROWS (a file to which figures are appended as rows of bench/results.sh). Needs jq.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/bench/rows.sh"
tools=${DRPS_TOOLS:-$root/build/bin}
work=${DRPS_BENCH_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/drps-bench.XXXXXX")}
mkdir -p "$work"
remove_work() { [[ -n ${DRPS_BENCH_KEEP:-} || -n ${DRPS_BENCH_DIR:-} ]] || rm -rf "$work"; }
others=" $(pgrep -P $$ | tr '\n' ' ')" # children of a shell whose place this script has taken
# end_children [PID]: what this shell (or PID) has started, and what that has started, and so on. A shell that SIGTERM ends leaves them.
end_children() {
    local pid
    for pid in $(pgrep -P "${1:-$$}"); do
        [[ $others != *" $pid "* ]] || continue
        kill -STOP "$pid" 2>/dev/null || continue # it starts no other meanwhile
        end_children "$pid"
        kill -KILL "$pid" 2>/dev/null || true
    done
}
# Bash runs a trap for SIGTERM only once the command that it waits for has ended. Without one it ends at once, and this runs.
trap 'end_children; remove_work' EXIT
command -v jq >/dev/null || { echo "bench: install jq" >&2; exit 1; }
[[ -x $tools/drps-train ]] || { echo "bench: build drps first ($tools/drps-train is missing)" >&2; exit 1; }

# cgroup NAME LIMIT: make a memory cgroup of LIMIT bytes, page cache included, and print its folder. Needs root and cgroup
# v1 or v2. It goes away with rmdir, once its processes have ended.
cgroup() {
    local group
    if [[ -d /sys/fs/cgroup/memory ]]; then
        group=/sys/fs/cgroup/memory/$1
        mkdir -p "$group"
        echo "$2" >"$group/memory.limit_in_bytes"
    else
        group=/sys/fs/cgroup/$1
        mkdir -p "$group"
        echo "$2" >"$group/memory.max"
        echo 0 >"$group/memory.swap.max" 2>/dev/null || true
    fi
    echo "$group"
}

# Run what follows GROUP in that cgroup, in place of a shell: bash -c "$join_cgroup" GROUP COMMAND...
# shellcheck disable=SC2016 # it is that shell that expands it
join_cgroup='echo $$ >"$0/cgroup.procs"; exec "$@"'

# in_cgroup LIMIT COMMAND...: run it in a memory cgroup of its own.
in_cgroup() {
    local limit=$1 group status=0
    shift
    group=$(cgroup "drps-bench.$$" "$limit")
    bash -c "$join_cgroup" "$group" "$@" || status=$?
    rmdir "$group" || true
    return $status
}

# throttle IOPS MBPS: sets `throttled`, a command before a command that then has a disk of so many requests and MB a second,
# in each direction. Only I/O past the page cache is held up. Needs root and blkio of cgroup v1; the group is removed
# at the end.
throttle() {
    local at parent device direction
    throttle_group=/sys/fs/cgroup/blkio/drps-bench.$$
    [[ -d /sys/fs/cgroup/blkio ]] || { echo "bench: throttling needs blkio of cgroup v1" >&2 && exit 77; }
    at=$(findmnt -no SOURCE -T "$work")
    parent=$(lsblk -ndo PKNAME "$at") # partitions are not throttled
    device=$(lsblk -ndo MAJ:MIN "${parent:+/dev/}${parent:-$at}" | tr -d ' ')
    mkdir -p "$throttle_group"
    for direction in read write; do
        echo "$device $1" >"$throttle_group/blkio.throttle.${direction}_iops_device"
        echo "$device $(($2 * 1000000))" >"$throttle_group/blkio.throttle.${direction}_bps_device"
    done
    trap 'end_children; rmdir "$throttle_group"; remove_work' EXIT
    throttled=(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$throttle_group")
}

# fit POOL PLAN OPTION...: sets `memory` to what gives a block store a pool of that many bytes, to 1 %, or to the least that
# drps-train accepts. Trains for a second at a time.
fit() {
    local pool=$1 got least i
    shift
    least=$({ "$tools/drps-train" "$@" -o "$work/fit" --memory 1M 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + .1) * 1048576)}')
    memory=$((least + pool))
    for ((i = 0; i < 6; i++)); do
        timeout --foreground -s INT -k 60 1 "$tools/drps-train" "$@" -o "$work/fit" --force --quiet --json --memory "$memory" \
            >"$work/fit.json" 2>"$work/fit.err" || [[ -s $work/fit.json ]] || { cat "$work/fit.err" >&2 && return 1; }
        got=$(jq .blocks.pool_bytes "$work/fit.json")
        ((got - pool > pool / 100 || pool - got > pool / 100)) || break
        ((memory > least || got < pool)) || break
        memory=$((memory + pool - got > least ? memory + pool - got : least))
    done
    rm -rf "$work/fit"
}

# megabytes N: bytes of N MiB
megabytes() { echo $(($1 * 1024 * 1024)); }

# median of the numbers on stdin
median() { sort -n | awk '{v[NR]=$1} END {print (NR % 2) ? v[(NR+1)/2] : (v[NR/2] + v[NR/2+1]) / 2}'; }

# The CTR-like set of 4 M samples x 39 fields over 5 M ids, made once per scratch folder.
ctr_text() {
    local text=$work/ctr.svm
    [[ -e $text ]] || "$tools/drps-gen" ctr --samples "${DRPS_BENCH_SAMPLES:-4M}" --fields 39 --rows 5M --zipf 1.05 \
        --seed 1 -o "$text.new" 1>&2
    [[ -e $text ]] || mv "$text.new" "$text"
    echo "$text"
}
