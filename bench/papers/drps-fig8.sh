#!/usr/bin/env bash
# "DRPS", Figure 8, its four columns: loss after epochs, processor seconds an epoch, disk I/Os and parameters over the network, for the system
# without optimisation, with its index (top-k of the tenth of the rows used most), with its partition (Algorithms 2 and 3), with both; then
# what drps does by itself (pattern, homes, placed samples), and the same with auto. Five machines in one process, samples dealt but
# in the last two; synchronous, so that losses are those of the same steps. Disk I/Os are blocks that batches use (Eq. 1): nothing is
# taken to stay in memory, as in the paper. Network: rows that workers pull from others, evaluation apart.
#   bench/papers/drps-fig8.sh [--quick] [DATA]
# The paper's text has the falls: 13 to 23 % of I/Os by the index, 10 to 18 % of requests by the partition. All but times are exact.
# Environment: bench/lib.sh's; bench/papers/drps.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/drps.sh"

epochs=$(quickly 1 3)

# strategy NAME PAPER OPTION...: a line of the table
strategy() {
    "$tools/drps-index" "$work/$set" "${how[@]}" --workers $workers "${@:3}" -o "$work/plan" --force --quiet --no-forecast --json \
        >"$work/index.json" 2>"$work/index.err"
    processor "$tools/drps-train" "$work/plan" -o "$work/model" --force --local $workers --transport inproc --store file --epochs "$epochs" --quiet --json
    [[ -n $first ]] || first=$(jq -c '{uses: .block_uses, pulled: ([.ranks[].pulled_bytes] | add)}' "$work/index.json")
    jq -r --slurpfile train "$work/printed" --argjson first "$first" --arg spent "$spent" --argjson epochs "$epochs" --arg row "$title | $1 | $2" '
        def fall(now; before): (100 * (1 - now / before) | round) + 0;
        ([.ranks[].pulled_bytes] | add) as $pulled |
        "| \($row) | \($train[0].epochs[-1].train_loss * 1e5 | round / 1e5) | \(($spent | tonumber) / $epochs * 100 | round / 100) " +
        "| \(.block_uses) | \(fall(.block_uses; $first.uses)) | \($pulled / 4 | round) | \(fall($pulled; $first.pulled)) |"' "$work/index.json"
}

for set in "${sets[@]}"; do
    describe "$set"
    make_set "$set"
    first=
    strategy DRPS "" --samples dealt --partition hash --blocks none
    strategy "DRPS + index" "I/Os -13 to -23 %" --samples dealt --partition hash --blocks topk --topk $k --prune-to 10%
    strategy "DRPS + partition" "network -10 to -18 %" --samples dealt --partition greedy --blocks none
    strategy "DRPS + all" "both" --samples dealt --partition greedy --blocks topk --topk $k --prune-to 10%
    strategy "ours" "" --partition auto --blocks pattern
    strategy "ours, auto" "" --partition auto --blocks auto
    rm -f "${work:?}/$set"
done | table paper-drps-fig8 2 "set | strategy | paper | loss | processor s an epoch | disk I/Os | I/Os saved, % | parameters over the network | network saved, %"
