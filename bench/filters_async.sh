#!/usr/bin/env bash
# What shortened gradients, shorter parameters and copies save in the asynchronous modes, and what they cost in held-out quality:
# bytes of gradients and of parameters between four ranks in training, and the loss after some epochs, means over seeds.
#   bench/filters_async.sh [DATA] [MODE:STALENESS]     DATA: default ../shared/data; default ssp:8
# Bytes and losses depend on timing a little; times mean nothing here. Environment: lib.sh's, and SEEDS (default "1 2 3").
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
mode=${2:-ssp:8}
seeds=${SEEDS:-1 2 3}
[[ -d $data/ml-1m ]] || { echo "bench: no data in $data" >&2; exit 1; }
sync=(--sync "${mode%%:*}")
[[ $mode != *:* ]] || sync+=(--staleness "${mode#*:}")

# Evaluation pulls all rows of test batches as they are: they are left out.
run() { # NAME EPOCHS HOLD INDEX-OPTIONS...
    local name=$1 epochs=$2 hold=$3 options seed held
    shift 3
    "$tools/drps-index" "$@" --workers 4 --partition auto --residuals each -o "$work/plan" --force --no-forecast --quiet
    held=$(jq -s --argjson epochs "$epochs" '[.[] | .cluster.test_served_rows * .dim * 4] | add * $epochs' "$work"/plan/rank-*/plan.json)
    for options in "" "--push-values 8bit" "--push-values 8bit --push-top 10%" "--push-values 8bit --push-top 5%" \
        "--push-values 8bit --push-top 10% --push-flush last" "--push-values 8bit $hold --push-flush last" \
        "--push-values 8bit $hold --push-flush last,8bit" "--pull-values 16bit" \
        "--pull-cached" "--pull-cached --pull-values 16bit" "--pull-cached --pull-values 16bit --push-values 8bit --push-top 10%"; do
        [[ $mode = ssp* || $options != *cached* ]] || continue
        for seed in $seeds; do
            # shellcheck disable=SC2086
            "$tools/drps-train" "$work/plan" -o "$work/model" --force --local 4 --epochs "$epochs" --seed "$seed" "${sync[@]}" $options --quiet --json
        done | jq -rs --arg name "$name" --arg options "${options:-none}" --argjson held "$held" '
            def digits(n): . * pow(10; n) | round / pow(10; n);
            def mean(f): map(f) | add / length;
            "| \($name) | \($options) | \(mean([.ranks[].sent.pushed.bytes] | add) / 1e6 | digits(2)) | " +
            "\((mean([.ranks[] | .sent.pulled.bytes + .sent.ahead.bytes] | add) - $held) / 1e6 | digits(2)) | " +
            "\(mean([.ranks[].sent.marks.bytes] | add) / 1e6 | digits(2)) | " +
            "\(mean(.epochs[-1] | (.test_rmse // .test_loss)) | digits(5)) | " +
            "\(if .[0].epochs[-1].test_accuracy then mean(.epochs[-1].test_accuracy) | digits(4) else "" end) |"'
    done
}

echo "| set, $mode | options | MB of gradients | MB of parameters | MB of marks | held-out RMSE or loss | accuracy |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
run "ml-1m, LMF" 3 "--push-top 5%" "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --batch-size 1000 --test-fraction 0.1
run "ml-100k, LMF" 5 "--push-top 7%" "$data/ml-100k/ua.base.xz" --test "$data/ml-100k/ua.test.xz" --algo lmf --factors 16 --batch-size 100
run "imdb, LR" 3 "--push-filter phi=1.4" "$data/imdb/imdb.train.libsvm.xz" --test "$data/imdb/imdb.test.libsvm.xz" --algo lor --batch-size 100
run "a9a, LR" 3 "--push-top 5%" "$data/a9a/a9a.xz" --test "$data/a9a/a9a.t.xz" --algo lor --batch-size 100
run "criteo-sample, FM" 3 "--push-filter phi=1" "$data/criteo-sample/criteo.train.libsvm.xz" --test "$data/criteo-sample/criteo.test.libsvm.xz" \
    --algo fm --factors 8 --batch-size 100
