#!/usr/bin/env bash
# Kernels of each level of instructions: processor seconds of drps-index, and of an epoch on one thread with all rows in memory; medians
# of pairs in turn, the least and the most in brackets. With NATIVE, a folder of tools that were built with -DDRPS_NATIVE=ON, these too.
#   bench/instructions.sh [ROUNDS [NATIVE]]      default 5 rounds
. "$(dirname "$0")/lib.sh"
rounds=${1:-5} native=${2:-}
cd "$work"
"$tools/drps-gen" ctr --samples 400K --fields 39 --rows 1M --seed 1 -o clicks.svm --quiet
"$tools/drps-gen" matrix --users 30K --items 5K --ratings 3M --seed 1 -o ratings.tsv --quiet
awk 'BEGIN { srand(4); for (i = 0; i < 60000; i++) { printf "%d", rand() * 20
    for (k = 0; k < 30; k++) printf " %d:1", 1 + int(exp(rand() * 10)) + 30000 * (k > 15); print "" } }' >classes.svm
levels=(${native:+native} baseline avx2 avx512)

# user LEVEL TOOL ARGUMENT...: processor seconds in user mode
user() {
    local TIMEFORMAT=%U folder=$tools
    [[ $1 != native ]] || folder=$native
    # A native build has one level, which is called the baseline.
    { time DRPS_INSTRUCTIONS=${1/native/baseline} "$folder/$2" "${@:3}" --force --quiet >/dev/null; } 2>&1
}

for ((round = 0; round < rounds; round++)); do
    for level in "${levels[@]}"; do
        while read -r name data options; do
            # shellcheck disable=SC2086  # several words
            index=$(user $level drps-index $data $options -o plan --memory 1G)
            train=$(user $level drps-train plan -o model --epochs 3 --store resident --memory 2G --threads 1 --checkpoint-every never)
            printf '%s, drps-index|%s|%s\n%s, three epochs|%s|%s\n' "$name" $level "$index" "$name" $level "$train"
        done <<'SETS'
LR clicks.svm --algo lor
FM-16 clicks.svm --algo fm --factors 16
FM-8 clicks.svm --algo fm --factors 8
MF-16 ratings.tsv --algo lmf --factors 16
MLR-20 classes.svm --algo mlr
SETS
    done
done >seconds.txt

echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg); $rounds rounds"
{
    printf '| what'
    printf ' | %s' "${levels[@]}"
    printf ' |\n|'
    printf ' --- |%.0s' what "${levels[@]}"
    echo
    cut -d '|' -f 1 seconds.txt | awk '!seen[$0]++' | while read -r what; do
        printf '| %s' "$what"
        for level in "${levels[@]}"; do
            grep -F "$what|$level|" seconds.txt | cut -d '|' -f 3 | sort -g |
                awk '{ v[NR] = $1 } END { printf " | %.3f (%.3f, %.3f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
        done
        echo ' |'
    done
} | tables instructions
