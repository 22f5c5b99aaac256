#!/usr/bin/env bash
# In-memory training speed on one core: LR and FM on the CTR-like set (4 M samples x 39 fields, 5 M ids), batch 1000,
# AdaGrad, resident store. The whole process is pinned to one core; the second epoch on (page cache warm) counts.
#   bench/inmemory.sh [EPOCHS]
. "$(dirname "$0")/lib.sh"
epochs=${1:-4}
text=$(ctr_text)
for model in "lor 0" "fm 16"; do
    read -r algo rank <<<"$model"
    plan=$work/plan-$algo$rank
    [[ -e $plan ]] || "$tools/drps-index" "$text" --algo "$algo" $([[ $rank = 0 ]] || echo --rank "$rank") \
        --batch-size 1000 --test-fraction 0.02 -o "$plan" --quiet >/dev/null
    for core in 0 all; do
        pin=()
        [[ $core = all ]] || pin=(taskset -c "$core")
        "${pin[@]}" "$tools/drps-train" "$plan" -o "$work/model" --force --epochs "$epochs" --store resident \
            --optimizer adagrad --lr 0.05 --quiet --json >"$work/train.json"
        jq -r --arg name "$algo rank $rank, cores: $core" '[.epochs[1:][].samples_per_s] | sort as $v |
            "\($name): samples/s median \($v[length / 2 | floor] | floor), best \($v[-1] | floor), worst \($v[0] | floor)"' \
            "$work/train.json"
    done
done
