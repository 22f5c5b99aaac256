#!/usr/bin/env bash
# A full disk: a clear message, exit 1 (drps-train, which is worth another start: 75), nothing that looks complete. Needs root for a small tmpfs.
. "$(dirname "$0")/lib.sh"
mkdir small
mount -t tmpfs -o size=5m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here: needs root"
trap 'umount -l small medium 2>/dev/null || true; rm -rf "$work"' EXIT # lazily: the kernel ends an io_uring after its process
"$tools/drps-gen" ctr --samples 60K --fields 30 --rows 400K --zipf 0.8 --seed 6 -o data.svm --quiet
fails 1 'no space|No space' "$tools/drps-index" data.svm --algo lor -o small/plan
absent small/plan
"$tools/drps-index" data.svm --algo fm --factors 16 -o plan --quiet --json >/dev/null
for store in resident rocksdb leveldb; do
    fails 75 'no space|No space' "$tools/drps-train" plan -o small/model --store $store --memory 128M
    absent small/model
done

# The room that rows need on their way, and when they are put in order, and that of the model, is looked for before training
# begins; with what is asked for it ends well. A store may need more, which it says when it sets that aside.
"$tools/drps-index" data.svm --algo fm --factors 16 --test-fraction 0.1 -o plan-relay --quiet --json >/dev/null
fails 75 'no space left for small/model.partial/store: training and the model need [0-9.]+ MiB at least( and [0-9.]+ MiB at most)?, and the disk has' \
    "$tools/drps-train" plan-relay -o small/model --store relay --memory 48M
absent small/model
# What will do: relay's file of runs, and windows that are cut for the run, may take more than the least.
need() { sed -nE 's/.* needs? ([0-9]+)[0-9.]* MiB at least( and ([0-9]+)[0-9.]* MiB at most)?.*/\3 \1/p' err.txt | awk '{print $1}'; }
mkdir medium
for how in "resident rocksdb" "resident leveldb" "relay rocksdb" "relay leveldb" "relay rocksdb --patience 2"; do
    # shellcheck disable=SC2086 # words
    set -- $how
    again=("$tools/drps-train" plan-relay -o medium/model --store "$1" --memory 128M --epochs 2 --model-store "${@:2}")
    mount -t tmpfs -o size=16m tmpfs medium
    fails 75 'medium/model.partial/store: training and the model need [0-9.]+ MiB at least( and [0-9.]+ MiB at most)?, and the disk has' "${again[@]}"
    absent medium/model
    umount -l medium
    room=$(($(need) + 2))
    [[ $1 != relay ]] || grep -q ' MiB at most, and' err.txt || fail "relay does not say what will do: $(cat err.txt)"
    mount -t tmpfs -o size=${room}m tmpfs medium
    "${again[@]}" --quiet 2>err.txt || fail "$how: $room MiB do not do: $(cat err.txt)"
    umount -l medium
done
mount -t tmpfs -o size=60m tmpfs medium
fails 75 'training and the model need more than .* no space left for medium/model.partial/store/blocks, which needs' \
    "$tools/drps-train" plan-relay -o medium/model --store file --memory 128M
absent medium/model
absent medium/model.trained

# With little memory windows are cut for the run. Where there is less than the most, a run is refused before its first step, and says
# what would do, or it ends well.
tight=("$tools/drps-train" plan-relay -o medium/model --store relay --memory 48M --epochs 2 --checkpoint-every never --quiet)
fails 75 'MiB at most' "${tight[@]/medium/small}"
least=$(sed -nE 's/.* need ([0-9]+).* MiB at least.*/\1/p' err.txt) most=$(need) refused=0 trained=0
for room in $((least - 2)) $((least + 2)) $(((least + most) / 2)) $((most + 1)); do
    mount -t tmpfs -o size=${room}m tmpfs medium
    status=0
    "${tight[@]}" >out.txt 2>err.txt || status=$?
    if ((status == 0)); then
        trained=$((trained + 1))
        "$tools/drps-stat" medium/model --verify >/dev/null || fail "$room MiB: the model does not verify"
    else
        refused=$((refused + 1))
        [[ $status = 75 && ! -s out.txt ]] || fail "$room MiB: it ended with $status after it began: $(cat out.txt err.txt)"
        grep -qE 'training and the model need ([0-9.]+ MiB at least and|up to) [0-9.]+ MiB' err.txt || fail "$room MiB: $(cat err.txt)"
    fi
    umount -l medium
done
((refused && trained && status == 0)) || fail "$most MiB do not do: $(cat err.txt)"

# One of several ranks: all end and name it, before the first round.
ports 2 >peers.txt
# full STORE PATTERN: rank 1 on the full disk ends with it, rank 0 with "rank 1 ... gave up: " before it
full() {
    "$tools/drps-train" plan-2 -o small/model --peers peers.txt --rank 1 --store "$1" --memory 128M --timeout 60 --quiet 2>rank-1.txt &
    local other=$! status=0
    fails 75 "rank 1 \\(.* gave up: .*$2" "$tools/drps-train" plan-2 -o model-2 --peers peers.txt --rank 0 --timeout 60
    wait $other || status=$?
    [[ $status = 75 ]] || fail "rank 1 ended with $status: $(cat rank-1.txt)"
    grep -qE "$2" rank-1.txt || fail "rank 1 says: $(cat rank-1.txt)"
    absent model-2
    absent small/model.rank-1
}
rm -rf small/*
"$tools/drps-index" data.svm --algo fm --factors 16 --workers 2 -o plan-2 --quiet
if "$tools/drps-train" plan-2 -o model-2 --local 2 --quiet 2>err.txt; then
    rm -rf model-2
    full file 'no space left for small/model.rank-1.partial/store: training and the model need'
else
    grep -q "this build has no ZeroMQ" err.txt || fail "two ranks: $(cat err.txt)"
fi

"$tools/drps-train" plan -o model --quiet
fails 1 'no space|No space' "$tools/drps-gen" ctr --samples 1M -o small/data.svm
rm -f small/*.svm small/*.svm.*
dd if=/dev/zero of=small/fill bs=1M count=8 status=none 2>/dev/null || true
fails 1 'no space|No space' "$tools/drps-predict" model data.svm -o small/scores
[[ ! -e small/scores ]] || fail "scores was left behind"
echo "ok"
