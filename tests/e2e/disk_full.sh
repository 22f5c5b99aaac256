#!/usr/bin/env bash
# A full disk: a clear message, exit 1, nothing that looks complete. Needs root for a small tmpfs.
. "$(dirname "$0")/lib.sh"
mkdir small
mount -t tmpfs -o size=8m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here: needs root"
trap 'umount -l small medium 2>/dev/null || true; rm -rf "$work"' EXIT # lazily: the kernel ends an io_uring after its process
"$tools/drps-gen" ctr --samples 60K --fields 30 --rows 400K --zipf 0.8 --seed 6 -o data.svm --quiet
fails 1 'no space|No space' "$tools/drps-index" data.svm --algo lor -o small/plan
absent small/plan
"$tools/drps-index" data.svm --algo fm --rank 16 -o plan --quiet --json >/dev/null
for store in resident rocksdb leveldb; do
    fails 1 'no space|No space' "$tools/drps-train" plan -o small/model --store $store --memory 128M
    absent small/model
done

# Relay takes the room that rows need on their way before it begins, and says how much; when the model is written all
# rows pass through a file of their own.
"$tools/drps-index" data.svm --algo fm --rank 16 --test-fraction 0.1 -o plan-relay --quiet --json >/dev/null
fails 1 'no space left for small/model.partial/store/transit, which needs [0-9.]+ MiB' \
    "$tools/drps-train" plan-relay -o small/model --store relay --memory 48M
absent small/model
mkdir medium
mount -t tmpfs -o size=24m tmpfs medium
fails 1 '(no space|No space).*medium/model.partial/store/scan' \
    "$tools/drps-train" plan-relay -o medium/model --store relay --memory 128M
absent medium/model
"$tools/drps-train" plan -o model --quiet
fails 1 'no space|No space' "$tools/drps-gen" ctr --samples 1M -o small/data.svm
rm -f small/*.svm small/*.svm.*
dd if=/dev/zero of=small/fill bs=1M count=8 status=none 2>/dev/null || true
fails 1 'no space|No space' "$tools/drps-predict" model data.svm -o small/scores
[[ ! -e small/scores ]] || fail "scores was left behind"
echo "ok"
