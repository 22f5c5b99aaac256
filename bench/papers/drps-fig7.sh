#!/usr/bin/env bash
# "DRPS", Figure 7: seconds to build blocks and to train an epoch, by rows kept (the paper prunes by frequency), for its top-k, for the method
# that merges one pair a round and counts all pairs anew ("recounting", k = 1), and without blocks. Beside them drps's pairwise, which
# counts only what merged and builds the blocks of recounting (a checksum is compared), and what drps does by itself: pattern, auto.
# Epochs are trained by one machine with --store file, rows in the least memory. Times are of the processor, user and system.
#   bench/papers/drps-fig7.sh [--quick] [DATA]
# Blocks and requests are exact. The paper's bars have no figures in its text but one: top-k is 30 times as fast on average.
# Environment: bench/lib.sh's; bench/papers/drps.sh's.
. "$(dirname "$0")/lib.sh"
need bench_blocks
. "$(dirname "$0")/drps.sh"

rows_recounted="$(quickly 30 "50 100")" # recounting takes the cube of them
shares="$(quickly 10% "1% 10%")"

# trained OPTION...: cells of a plan with these blocks: I/Os of Eq. 1, requests, processor seconds of an epoch
trained() {
    local memory
    "$tools/drps-index" "$work/$set" "${how[@]}" "$@" -o "$work/plan" --force --quiet --no-forecast --json >"$work/index.json" 2>"$work/index.err"
    memory=$({ "$tools/drps-train" "$work/plan" -o "$work/model" --force --store file --memory 1M --threads 1 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{ print int(($1 + .1) * 1048576) }')
    processor "$tools/drps-train" "$work/plan" -o "$work/model" --force --store file --memory "$memory" --epochs 1 --threads 1 --quiet --json
    jq -r --slurpfile train "$work/printed" --arg spent "$spent" \
        '"\(.block_uses) | \(100 * .block_uses / .row_uses | round) | \($train[0].epochs[0].requests) | \($spent)"' "$work/index.json"
}

# built BUILDER K ROWS: the result in built.json
built() {
    "$tools/bench_blocks" --json --top-k "$2" --keep "$3" "${costs[@]}" "$work/plain" "$1" >"$work/built.json"
}

cell() { jq -r "$1" "$work/built.json"; }

for set in "${sets[@]}"; do
    describe "$set"
    make_set "$set"
    "$tools/drps-index" "$work/$set" "${how[@]}" -o "$work/plain" --force --quiet --no-forecast
    rows=$(jq .rows "$work/plain/plan.json")
    costs=(--row "$(jq '.row_bytes / .transfer_bps * 1e6' "$work/plain/plan.json")"
        --max-rows "$(jq '.block_bytes / .row_bytes | floor' "$work/plain/plan.json")")
    for kept in $rows_recounted $shares; do
        count=$kept
        [[ $kept != *% ]] || count=$(((rows * ${kept%\%} + 50) / 100))
        for way in "recount 1" "pairwise 1" "recount $k" "topk $k"; do
            builder=${way% *} per=${way#* } line="| $title | $count, ${builder/recount/recounting}, k = $per |"
            [[ $builder != recount || $kept != *% ]] || continue
            built "$builder" "$per" "$count"
            same=-
            if [[ $builder = recount ]]; then layout=$(cell .layout); elif [[ $kept != *% ]]; then same=$([[ $(cell .layout) = "$layout" ]] && echo yes || echo no); fi
            echo "$line $(cell '"\(.cpu_seconds) | \(.blocks) | \(100 * .eq1_ratio | round)"') | $same | | | |"
        done
        echo "| $title | $count, topk, trained | | | | | $(trained --blocks topk --topk $k --prune-to "$count" | cut -d'|' -f 1,3,4) |"
    done
    for by in none pattern auto; do
        echo "| $title | all, $by, trained | | | | | $(trained --blocks $by | cut -d'|' -f 1,3,4) |"
    done
    rm -f "${work:?}/$set"
done | table paper-drps-fig7 2 "set | rows kept, method | processor s to build | blocks | Eq. 1, % of one row a block | blocks of recounting | blocks used an epoch | requests an epoch | processor s of an epoch"
