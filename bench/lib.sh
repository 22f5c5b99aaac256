# What the benchmark scripts share. Source it; it sets `tools` and `work`, and removes `work` at the end.
# Environment: DRPS_TOOLS (default build/bin), DRPS_BENCH_DIR (scratch, default a new folder in TMPDIR or /tmp),
# DRPS_BENCH_KEEP=1 keeps it. Needs jq.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${DRPS_TOOLS:-$root/build/bin}
work=${DRPS_BENCH_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/drps-bench.XXXXXX")}
mkdir -p "$work"
[[ -n ${DRPS_BENCH_KEEP:-} || -n ${DRPS_BENCH_DIR:-} ]] || trap 'rm -rf "$work"' EXIT
command -v jq >/dev/null || { echo "bench: install jq" >&2; exit 1; }
[[ -x $tools/drps-train ]] || { echo "bench: build drps first ($tools/drps-train is missing)" >&2; exit 1; }

# Run "$@" in a memory cgroup of $1 bytes, page cache included. Needs root and cgroup v1 or v2.
in_cgroup() {
    local limit=$1 group
    shift
    if [[ -d /sys/fs/cgroup/memory ]]; then
        group=/sys/fs/cgroup/memory/drps-bench.$$
        mkdir -p "$group"
        echo "$limit" >"$group/memory.limit_in_bytes"
    else
        group=/sys/fs/cgroup/drps-bench.$$
        mkdir -p "$group"
        echo "$limit" >"$group/memory.max"
        echo 0 >"$group/memory.swap.max" 2>/dev/null || true
    fi
    local status=0
    bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@" || status=$?
    rmdir "$group" || true
    return $status
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
