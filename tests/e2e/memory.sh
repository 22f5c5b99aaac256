#!/usr/bin/env bash
# --memory bounds the whole process: every tool runs in a memory cgroup of its budget + 10 %, out of core where the
# budget is smaller than the model, with the losses of an unlimited run.
. "$(dirname "$0")/lib.sh"
mib=$((1024 * 1024))

"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 4M --zipf 0.4 --seed 5 -o data.svm --quiet
in_cgroup $((64 * mib * 11 / 10)) "$tools/drps-index" data.svm --algo fm --factors 16 --batch-size 200 --test-fraction 0.1 \
    --memory 64M -o plan --quiet --json >index.json || fail "drps-index --memory 64M was ended by its limit"
rows=$(value rows <index.json)
echo "index ok: $rows rows, $((rows * 136 / mib)) MiB with optimizer state"
[[ $((rows * 136)) -gt $((96 * mib)) ]] || fail "the model of $rows rows fits the budget: nothing is tested"
"$tools/drps-train" plan -o model --store resident --quiet --json >resident.json
for engine in relay rocksdb leveldb; do
    in_cgroup $((96 * mib * 11 / 10)) "$tools/drps-train" plan -o "model-$engine" --store $engine --memory 96M --quiet --json \
        >$engine.json || fail "drps-train --store $engine --memory 96M was ended by its limit"
    [[ $(all_values test_loss <$engine.json) = "$(all_values test_loss <resident.json)" ]] || fail "$engine has another loss"
    echo "$engine ok: peak $(($(value peak_rss_bytes <$engine.json) / mib)) MiB of 96"
done
[[ $(all_values windows <relay.json | awk '/^[0-9]/') -ge 10 ]] || fail "relay had few windows: $(all_values windows <relay.json)"
[[ $(value content <relay.json) = "$(value content <resident.json)" ]] || fail "relay has another model"

# The least time of an epoch, by the disk and by arithmetic, is said where rows were on disk: the longer of both, and what of it was reached.
limit() { sed -n '/"limit_seconds": {/,/}/p' "$1"; }
[[ -z $(limit resident.json) ]] || fail "a limit without a disk: $(limit resident.json)"
limit relay.json | tr -d '",:' | awk '{at[$1] = $2}
    END { least = at["compute"] > at["disk"] ? at["compute"] : at["disk"]
        reached = least < at["measured"] ? least / at["measured"] : 1
        exit !(at["disk"] > 0 && at["compute"] > 0 && at["epochs"] == 1 && at["bytes_per_s"] > 0 && at["epoch"] == least &&
            (reached - at["reached"]) ^ 2 < 1e-12) }' || fail "the limit does not add up: $(limit relay.json)"
"$tools/drps-stat" model-relay >relay.txt
grep -qE '^  limit +an epoch takes [0-9.e-]+ s at least [(]arithmetic [0-9.e-]+, the disk [0-9.e-]+ beside it[)]; the last took [0-9.e-]+ s: [0-9.]+ % of the possible speed' relay.txt ||
    fail "drps-stat has no limit: $(cat relay.txt)"

# Windows that drps-index cut for the same memory are used; the ones above were cut anew. But on a disk where a request
# costs as much as many bytes (one that others keep busy is measured so), larger buffers leave less for windows.
"$tools/drps-index" data.svm --algo fm --factors 16 --batch-size 200 --test-fraction 0.1 --memory 96M -o plan-96 --quiet --json \
    >index.json
"$tools/drps-stat" plan-96 --verbose >stat.txt
grep -Eq 'rows kept from window to window \([0-9. %]+\), [0-9,]+ leave \([0-9. %]+\)' stat.txt || fail "drps-stat does not say what windows keep: $(cat stat.txt)"
"$tools/drps-train" plan-96 -o model-plan --store relay --memory 96M --json >plan.json 2>log.txt
seek=$(all_values seek_bytes <plan.json)
if grep -q 'cutting windows' log.txt; then
    [[ $seek -gt $((128 * 1024)) ]] || fail "the plan's windows were not used, with seeks of $seek bytes: $(cat log.txt)"
    used="windows of its own: the disk is slow, $seek bytes a seek"
else
    used="the plan's $(value windows <index.json) windows"
    [[ $(all_values windows <plan.json | awk '/^[0-9]/') = "$(value windows <index.json)" ]] || fail "other windows than the plan's"
fi
[[ $(value content <plan.json) = "$(value content <resident.json)" ]] || fail "relay has another model with the plan's windows"
echo "relay ok with $used"

# With --patience all rows are written in placed order beside the open windows, as often as the best epoch changes.
in_cgroup $((96 * mib * 11 / 10)) "$tools/drps-train" plan -o model-patience --store relay --memory 96M --epochs 3 --patience 1 \
    --threads 2 --quiet --json >patience.json || fail "drps-train --store relay --patience 1 was ended by its limit"
later=$(($(all_values train_loss <patience.json | wc -l) - 1)) # the first epoch makes the rows
[[ $(limit patience.json | all_values epochs) = "$later" ]] || fail "the limit is not of $later epochs: $(limit patience.json)"
echo "relay ok with patience and two threads: peak $(($(value peak_rss_bytes <patience.json) / mib)) MiB of 96"
"$tools/drps-predict" model data.svm -o all.txt --quiet
in_cgroup $((48 * mib * 11 / 10)) "$tools/drps-predict" model data.svm --memory 48M -o some.txt --quiet ||
    fail "drps-predict --memory 48M was ended by its limit"
cmp all.txt some.txt || fail "drps-predict: other scores with less memory"
echo "predict ok"
