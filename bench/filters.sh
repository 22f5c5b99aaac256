#!/usr/bin/env bash
# What filters save, and what they cost in held-out quality: bytes of gradients, and of parameters in training, between four ranks,
# as they are and shortened, how many of gradients are rows that could not wait, how many rows were not pulled again, and the loss
# after some epochs.
#   bench/filters.sh [DATA]      DATA: default ../shared/data
# Bytes and losses are exact, the same with each run; times mean nothing here. Environment: lib.sh's.
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
[[ -d $data/ml-1m ]] || { echo "bench: no data in $data" >&2; exit 1; }

# pull NAME EPOCHS OPTIONS: a line of the table of parameters
pull() {
    # shellcheck disable=SC2086
    "$tools/drps-train" "$work/plan" -o "$work/model" --force --local 4 --epochs "$2" $3 --quiet --json |
        jq -r --arg name "$1, $2" --arg options "${3:-none}" '
            def digits(n): . * pow(10; n) | round / pow(10; n);
            def sum(f): [.ranks[].pull[f] // 0] | add;
            sum("plain_bytes") as $plain | sum("rows") as $rows |
            "| \($name) | \($options) | \(if $plain > 0 then sum("sent_bytes") / 1e6 | digits(2) else "all" end) | " +
            "\(if $plain > 0 then 100 * sum("sent_bytes") / $plain | digits(1) else 100 end) | " +
            "\(if $rows > 0 then 100 * (sum("unchanged") + sum("below")) / $rows | digits(1) else 0 end) | " +
            "\(.epochs[-1] | (.test_rmse // .test_loss) | digits(5)) | \(.epochs[-1].test_accuracy // "" | if . == "" then . else digits(4) end) |"' >>"$work/pulls"
}

run() { # NAME EPOCHS PHI PSI VALUES INDEX-OPTIONS...
    local name=$1 epochs=$2 phi=$3 psi=$4 values=$5 options
    shift 5
    "$tools/drps-index" "$@" --workers 4 --partition auto --residuals all -o "$work/plan" --force --no-forecast --quiet
    for options in "" "--push-values 16bit" "--push-values 8bit" "--push-values 8bit --push-top 10%" "--push-values 8bit --push-top 5%" \
        "--push-filter phi=$phi,d=0.1" "--push-filter phi=$phi,d=0.1 --push-values 8bit"; do
        # shellcheck disable=SC2086
        "$tools/drps-train" "$work/plan" -o "$work/model" --force --local 4 --epochs "$epochs" $options --quiet --json |
            jq -r --arg name "$name" --arg options "${options:-none}" '
                def digits(n): . * pow(10; n) | round / pow(10; n);
                ([.ranks[].push.plain_bytes // 0] | add) as $plain | ([.ranks[].push.sent_bytes // 0] | add) as $sent |
                "| \($name) | \($options) | \($plain / 1e6 | digits(2)) | \($sent / 1e6 | digits(2)) | " +
                "\(if $plain > 0 then 100 * $sent / $plain else 100 end | digits(1)) | " +
                "\([.ranks[].push.whole_bytes // 0] | add / 1e6 | digits(2)) | " +
                "\(.epochs[-1] | (.test_rmse // .test_loss) | digits(5)) | \(.epochs[-1].test_accuracy // "" | if . == "" then . else digits(4) end) |"'
    done
    for options in "" "--pull-values 32bit" "--pull-values 16bit" "--pull-values $values" "--pull-filter psi=$psi" \
        "--pull-filter psi=$psi --pull-values $values" "--pull-filter psi=$psi,eps=0.01 --pull-values $values" \
        "--pull-filter psi=$psi --pull-values $values --push-values 8bit --push-top 10%"; do
        pull "$name" "$epochs" "$options"
    done
}

echo "| set | filters | MB of gradients | sent | % | of it whole rows | held-out RMSE or loss | accuracy |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
run "ml-1m, LMF" 3 0.5 0.03 8bit "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --batch-size 1000 --test-fraction 0.1
run "ml-100k, LMF" 5 0.3 0.05 8bit "$data/ml-100k/ua.base.xz" --test "$data/ml-100k/ua.test.xz" --algo lmf --factors 16 --batch-size 100
run "imdb, LR" 3 0.05 0.02 16bit "$data/imdb/imdb.train.libsvm.xz" --test "$data/imdb/imdb.test.libsvm.xz" --algo lor --batch-size 100
run "criteo-sample, FM" 3 0.001 0.01 8bit "$data/criteo-sample/criteo.train.libsvm.xz" --test "$data/criteo-sample/criteo.test.libsvm.xz" \
    --algo fm --factors 8 --batch-size 100

echo
echo "| set, epochs | filters | MB of parameters | % | rows not sent, % | held-out RMSE or loss | accuracy |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
cat "$work/pulls"
