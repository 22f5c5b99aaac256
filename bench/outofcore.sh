#!/usr/bin/env bash
# A model 8 times larger than --memory, trained in a memory cgroup of budget + 10 %, on each key-value engine; the same
# losses as in memory. The model: matrix factorisation of rank 512 with AdaGrad, 120 K users x 30 K items (uniform).
#   bench/outofcore.sh [RATINGS [RATIO [ENGINES]]]
. "$(dirname "$0")/lib.sh"
ratings=${1:-300K}
ratio=${2:-8}
engines=${3:-rocksdb leveldb}
text=$work/ooc.tsv
plan=$work/plan-ooc
[[ -e $text ]] || "$tools/drps-gen" matrix --users 120K --items 30K --ratings "$ratings" --seed 2 -o "$text" 1>&2
"$tools/drps-index" "$text" --algo lmf --factors 512 --batch-size 200 --test-fraction 0.02 -o "$plan" --force --quiet --json \
    >"$work/index.json"
model=$(jq '.rows * 4104' "$work/index.json") # 513 floats and as many of AdaGrad
budget=$((model / ratio))
echo "rows $(jq .rows "$work/index.json"), model with optimizer state $((model >> 20)) MiB, budget $((budget >> 20)) MiB"
"$tools/drps-train" "$plan" -o "$work/model-resident" --force --store resident --epochs 1 --lr 0.1 --quiet --json \
    >"$work/resident.json"
record "outofcore|resident, no limit|samples/s" "$(jq '.epochs[0].samples_per_s | floor' "$work/resident.json")"
jq -r '"resident: \(.epochs[0].samples_per_s | floor) samples/s, test loss \(.epochs[0].test_loss)"' "$work/resident.json"
for engine in $engines; do
    if in_cgroup $((budget * 11 / 10)) "$tools/drps-train" "$plan" -o "$work/model-$engine" --force --store "$engine" \
        --memory "$budget" --epochs 1 --lr 0.1 --quiet --json >"$work/$engine.json"; then
        jq -r --arg e "$engine" '"\($e): \(.epochs[0].samples_per_s | floor) samples/s, test loss \(.epochs[0].test_loss), peak \(.peak_rss_bytes / 1048576 | floor) MiB, waited for rows \(.epochs[0].stall_share * 100 | floor) %, read \(.epochs[0].read_bytes / 1e6 | floor) MB, written \(.epochs[0].written_bytes / 1e6 | floor) MB"' "$work/$engine.json"
        record "outofcore|$engine|samples/s" "$(jq '.epochs[0].samples_per_s | floor' "$work/$engine.json")"
        record "outofcore|$engine|peak resident set" "$(jq '.peak_rss_bytes / 1048576 | floor' "$work/$engine.json")" MiB
        record "outofcore|$engine|waiting for rows" "$(jq '.epochs[0].stall_share * 100 | floor' "$work/$engine.json")" %
        record "outofcore|$engine|--memory" $((budget >> 20)) MiB
        cmp <(jq -c '[.epochs[] | [.train_loss, .test_loss]]' "$work/resident.json") \
            <(jq -c '[.epochs[] | [.train_loss, .test_loss]]' "$work/$engine.json") && echo "$engine: losses equal to resident"
    else
        echo "$engine: FAILED"
    fi
done
