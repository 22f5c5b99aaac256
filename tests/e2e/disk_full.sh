#!/usr/bin/env bash
# A full disk: a clear message, exit 1, nothing that looks complete. Needs root for a small tmpfs.
. "$(dirname "$0")/lib.sh"
mkdir small
mount -t tmpfs -o size=8m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here: needs root"
trap 'umount small; rm -rf "$work"' EXIT
"$tools/drps-gen" ctr --samples 60K --fields 30 --rows 400K --zipf 0.8 --seed 6 -o data.svm --quiet
fails 1 'no space|No space' "$tools/drps-index" data.svm --algo lor -o small/plan
absent small/plan
"$tools/drps-index" data.svm --algo fm --rank 16 -o plan --quiet --json >/dev/null
for store in resident rocksdb leveldb; do
    fails 1 'no space|No space' "$tools/drps-train" plan -o small/model --store $store --memory 128M
    absent small/model
done
"$tools/drps-train" plan -o model --quiet
fails 1 'no space|No space' "$tools/drps-gen" ctr --samples 1M -o small/data.svm
rm -f small/*.svm small/*.svm.*
dd if=/dev/zero of=small/fill bs=1M count=8 status=none 2>/dev/null || true
fails 1 'no space|No space' "$tools/drps-predict" model data.svm -o small/scores
[[ ! -e small/scores ]] || fail "scores was left behind"
echo "ok"
