#!/usr/bin/env bash
# A disk that fills while several ranks train, because another program writes to it. Where the store cannot write any more every
# rank ends by itself with status 1, and names the rank, the path and what to do; nothing that looks complete stays. What relay
# needs was set aside at the start: the model is written, or what was trained is kept. Needs root for a small tmpfs.
. "$(dirname "$0")/lib.sh"
mkdir small
mount -t tmpfs -o size=100m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here: needs root"
trap 'umount -l small 2>/dev/null || true; rm -rf "$work"' EXIT
"$tools/drps-gen" ctr --samples 40K --fields 20 --rows 200K --zipf 0.8 --seed 6 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --workers 2 --partition range --batch-size 100 --memory 64M -o plan --quiet
epochs=400 # more than there is time for
"$tools/drps-train" plan -o tried --local 2 --transport zmq --epochs 1 --quiet 2>err.txt || {
    grep -q "this build has no ZeroMQ" err.txt || fail "two ranks: $(cat err.txt)"
    skip "this build has no ZeroMQ"
}

# little STORE: KiB that leave a rank hardly more than it needs, so that it writes again and again
little() {
    local need
    need=$("$tools/drps-train" plan -o refused --local 2 --store "$1" --memory 1M --epochs $epochs 2>&1 |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | sort -n | tail -1)
    awk "BEGIN {print int(($need + 2) * 1024)}"
}

# fills RANK STORE TRAIN-OPTIONS...: the disk of rank RANK fills in the third epoch
fills() {
    local rank=$1 store=$2 memory out pids=() r status
    shift 2
    memory=$(little "$store")
    rm -rf small/*
    ports 2 >peers.txt
    : >progress.txt # not by the shell that starts the next command, which may be late: the loop would see the old lines
    for r in 0 1; do
        out=model-$r
        ((r != rank)) || out=small/model
        "$tools/drps-train" plan -o $out --peers peers.txt --rank $r --store "$store" --memory "${memory}K" --epochs $epochs \
            --timeout 60 "$@" 2>err-$r.txt >>progress.txt &
        pids+=($!)
    done
    until [[ $(wc -l <progress.txt) -ge 3 ]]; do # a head and two epochs
        kill -0 "${pids[0]}" 2>/dev/null || fail "$store $*: ended too soon: $(cat err-0.txt err-1.txt)"
        pause
    done
    dd if=/dev/zero of=small/fill bs=1M status=none 2>/dev/null && fail "small is not full"
    if [[ $store = relay ]]; then
        kill -INT "${pids[0]}"
        for r in 0 1; do
            status=0 && wait "${pids[r]}" || status=$?
            [[ $status = $((rank ? 130 : 1)) ]] || fail "$store $*: rank $r ended with $status: $(cat err-$r.txt)"
        done
        if ((!rank)); then # the model of all rows takes more than this rank's store leaves
            grep -q 'what was trained is kept in small/model.trained' err-0.txt || fail "$store $*: rank 0 says: $(cat err-0.txt)"
            grep -q 'rank 0 .* gave up: .*no space left' err-1.txt || fail "$store $*: rank 1 says: $(cat err-1.txt)"
            rm small/fill
            "$tools/drps-train" --publish small/model.trained -o model-0 --quiet || fail "$store $*: it cannot be published"
            : >small/fill
        fi
        "$tools/drps-stat" model-0 --verify >/dev/null || fail "$store $*: model-0 does not verify"
        rm -r model-0
        [[ $(ls small) = fill ]] || fail "$store $*: left behind: $(ls small)"
        echo "ok rank $rank, $store $*: $(cat err-0.txt)"
        return
    fi
    for r in 0 1; do
        status=0 && wait "${pids[r]}" || status=$?
        [[ $status = 75 ]] || fail "$store $*: rank $r ended with $status: $(cat err-$r.txt)"
        absent model-$r
    done
    grep -qE '[Nn]o space left.*free (some|disk) space' err-$rank.txt || fail "$store $*: rank $rank says: $(cat err-$rank.txt)"
    grep -qE 'small/model.*\.partial/(store|rows)' err-$rank.txt || fail "$store $*: rank $rank names no file: $(cat err-$rank.txt)"
    grep -qE "rank $rank \(.*127.* gave up: .*small/model.*[Nn]o space|rank $rank \(.*127.* gave up: .*[Nn]o space.*small/model" err-$((1 - rank)).txt ||
        fail "$store $*: rank $((1 - rank)) says: $(cat err-$((1 - rank)).txt)"
    [[ $(ls small) = fill ]] || fail "$store $*: left behind: $(ls small)"
    echo "ok rank $rank, $store $*: $(cat err-$((1 - rank)).txt)"
}

for store in leveldb rocksdb; do
    fills 1 $store
    fills 1 $store --sync wsp
done
fills 1 relay
fills 0 relay --optimizer sgd # rows without state: the store leaves less room than the model needs
echo "ok"
