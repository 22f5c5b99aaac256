#!/usr/bin/env bash
# "Timed Dataflow", section II-B: million bytes that workers and servers exchange in an iteration of AlexNet, without filters. AlexNet
# is drps's: for images of 224 x 224 pixels of one channel, its convolutions in one piece, of 1000 classes. Images are generated: what is
# exchanged does not depend on them.
#   bench/papers/timed-overhead.sh [--quick] [DATA]
# Exact: counted by the plan, as drps-train sends them. --quick changes nothing. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
classes=1000

awk -v n=$classes 'BEGIN { for (i = 0; i < n; i++) printf "%d %d:0:1\n", i, i }' >"$work/images"

# line WORKERS PAPER
line() {
    "$tools/drps-index" "$work/images" --format libffm --algo alexnet --batch-size 1 --workers "$1" --servers 1 --separate \
        -o "$work/plan" --force --quiet --no-forecast
    # Each sample is a worker's batch of an iteration.
    jq -r --argjson workers "$1" --argjson n $classes --arg paper "$2" '
        def mb: . / 1e5 | round / 10;
        (.cluster.pulled_rows * .dim * 4 / $n) as $bytes |
        "| \($workers) workers, 1 server | \($paper) | \($bytes / 4e5 | round / 10) | \($bytes | mb) | \($bytes * $workers | mb) |"' "$work/plan/plan.json"
}

{
    line 2 "245.2 | "
    line 5 " | 1226"
} | table paper-timed-overhead 1 "ranks | paper: MB that a worker pulls, and pushes | paper: MB that the server sends, and gets | million parameters | MB that a worker pulls, and pushes | MB that the server sends, and gets"
