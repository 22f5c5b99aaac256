#!/usr/bin/env bash
# What filters save, and what they cost in held-out quality: bytes of gradients, and of parameters in training, between four ranks,
# as they are and shortened, how many of gradients are rows that could not wait and how many say what is sent, how many rows were not
# pulled again, and the loss after some epochs: of plans of one seed, or means over some.
#   bench/filters.sh [DATA]      DATA: default ../shared/data
# Bytes and losses are exact, the same with each run; times mean nothing here. Environment: lib.sh's, SEEDS (default "1"), and
# PULLS=0: gradients alone.
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

seeds=${SEEDS:-1}

# push NAME EPOCHS OPTIONS: a line of the table of gradients
push() {
    local seed
    for seed in $seeds; do
        # shellcheck disable=SC2086
        "$tools/drps-train" "$work/plan-$seed" -o "$work/model" --force --local 4 --seed "$seed" --epochs "$2" $3 --quiet --json
    done | jq -rs --arg name "$1, $2" --arg options "${3:-none}" '
        def digits(n): . * pow(10; n) | round / pow(10; n);
        def sum(f): [.[].ranks[].push[f] // 0] | add;
        def mean(f): map(f) | add / length;
        sum("plain_bytes") as $plain | sum("sent_bytes") as $sent | sum("whole_bytes") as $whole | length as $n |
        def share: if $plain > 0 then 100 * . / $plain | digits(2) else . end;
        "| \($name) | \($options) | \($plain / $n / 1e6 | digits(2)) | \(if $plain > 0 then $sent | share else 100 end) | " +
        "\($whole | share) | \($sent - $whole - sum("value_bytes") | share) | \(sum("left_rows") / $n | digits(0)) | " +
        "\(mean(.epochs[-1] | (.test_rmse // .test_loss)) | digits(5)) | " +
        "\(if .[0].epochs[-1].test_accuracy then mean(.epochs[-1].test_accuracy) | digits(5) else "" end) |"'
}

run() { # NAME EPOCHS PHI HOLD PSI VALUES INDEX-OPTIONS...
    local name=$1 epochs=$2 phi=$3 hold=$4 psi=$5 values=$6 options seed
    shift 6
    for seed in $seeds; do
        "$tools/drps-index" "$@" --seed "$seed" --workers 4 --partition auto --residuals each -o "$work/plan-$seed" --force --no-forecast --quiet
    done
    for options in "" "--push-values 16bit" "--push-values 8bit" "--push-values 8bit --push-top 10%" "--push-values 8bit --push-top 5%" \
        "--push-filter phi=$phi,d=0.1" "--push-filter phi=$phi,d=0.1 --push-values 8bit" "--push-values 8bit $hold"; do
        push "$name" "$epochs" "$options"
    done
    for options in "--push-top 10%" "--push-top 5%" "$hold"; do
        for flush in 2 last last,16bit last,8bit; do
            push "$name" "$epochs" "--push-values 8bit $options --push-flush $flush"
        done
    done
    [[ ${PULLS:-1} = 0 ]] && return
    rm -rf "$work/plan"
    cp -r "$work/plan-${seeds%% *}" "$work/plan"
    for options in "" "--pull-values 32bit" "--pull-values 16bit" "--pull-values $values" "--pull-filter psi=$psi" \
        "--pull-filter psi=$psi --pull-values $values" "--pull-filter psi=$psi,eps=0.01 --pull-values $values" \
        "--pull-filter psi=$psi --pull-values $values --push-values 8bit --push-top 10%"; do
        pull "$name" "$epochs" "$options"
    done
}

echo "| set, epochs | filters | MB of gradients | sent, % of it | rows that are sent whole, % | marks and heads, % | rows of which something is left | held-out RMSE or loss | accuracy |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
run "ml-1m, LMF" 3 0.5 "--push-top 3%" 0.03 8bit "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --batch-size 1000 --test-fraction 0.1
run "ml-100k, LMF" 5 0.3 "--push-top 7%" 0.05 8bit "$data/ml-100k/ua.base.xz" --test "$data/ml-100k/ua.test.xz" --algo lmf --factors 16 --batch-size 100
run "imdb, LR" 3 0.05 "--push-filter phi=1.4" 0.02 16bit "$data/imdb/imdb.train.libsvm.xz" --test "$data/imdb/imdb.test.libsvm.xz" --algo lor --batch-size 100
run "criteo-sample, FM" 3 0.001 "--push-filter phi=1.1" 0.01 8bit "$data/criteo-sample/criteo.train.libsvm.xz" --test "$data/criteo-sample/criteo.test.libsvm.xz" \
    --algo fm --factors 8 --batch-size 100

[[ ${PULLS:-1} = 0 ]] && exit
echo
echo "| set, epochs | filters | MB of parameters | % | rows not sent, % | held-out RMSE or loss | accuracy |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
cat "$work/pulls"
