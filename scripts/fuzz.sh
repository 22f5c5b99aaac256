#!/usr/bin/env bash
# Build the fuzz targets with clang and run them one after another, each for a while.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: scripts/fuzz.sh [-t SECONDS] [-b FOLDER] [TARGET...]

Builds tests/fuzz/ in FOLDER (default: build-fuzz) with clang, libFuzzer and the address and undefined behaviour
sanitizers, and runs each TARGET (default: all) for so many SECONDS (default: 600). What it learns is kept in
FOLDER/corpus/TARGET, and it begins with that and tests/fuzz/corpus/TARGET. An input that breaks something lies in
FOLDER/found/TARGET; then the exit status is 1. Replay it with FOLDER/bin/replay_TARGET FILE, and DRPS_FUZZ_SHOW=1 for
what came of it; when it is mended, the input goes to tests/fuzz/corpus/TARGET. Temporary files are below TMPDIR: a file
system in memory is much faster.
TEXT
}

seconds=600
folder=build-fuzz
while getopts 't:b:h' option; do
    case $option in
    t) seconds=$OPTARG ;;
    b) folder=$OPTARG ;;
    h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done
shift $((OPTIND - 1))

targets=("$@")
if ((!$#)); then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        targets+=("${name%.c}")
    done
fi

if [[ ! -e $folder/CMakeCache.txt ]]; then
    cmake -S . -B "$folder" -DCMAKE_C_COMPILER=clang -DDRPS_BUILD_FUZZ=ON -DDRPS_BUILD_BENCH=OFF
fi
cmake --build "$folder" -j "$(nproc)" --target "${targets[@]/#/fuzz_}" "${targets[@]/#/replay_}"

failed=0
for target in "${targets[@]}"; do
    corpus=$folder/corpus/$target found=$folder/found/$target
    mkdir -p "$corpus" "$found"
    echo "$target: $seconds s; log: $found/log"
    if ! "$folder/bin/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=4096 \
        -print_final_stats=1 -artifact_prefix="$found/" "$corpus" "tests/fuzz/corpus/$target" >"$found/log" 2>&1; then
        failed=1
        echo "$target: something broke: see $found" >&2
    fi
    grep -E 'number_of_executed_units|^SUMMARY|^Test unit written' "$found/log" || true
done
exit "$failed"
