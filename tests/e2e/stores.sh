#!/usr/bin/env bash
# One thread: the same losses and the same parameters from every store, memory budget and kind of blocks; compressed
# input and stdin give the same plan as the plain file.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 30K --fields 20 --rows 60K --seed 3 -o data.svm --quiet
"$tools/drps-gen" matrix --users 2K --items 1K --ratings 40K --seed 3 -o ratings.tsv --quiet

content() { # PLAN TRAIN-OPTIONS...: "losses content" of a run
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o model --force --epochs 2 "$@" --quiet --json >train.json
    echo "$(all_values train_loss <train.json) $(all_values test_loss <train.json) $("$tools/drps-stat" model --json | value content)"
}

least() { # PLAN: KiB that the relay store takes at least, by its own refusal, and up to 150 more
    { "$tools/drps-train" "$1" -o refused --store relay --memory 1M 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 0.1) * 1024)}'
}
windows() { all_values windows <train.json | awk '/^[0-9]/'; } # that the last run had

# relay PLAN WANT TRAIN-OPTIONS...: in little and in more memory; windows must be many, then fewer
relay() {
    local plan=$1 want=$2 least few many more
    shift 2
    least=$(least "$plan")
    for more in 0 6000; do
        got=$(content "$plan" --store relay --memory $((least + more))K "$@")
        [[ $got = "$want" ]] || fail "$plan on relay with $((least + more))K, $*: $got instead of $want"
        [[ $more != 0 ]] || many=$(windows)
    done
    few=$(windows)
    [[ $many -ge 10 && $few -lt $many ]] || fail "$plan: $many windows in ${least}K, $few in 6000K more"
}

compare() { # NAME INDEX-OPTIONS...
    local name=$1 want got store memory
    shift
    "$tools/drps-index" "$@" --test-fraction 0.1 --memory 64M -o "plan-$name" --quiet --json >/dev/null
    "$tools/drps-stat" "plan-$name" --verify >/dev/null || fail "plan-$name does not verify"
    want=$(content "plan-$name" --store resident)
    for store in rocksdb leveldb file; do
        for memory in 80M 128M; do
            got=$(content "plan-$name" --store $store --memory $memory)
            [[ $got = "$want" ]] || fail "$name on $store with $memory: $got instead of $want"
        done
    done
    for rule in clock lru; do
        got=$(content "plan-$name" --store file --memory 48M --evict $rule)
        [[ $got = "$want" ]] || fail "$name on file with --evict $rule: $got instead of $want"
        [[ $(value evict <train.json) = "" && $(all_values evict <train.json) = "$rule" ]] || fail "--evict $rule is not reported"
    done
    relay "plan-$name" "$want"
    want=$(content "plan-$name" --store resident --epochs 3 --threads 2)
    relay "plan-$name" "$want" --epochs 3 --threads 2
    echo "ok $name"
}

compare lor data.svm --algo lor
compare fm data.svm --algo fm --factors 8 --batch-size 500
compare one-row-a-block data.svm --algo lor --blocks none
compare lmf ratings.tsv --algo lmf --factors 8
compare grid ratings.tsv --algo lmf --factors 8 --order grid --grid 4
compare lanes ratings.tsv --algo lmf --factors 8 --lanes 4
want=$(content plan-lanes --one-by-one)
for options in "--threads 1" "--threads 2" "--threads 4" "--threads 2 --store relay --memory $(least plan-lanes)K" "--threads 2 --store file --memory 80M" \
    "--threads 2 --store rocksdb --memory 80M"; do
    # shellcheck disable=SC2086 # words
    [[ $(content plan-lanes $options) = "$want" ]] || fail "lanes with $options: $(content plan-lanes $options) instead of $want"
done
echo "ok lanes: the bytes of one batch after another"
compare given data.svm --algo svm --order given

# Runs so many that they are merged; rows really go to disk and back.
"$tools/drps-index" data.svm --algo fm --factors 8 --batch-size 12 --test-fraction 0.1 --memory 64M -o plan-many --quiet --json >/dev/null
want=$(content plan-many --store resident --epochs 3)
relay plan-many "$want" --epochs 3
got=$(content plan-many --store relay --epochs 3 --memory "$(least plan-many)K")
[[ $(all_values merged_bytes <train.json) -gt 0 ]] || fail "$(windows) windows, and no run was merged"
[[ $(all_values read_bytes <train.json | awk '{n += $1} END {print n}') -gt 0 ]] || fail "relay read nothing"
echo "ok groups: $(windows) windows, $(all_values groups <train.json) groups"

# Blocks go out to the file and come back, as many as the forecast says, to 1 %.
least=$({ "$tools/drps-train" plan-many -o refused --store file --memory 1M 2>&1 || true; } |
    sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 0.3) * 1024)}')
got=$(content plan-many --store file --epochs 3 --memory "${least}K" --prefetch-steps 1)
[[ $got = "$want" ]] || fail "file with ${least}K: $got instead of $want"
moved=$(($(all_values reads <train.json | sed -n 2p) + $(all_values writes <train.json | sed -n 2p)))
requests=$(all_values requests <train.json | sed -n 2p)
[[ $moved -gt 100 && $requests -gt 100 ]] || fail "$moved I/Os and $requests requests: nothing is tested"
# The store's thread is a step ahead where an epoch is counted to end.
awk "BEGIN {d = $moved / $(all_values ios <train.json) - 1; exit !(d * d < 1e-4)}" || fail "$(all_values ios <train.json) I/Os forecast, $moved measured"
"$tools/drps-stat" model --verbose | grep 'requests to read' >/dev/null || fail "drps-stat does not show requests"
echo "ok file: $moved I/Os, $requests requests"

# The best epochs are written on the way: the rows are visited, and training goes on with them.
while read -r plan lr; do
    set -- --epochs 30 --patience 2 --lr "$lr"
    want=$(content "$plan" --store resident "$@")
    [[ $(value stopped_early <train.json) = true && $(value best_epoch <train.json) -gt 1 ]] ||
        fail "$plan: no early stop, epoch $(value best_epoch <train.json) is the best: nothing is tested"
    relay "$plan" "$want" "$@"
    [[ $(value stopped_early <train.json) = true ]] || fail "$plan: relay did not stop early"
done <<<"plan-grid 0.03
plan-many 0.003"
echo "ok patience"

gzip -k data.svm
xz -k -1 data.svm
for input in data.svm.gz data.svm.xz -; do
    "$tools/drps-index" $input --algo lor --test-fraction 0.1 -o plan-in --force --quiet --json <data.svm >/dev/null
    cmp plan-in/data.rec plan-lor/data.rec || fail "$input gives other batches"
    cmp plan-in/names.rec plan-lor/names.rec || fail "$input gives another dictionary"
done
echo "ok input"
for memory in 64M 1G; do
    "$tools/drps-index" data.svm --algo lor --test-fraction 0.1 --memory $memory -o plan-in --force --quiet --json >/dev/null
    cmp plan-in/data.rec plan-lor/data.rec || fail "--memory $memory gives other batches"
done
echo "ok memory"

# The predictor sees what evaluation saw.
"$tools/drps-gen" ctr --samples 33K --fields 20 --rows 60K --seed 3 --test-samples 3K --test-output test.svm -o train.svm --quiet
"$tools/drps-index" train.svm --test test.svm --algo lor -o plan-test --quiet --json >/dev/null
"$tools/drps-train" plan-test -o model-test --epochs 2 --quiet --json >train.json
want=$(all_values test_loss <train.json | tail -1)
got=$("$tools/drps-predict" model-test test.svm -o scores.txt --metrics --json --quiet | all_values test_loss)
awk "BEGIN {d = $got / $want - 1; exit !(d * d < 1e-10)}" || fail "drps-predict: loss $got, evaluation said $want"
[[ $(wc -l <scores.txt) = 3000 ]] || fail "scores.txt has $(wc -l <scores.txt) lines"
echo "ok predict"
