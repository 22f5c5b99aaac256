#!/usr/bin/env bash
# drps-train --filter-target: which filters pilots of up to an epoch choose, what they say these cost, and what they cost over the whole
# run: held-out RMSE, or loss, of four ranks with the filters and without, and all bytes that ranks sent to each other.
#   bench/filter_target.sh [DATA]      DATA: default ../shared/data
# Bytes and losses are exact, the same with each run; times mean nothing here. Environment: lib.sh's.
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
[[ -d $data/ml-1m ]] || { echo "bench: no data in $data" >&2; exit 1; }

run() { # NAME EPOCHS INDEX-OPTIONS...
    local name=$1 epochs=$2 target
    shift 2
    "$tools/drps-index" "$@" --workers 4 --partition auto --residuals all -o "$work/plan" --force --no-forecast --quiet
    "$tools/drps-train" "$work/plan" -o "$work/model" --force --local 4 --epochs "$epochs" --quiet --json >"$work/plain.json"
    for target in 0.1% 0.5%; do
        "$tools/drps-train" "$work/plan" -o "$work/model" --force --local 4 --epochs "$epochs" --filter-target $target --quiet --json |
            jq -r --arg name "$name, $epochs" --arg target "$target" --slurpfile plain "$work/plain.json" '
                def digits(n): . * pow(10; n) | round / pow(10; n);
                def percent(a; b): 100 * (a - b) / b | digits(2);
                def sent: [.ranks[].sent[].bytes] | add;
                def quality: .epochs[-1] | (.test_rmse // .test_loss);
                def accuracy: .epochs[-1].test_accuracy // "" | if . == "" then . else digits(4) end;
                .filter_target as $t | $t.pilots[0] as $none | ([$t.pilots[] | select(.options == $t.options)][0]) as $chosen |
                (if $t.options == "" then "none" else $t.options end) as $options |
                "| \($name) | \($target) | `\($options)` | \(percent($chosen.loss; $none.loss)) | " +
                "\($plain[0] | quality | digits(5)) | \(quality | digits(5)) | \(percent(quality; $plain[0] | quality)) | " +
                "\($plain[0] | accuracy) | \(accuracy) | " +
                "\(($plain[0] | sent) / 1e6 | digits(2)) | \(sent / 1e6 | digits(2)) | \(-percent(sent; $plain[0] | sent)) | " +
                "\($t.pilots_sent_bytes / 1e6 | digits(2)) |"'
    done
}

echo "| set, epochs | target | filters | pilot: loss more, % | RMSE or loss without | with | more, % | accuracy without | with | MB without | with | saved, % | MB of pilots |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
run "ml-1m, LMF" 3 "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --batch-size 1000 --test-fraction 0.1
run "ml-100k, LMF" 5 "$data/ml-100k/ua.base.xz" --test "$data/ml-100k/ua.test.xz" --algo lmf --factors 16 --batch-size 100
run "imdb, LR" 3 "$data/imdb/imdb.train.libsvm.xz" --test "$data/imdb/imdb.test.libsvm.xz" --algo lor --batch-size 100
run "criteo-sample, FM" 3 "$data/criteo-sample/criteo.train.libsvm.xz" --test "$data/criteo-sample/criteo.test.libsvm.xz" \
    --algo fm --factors 8 --batch-size 100
