#!/usr/bin/env bash
# A relay store saved itself in a checkpoint: less memory, or another store, goes on from it within its limit, to the same bits. What
# is too little for reading the rows, and a disk without room for them, is told.
. "$(dirname "$0")/lib.sh"
mib=$((1024 * 1024))

"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 4M --zipf 0.4 --seed 5 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --batch-size 200 --test-fraction 0.1 -o plan --quiet --json >index.json
rows=$(value rows <index.json)
"$tools/drps-train" plan -o model --store resident --epochs 2 --quiet --json >resident.json

# killed PLAN MEMORY: a run with so much memory that has left checkpoints, without an orderly end; a copy of it is in saved/
killed() {
    rm -rf saved
    mkdir saved
    "$tools/drps-train" "$1" -o saved/model --store relay --memory "$2" --epochs 2 --checkpoint-every 150b --quiet 2>/dev/null &
    local pid=$!
    until [[ -e saved/model.checkpoint/rank-0/2 ]]; do
        kill -0 $pid 2>/dev/null || fail "drps-train --memory $2 ended too soon"
        pause
    done
    kill -KILL $pid
    wait $pid 2>/dev/null || true
    ls saved/model.checkpoint/rank-0/*/store/relay.rec >/dev/null || fail "no store has saved itself"
}

# goes_on STORE MEMORY: within the limit
goes_on() {
    cp -al saved again
    in_cgroup $(($2 * mib * 11 / 10)) "$tools/drps-train" plan -o again/model --resume --store "$1" --memory "$2M" --json >again.json \
        2>log.txt || fail "--resume --store $1 --memory $2M did not go on: $(tail -n 3 log.txt)"
    grep -q 'copying the rows out of' log.txt || fail "the store went on as it was: $(cat log.txt)"
    [[ $(value content <again.json) = "$(value content <resident.json)" ]] || fail "$1 with $2M has another model"
    rm -r again
    echo "$1 ok: from $was to $2M, peak $(($(value peak_rss_bytes <again.json) / mib)) MiB; $((rows * 136 / mib)) MiB of rows"
}

was=128M
killed plan $was
goes_on relay 56
goes_on rocksdb 72

mkdir small
mount -t tmpfs -o size=$((rows * 136 * 5 / 2)) tmpfs small 2>/dev/null || skip "the rest: cannot mount a tmpfs here, needs root"
trap 'umount -l small 2>/dev/null || true; rm -rf "$work"' EXIT
fails 75 'no space left for small/model.partial/store: training and the model need [0-9.]+ MiB at least' \
    "$tools/drps-train" plan -o small/model --resume --checkpoint-dir saved/model.checkpoint --store relay --memory 56M

# Narrow rows, all in one window: what is kept for each of them is more than they are.
"$tools/drps-index" data.svm --algo lor --batch-size 200 -o plan-lor --quiet --json >/dev/null
killed plan-lor 256M
fails 1 'reading its rows takes .*--memory.*--checkpoint-rows' "$tools/drps-train" plan-lor -o saved/model --resume --store relay \
    --memory 40M
