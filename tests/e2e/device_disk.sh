#!/usr/bin/env bash
# Rows that are larger than the memory of a device and larger than --memory: some are on the device, some in memory, the rest on disk. The
# model is that of all rows on the device, to the last bit; over checkpoints, kills and other stores, too; and memory is bounded.
. "$(dirname "$0")/lib.sh"
mib=$((1024 * 1024))

library=$tools/../tests/drps-emulated-device.so
[[ -e $library ]] || skip "no emulated device: this build has no compiler for C++"
index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --json; }
on_device() { train "$@" --device cuda --device-library "$library"; }

# io KEY: a value of the store's I/O in the JSON on stdin
io() { sed -n '/^  "io": {/,/^  }/p' | all_values "$1" | head -1; }
tiers() { sed -n '/^  "tiers": {/,/^  }/p' | all_values "$1" | head -1; }

# needed PLAN KIND OPTIONS...: the bytes that a run with nearly none says it needs, of KIND: "the device has", or "a memory limit of"
needed() {
    local plan=$1 kind=$2
    shift 2
    { on_device "$plan" "$@" -o none 2>&1 || true; } |
        sed -nE "s/.*$kind.* (needs|at least) ([0-9.]+) ([KMG])iB (at least|is needed).*/\2 \3/p" | awk '{print int($1 * ($2 == "K" ? 1024 : $2 == "M" ? 1048576 : 1073741824) + 4096)}'
}

"$tools/drps-gen" ctr --samples 6000 --rows 8M --zipf 0.1 --fields 30 --interactions 2 -o clicks.svm --quiet
head -1500 clicks.svm >few.svm
"$tools/drps-gen" ctr --samples 800 --rows 100000 --zipf 0.1 --fields 20 --format libffm -o fields.ffm --quiet

# same ROW_BYTES PLAN OPTIONS...: with the least memory of both kinds, and with some more, the model has the bytes of one whose rows are all
# on the device
same() {
    local row_bytes=$1 plan=$2 content least memory more
    shift 2
    content=$(on_device "$plan" "$@" -o whole.model | value content)
    least=$(needed "$plan" "the device has" "$@" --device-memory 1K)
    for more in 0 30000; do
        memory=$(needed "$plan" "a memory limit of" "$@" --device-memory $((least + more)) --store relay --memory 1M)
        on_device "$plan" "$@" --device-memory $((least + more)) --store relay --memory $((memory + more)) -o tiered.model >tiered.json ||
            fail "$plan $*: $((least + more)) B of the device and $((memory + more)) B of memory do not do"
        [[ $(value store <tiered.json) = tiered-disk ]] || fail "$plan $*: store $(value store <tiered.json)"
        [[ $(value content <tiered.json) = "$content" ]] || fail "$plan $*, $more B more: other bytes"
        [[ $(io read_bytes <tiered.json) -gt 0 && $(io written_bytes <tiered.json) -gt 0 ]] || fail "$plan $*: nothing was on disk"
        [[ $(tiers in_bytes <tiered.json) -gt $(tiers bytes <tiered.json) && $(tiers out_bytes <tiered.json) -gt 0 ]] ||
            fail "$plan $*: nothing moved: $(cat tiered.json)"
        [[ $(tiers memory_bytes <tiered.json) -lt $(($(value rows <tiered.json) * row_bytes)) ]] || fail "$plan $*: all rows in memory"
    done
}

index clicks.svm --algo lor --batch-size 100 --test-fraction 0.1 -o lor.plan
index few.svm --algo fm --factors 8 --batch-size 30 --test-fraction 0.1 -o fm.plan
printf 'x = embedding 8\nh = full 8 x\nh = relu h\ns = full 1 h\nw = linear\np = fm x\nscore = sum s w p\n' >deep.net
index fields.ffm --algo net --net deep.net --batch-size 20 --test-fraction 0.1 -o net.plan
same 8 lor.plan --epochs 2
same 12 lor.plan --epochs 2 --optimizer ftrl --l1 0.1 --l2 0.1
same 72 fm.plan --epochs 2
same 72 net.plan --epochs 2

# ---- Checkpoints: a run goes on on a device or by the processor, from a checkpoint of either; and after it was killed ----

small=(--device-memory 300K --store relay --memory 37M)
index few.svm --algo fm --factors 4 --batch-size 30 --test-fraction 0.1 -o four.plan
content=$(on_device four.plan --epochs 3 -o whole.model | value content)
on_device four.plan --epochs 1 "${small[@]}" --checkpoint-every 7b --keep-checkpoints -o part.model >part.json
[[ $(value store <part.json) = tiered-disk ]] || fail "store $(value store <part.json)"
cp -r part.model again.model && cp -r part.model.checkpoint again.model.checkpoint
[[ $(on_device four.plan --epochs 3 "${small[@]}" --resume -o part.model | value content) = "$content" ]] || fail "resumed: other bytes"
[[ $(on_device four.plan --epochs 3 --resume -o again.model | value content) = "$content" ]] || fail "resumed with all rows on the device: other bytes"
plain=$(train four.plan --epochs 3 -o cpu.model | all_values train_loss | tail -1)
on_device four.plan --epochs 1 "${small[@]}" --keep-checkpoints -o part.model >/dev/null
train four.plan --epochs 3 --store relay --memory 37M --resume -o part.model >cpu.json
near "$(all_values train_loss <cpu.json | tail -1)" "$plain" 1e-4 || fail "resumed by the processor: another loss"
train four.plan --epochs 1 --store relay --memory 37M --keep-checkpoints -o part.model >cpu.json
[[ $(value store <cpu.json) = relay ]] || fail "store $(value store <cpu.json)"
on_device four.plan --epochs 3 "${small[@]}" --resume -o part.model >part.json
near "$(all_values train_loss <part.json | tail -1)" "$plain" 1e-4 || fail "resumed from rows that a store had saved: another loss"

for after in 2 9; do
    "$tools/drps-train" four.plan --epochs 3 --device cuda --device-library "$library" "${small[@]}" --checkpoint-every 5b -o killed.model \
        --force >/dev/null 2>err.txt &
    job=$!
    while kill -0 $job 2>/dev/null && [[ $(newest killed.model.checkpoint/rank-0 2>/dev/null) -lt $after ]]; do pause; done
    kill -9 $job 2>/dev/null || fail "the run has ended before it could be killed: $(cat err.txt)"
    wait $job 2>/dev/null || true
    [[ $(on_device four.plan --epochs 3 "${small[@]}" --resume -o killed.model | value content) = "$content" ]] || fail "killed and resumed: other bytes"
    rm -rf killed.model killed.model.checkpoint
done

# ---- Without --store the disk is used where rows do not fit --memory ----

"$tools/drps-gen" ctr --samples 3000 --rows 8M --zipf 0.1 --fields 30 --interactions 2 -o wide.svm --quiet
index wide.svm --algo fm --factors 32 --batch-size 50 --test-fraction 0.1 -o wide.plan
on_device wide.plan -o whole.model >whole.json
options=(--device cuda --device-library "$library" --device-memory 3M --force)
on_device wide.plan --device-memory 3M --memory 40M -o tiered.model >tiered.json
[[ $(value store <tiered.json) = tiered-disk && $(io read_bytes <tiered.json) -gt 0 ]] || fail "all rows fit: $(value store <tiered.json)"
[[ $(value content <tiered.json) = "$(value content <whole.json)" ]] || fail "by --memory: other bytes"
on_device wide.plan --device-memory 3M -o roomy.model >roomy.json
[[ $(value store <roomy.json) = tiered && $(value content <roomy.json) = "$(value content <whole.json)" ]] || fail "store $(value store <roomy.json)"
on_device wide.plan --device-memory 3M --store relay --memory 300M -o all.model >all.json
[[ $(value store <all.json) = tiered-disk && $(value content <all.json) = "$(value content <whole.json)" ]] || fail "with room for all rows: other bytes"
fails 1 'a memory limit of 40.0 MiB is too small: at least [0-9.]+ MiB is needed .*all rows, of which the device has some' \
    "$tools/drps-train" wide.plan "${options[@]}" --memory 40M --store resident -o none
fails 1 'a memory limit of 20.0 MiB is too small: at least [0-9.]+ MiB is needed .*two windows of a step.s rows' \
    "$tools/drps-train" wide.plan "${options[@]}" --memory 20M -o none

# ---- What is told ----

"$tools/drps-train" wide.plan "${options[@]}" --memory 40M --verbose -o told.model >out.txt 2>err.txt
grep -qE 'rows      .*, of which .* in memory and .* of the device at a time \(store tiered-disk\)' out.txt || fail "the report: $(cat out.txt)"
grep -qE 'moved     in [0-9]+ windows .* of rows to the device' out.txt || fail "the report: $(cat out.txt)"
grep -qE 'disk      .* of rows read, .* written; training waited for rows' out.txt || fail "the report: $(cat out.txt)"
grep -qE 'forecast  an epoch reads' out.txt || fail "the report: $(cat out.txt)"
"$tools/drps-stat" tiered.model --verify >/dev/null || fail "the model does not verify"
"$tools/drps-stat" --verbose tiered.model >stat.txt
[[ $(sed -n '/^device: rows in all epochs, store tiered-disk$/{n;n;p}' stat.txt) = '  it held '[1-9]*' of rows at a time, and the memory of the process '[1-9]* ]] ||
    fail "drps-stat does not say where rows were: $(cat stat.txt)"
grep -q 'rows of windows: ' stat.txt || fail "drps-stat has no windows: $(cat stat.txt)"

# ---- Memory is bounded: that of the emulated device is the process's, too ----

in_cgroup $(((40 + 4) * mib * 11 / 10)) "$tools/drps-train" wide.plan "${options[@]}" --memory 40M -o tiered.model --quiet --json >tiered.json ||
    fail "--memory 40M was ended by its limit"
[[ $(value content <tiered.json) = "$(value content <whole.json)" ]] || fail "in a cgroup: other bytes"
echo "memory ok: $(($(value rows <tiered.json) * 264 / mib)) MiB of rows, peak $(($(value peak_rss_bytes <tiered.json) / mib)) MiB"
