#!/usr/bin/env bash
# "Reducing Redundant Communication", section V-B: keys are omitted, as each side knows from the plan which rows a message has. The paper
# gives no figures of that alone. MB an epoch that ten workers and servers send, measured; what keys of 4 and of 8 bytes would add
# to each row of each message (counted, not sent; a pull's request, which would have keys, too, is not counted); and MB of the
# plan's files that say which rows a message has, which every machine reads from its disk, once where they fit its memory.
#   bench/papers/redundant-keys.sh [--quick] [DATA]
# All are exact. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redundant.sh"

# sent NAME MODEL-OPTIONS...: a line of the table
sent() {
    local name=$1 files
    "$tools/drps-index" "$(file_of "$set")" --format libsvm --workers $workers --batch-size $((batch / workers)) --partition range \
        --samples dealt -o "$work/keys" --force --quiet --no-forecast "${@:2}"
    files=$(cat "$work"/keys/rank-*/{positions,shares}.rec | wc -c)
    # shellcheck disable=SC2086
    "$tools/drps-train" "$work/keys" -o "$work/model" --force --local $workers --transport inproc --store resident --optimizer sgd \
        --lr 1e-4 $plain --quiet --json |
        jq -r --arg row "$(title "$set"), $batch, $name" --argjson files "$files" '
            def mb: . / 1e4 | round / 100;
            def more(by): 100 * by | round;
            ([.ranks[].sent[] | .rows] | add) as $rows | ([.ranks[].sent[] | .bytes] | add) as $bytes |
            "| \($row) | \($bytes | mb) | \($bytes + 4 * $rows | mb) | \($bytes + 8 * $rows | mb) | " +
            "\(more(4 * $rows / $bytes)) and \(more(8 * $rows / $bytes)) % | \($files | mb) |"'
}

awk '{ print $1, $2 }' <<<"$table2" | wanted | while read -r set batch; do
    sent LR --algo lor
    sent "FM of $factors" --algo fm --task classification --factors $factors
done | table paper-redundant-keys 1 "set, mini-batch, model | MB without keys | MB with keys of 4 bytes | MB with keys of 8 bytes | keys add | MB of the plan that say which rows"
