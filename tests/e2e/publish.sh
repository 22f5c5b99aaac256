#!/usr/bin/env bash
# What is trained is not lost: the disk fills while training goes on, the process is killed while it writes the model, Ctrl-C
# comes before the first epoch is over. Later the same model is made of what was kept. Needs root for a small tmpfs.
. "$(dirname "$0")/lib.sh"
mkdir small
mount -t tmpfs -o size=96m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here: needs root"
trap 'umount -l small 2>/dev/null || true; rm -rf "$work"' EXIT
"$tools/drps-gen" ctr --samples 20K --fields 20 --rows 100K --zipf 0.8 --seed 6 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --test-fraction 0.1 --memory 64M -o plan --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --workers 2 --memory 64M -o plan-2 --quiet
epochs=40

# wait_for WHAT PID COMMAND...: until the command succeeds; the process must live on
wait_for() {
    local what=$1 pid=$2
    shift 2
    until "$@" 2>/dev/null; do
        kill -0 "$pid" 2>/dev/null || fail "ended before $what: $(cat err.txt)"
        pause
    done
}
trained_one() { [[ $(wc -l <progress.txt) -ge 2 ]]; } # a head and an epoch

# fills END PLAN TRAIN-OPTIONS...: the disk fills after the first epoch. END: done, the model is written where the store was; kept,
# there is no room for it, and what is kept becomes the undisturbed run's model later.
fills() {
    local end=$1 plan=$2 pid status=0 want
    shift 2
    rm -rf undisturbed
    want=$("$tools/drps-train" "$plan" -o undisturbed --epochs $epochs --json --quiet "$@" | value content)
    [[ $want =~ ^[0-9a-f]{16}$ ]] || fail "$*: content $want"
    : >progress.txt
    rm -f go && mkfifo go
    "$tools/hold_output" 2 go "$tools/drps-train" "$plan" -o small/model --epochs $epochs "$@" >>progress.txt 2>err.txt &
    pid=$!
    wait_for "the first epoch" $pid trained_one # it waits in one of the next three for its output to be read
    dd if=/dev/zero of=small/fill bs=1M status=none 2>/dev/null && fail "small is not full"
    dd if=/dev/zero of=small/fill2 bs=4K status=none 2>/dev/null && fail "small is not full"
    : >go
    wait $pid || status=$?
    if [[ $end = done ]]; then
        [[ $status = 0 ]] || fail "$*: ended with $status: $(cat err.txt)"
        [[ $("$tools/drps-stat" small/model --json | value content) = "$want" ]] || fail "$*: another model"
        "$tools/drps-stat" small/model --verify >/dev/null || fail "$*: small/model does not verify"
        rm -r small/*
        echo "ok $end $plan $*"
        return
    fi
    [[ $status = 1 ]] || fail "$*: ended with $status: $(cat err.txt)"
    grep -q "'drps-train --publish small/model.trained -o small/model'" err.txt ||
        fail "$*: says: $(cat err.txt)"
    grep -q 'no space left' err.txt || fail "$*: says: $(cat err.txt)"
    absent small/model
    [[ $(cd small/model.trained && echo *) = "names.rec params.bin trained.json" ]] || fail "$*: kept $(ls small/model.trained)"

    fails 1 'small/model.trained stays as it is.*no space left' "$tools/drps-train" --publish small/model.trained -o small/model
    absent small/model
    cp -r small/model.trained kept # two disks: one that has room, and this one once it has
    [[ $("$tools/drps-train" --publish kept -o elsewhere --json | value content) = "$want" ]] || fail "$*: elsewhere: another model"
    [[ ! -e kept ]] || fail "$*: kept was not removed"
    "$tools/drps-stat" elsewhere --verify >/dev/null || fail "$*: elsewhere does not verify"
    rm small/fill small/fill2
    "$tools/drps-train" --publish small/model.trained -o small/model --quiet || fail "$*: with room it cannot be published"
    [[ $(ls small) = model ]] || fail "$*: left behind: $(ls small)"
    "$tools/drps-stat" small/model --verify >/dev/null || fail "$*: small/model does not verify"
    "$tools/drps-predict" small/model data.svm -o scores.txt --force --quiet
    "$tools/drps-predict" undisturbed data.svm -o want.txt --force --quiet
    cmp -s scores.txt want.txt || fail "$*: other scores than the undisturbed model's"
    rm -r small/model elsewhere
    echo "ok $end $plan $*"
}

fills kept plan --store resident
fills kept plan --store resident --patience $epochs --model-store leveldb
fills "done" plan --store relay --memory 46M
fills "done" plan --store relay --memory 46M --patience $epochs
fills "done" plan --store file --memory 64M
fills kept plan-2 --local 2 --transport inproc
fills "done" plan-2 --local 2 --transport inproc --store relay --memory 92M

# Killed while the model is written: the folder has its name by then, and is whole.
rm -r undisturbed
want=$("$tools/drps-train" plan -o undisturbed --json --quiet | value content)
for ((tries = 0; ; tries++)); do
    ((tries < 50)) || fail "the model was always written before it could be killed"
    rm -rf model
    "$tools/drps-train" plan -o model --quiet 2>err.txt &
    pid=$!
    until [[ -e model.trained || -e model ]]; do
        kill -0 $pid 2>/dev/null || break
    done
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    [[ ! -e model.trained || -e model ]] || break
done
[[ -e model.partial ]] || fail "nothing was left of the model that was being written"
[[ $("$tools/drps-train" --publish model.trained -o model --json | value content) = "$want" ]] || fail "killed: another model"
"$tools/drps-stat" model --verify >/dev/null || fail "killed: the model does not verify"
absent model.trained
absent model.partial

# Ctrl-C within the first epoch: a model that is there stays, and without a step nothing is written.
"$tools/drps-index" data.svm --algo fm --factors 16 --batch-size 1 -o slow --quiet
sum_of() { "$tools/drps-stat" "$1" --json | value content; }
for way in "slow" "plan-2 --local 2 --transport inproc --epochs 100000"; do
    before=$(sum_of model)
    # shellcheck disable=SC2086 # words
    "$tools/drps-train" $way -o model --force 2>err.txt >/dev/null &
    pid=$!
    wait_for "it began" $pid test -e model.partial/trained/names.rec
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [[ $status = 130 ]] || fail "$way: ended with $status: $(cat err.txt)"
    if grep -q 'before the first step' err.txt || grep -q 'model stays as it was' err.txt; then
        [[ $(sum_of model) = "$before" ]] || fail "$way: the model was replaced: $(cat err.txt)"
    else
        grep -qE 'after [1-9][0-9]* epochs' err.txt || fail "$way: says: $(cat err.txt)"
    fi
    grep -q 'before the first step' err.txt && [[ -e model.trained ]] && fail "$way: kept nothing at all"
    absent model.partial
    if [[ -e model.trained ]]; then "$tools/drps-train" --publish model.trained -o model --force --quiet; fi
    "$tools/drps-stat" model --verify >/dev/null || fail "$way: the model does not verify"
done

# A value that is too large for its square: the row is named, by all ranks, and there is no model.
{ cat data.svm && echo "1 99999999:1e25"; } >huge.svm
"$tools/drps-index" huge.svm --algo lor --order given --workers 2 -o plan-huge --quiet
fails 1 'row [0-9]+ \(99999999\) of table w has the value -?nan after epoch 1' \
    "$tools/drps-train" plan-huge -o none --local 2 --transport inproc
absent none
absent none.trained

# Wrong usage.
fails 2 'makes a model of what is trained already' "$tools/drps-train" plan --publish model.trained -o x
fails 2 'makes a model of what is trained already' "$tools/drps-train" --publish model.trained -o x --epochs 2
fails 2 '-o MODEL is missing' "$tools/drps-train" --publish model.trained
fails 1 'plan holds nothing that drps-train has kept' "$tools/drps-train" --publish plan -o x
absent x
echo "ok"
