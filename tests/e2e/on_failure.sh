#!/usr/bin/env bash
# Training that goes on by itself: a rank that is killed, stopped or cannot start is followed by another attempt, from the
# newest checkpoint, to the model of an undisturbed run; errors that would come again, and signals to the user's process, are
# followed by none.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 20K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 4 --workers 3 --batch-size 100 --test-fraction 0.1 -o plan --quiet
"$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 100 --test-fraction 0.1 -o plan-one --quiet
how=(--epochs 60 --checkpoint-every 60b)
local=(--local 3)
if ! "$tools/drps-train" plan -o want "${how[@]}" --local 3 --quiet --json >want.json 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
"$tools/drps-train" plan-one -o want-one "${how[@]}" --quiet --json >want-one.json

children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
# begin PLAN OPTIONS...: in the background; its first process is $watcher, which trains nothing itself
begin() {
    rm -rf got got.*
    "$tools/drps-train" "$1" -o got "${how[@]}" --on-failure resume "${@:2}" --json >got.json 2>err.txt &
    watcher=$!
}
reached() { # CHECKPOINT: until there is one of such a number or a larger one
    until (($(newest got.checkpoint/rank-0) >= $1)); do
        kill -0 $watcher 2>/dev/null || fail "no checkpoint $1: $(cat err.txt)"
        pause
    done
}
# ranks: their processes, rank 0 first, once all are there
ranks() {
    local pids=()
    until [[ ${#pids[@]} = 3 ]]; do
        kill -0 $watcher 2>/dev/null || fail "it has ended: $(cat err.txt)"
        read -ra pids <<<"$(children $watcher) $(for pid in $(children $watcher); do children "$pid"; done)"
        pause
    done
    echo "${pids[@]}"
}
ends() { # STATUS
    local status=0
    wait $watcher || status=$?
    [[ $status = "$1" ]] || fail "ended with $status, not $1: $(cat err.txt)"
}
same() { # WANT.JSON WHAT
    ends 0
    [[ $(value content <got.json) = "$(value content <"$1")" ]] || fail "$2: $(value content <got.json) instead of $(value content <"$1")"
    [[ ! -e got.checkpoint ]] || fail "$2: checkpoints were left behind"
    "$tools/drps-stat" got --verify >/dev/null || fail "$2: the model does not verify"
}
starts() { grep -c "starting anew" err.txt || true; }
says() { grep -qE -- "$1" err.txt || fail "does not say '$1' but: $(cat err.txt)"; }

# A rank lost while all meet, or soon after: there is no checkpoint.
begin plan "${local[@]}" --checkpoint-every 50e
read -ra pids <<<"$(ranks)"
kill -KILL "${pids[2]}"
same want.json "a rank lost at the beginning"
[[ $(starts) = 1 ]] || fail "started anew $(starts) times, not once: $(cat err.txt)"
says "warning: rank 2 was killed by signal 9 \\(Killed\\): starting anew, from the beginning$"

# One rank after the other, when there are some checkpoints, and later; the second when the first has been noticed.
begin plan "${local[@]}"
at=1
for victim in 0 1; do
    until [[ $(starts) = "$victim" ]]; do kill -0 $watcher 2>/dev/null || fail "it has ended: $(cat err.txt)"; pause; done
    reached $at
    read -ra pids <<<"$(ranks)"
    kill -KILL "${pids[victim]}"
    at=$(($(newest got.checkpoint/rank-0) + 3))
done
same want.json "two ranks lost"
[[ $(starts) = 2 ]] || fail "started anew $(starts) times, not twice: $(cat err.txt)"
says "warning: rank [01] was killed by signal 9 \\(Killed\\): starting anew, from epoch [0-9]+ after [0-9]+ batches$"
says "going on from checkpoint"
echo "ok killed: $(grep -c "" err.txt) lines"

# With gradients that are held back, and copies of rows: attempts begin without any, between epochs.
"$tools/drps-index" data.svm --algo fm --factors 4 --workers 3 --batch-size 100 --test-fraction 0.1 --residuals all -o plan-kept --quiet
begin plan-kept "${local[@]}" --sync ssp --staleness 4 --push-values 8bit --push-top 10% --pull-cached --pull-values 16bit
reached 3
read -ra pids <<<"$(ranks)"
kill -KILL "${pids[1]}"
ends 0
[[ $(starts) = 1 ]] || fail "started anew $(starts) times, not once: $(cat err.txt)"
says "starting anew, from epoch [0-9]+"
"$tools/drps-stat" got --verify >/dev/null || fail "the model of held back gradients does not verify"
[[ $(all_values epoch <got.json | tail -1) = 60 ]] || fail "it ended in epoch $(all_values epoch <got.json | tail -1)"
echo "ok with what is held back"

# The best epoch so far is no reason to end with a model of that one.
"$tools/drps-train" plan -o want-patience "${how[@]}" --patience 60 --local 3 --quiet --json >want-patience.json
begin plan "${local[@]}" --patience 60
reached 3
read -ra pids <<<"$(ranks)"
kill -KILL "${pids[1]}"
same want-patience.json "with patience"
[[ $(starts) = 1 && ! -e got.trained ]] || fail "started anew $(starts) times, not once: $(cat err.txt)"
echo "ok with patience"

# A rank that is stopped is lost when it has been silent for long enough, and is not waited for.
begin plan "${local[@]}" --silence 1
reached 2
read -ra pids <<<"$(ranks)"
kill -STOP "${pids[1]}"
same want.json "a rank stopped"
[[ $(starts) = 1 ]] || fail "started anew $(starts) times, not once: $(cat err.txt)"
[[ ! -e /proc/${pids[1]} ]] || fail "the stopped rank is still there"
echo "ok stopped"

# Begun anew beside the checkpoints of an earlier run: these are not gone on from, also by a second attempt.
begin plan "${local[@]}" --lr 0.5 --epochs 3 --keep-checkpoints
ends 0
"$tools/drps-train" plan -o got --force "${how[@]}" --checkpoint-every 59e "${local[@]}" --on-failure resume --json >got.json 2>err.txt &
watcher=$!
read -ra pids <<<"$(ranks)"
kill -KILL "${pids[0]}"
same want.json "begun anew"
says "rank 0 was killed by signal 9 \(Killed\): starting anew, from the beginning"
echo "ok begun anew"

# The same, but all is killed before its first checkpoint, and resumed: it is begun again, not the earlier run.
begin plan "${local[@]}" --lr 0.5 --epochs 3 --keep-checkpoints
ends 0
"$tools/drps-train" plan -o got --force "${how[@]}" --checkpoint-every 50e "${local[@]}" --quiet 2>err.txt &
watcher=$!
until compgen -G "got.checkpoint/rank-0/*.begun" >/dev/null; do kill -0 $watcher 2>/dev/null || fail "it has ended: $(cat err.txt)"; pause; done
kill -KILL $watcher
wait $watcher 2>/dev/null || true
status=75
while [[ $status = 75 ]]; do # its ranks end with it, but until they have the folders are in use
    status=0
    "$tools/drps-train" plan -o got --resume --force "${how[@]}" "${local[@]}" --json >got.json 2>err.txt || status=$?
done
[[ $status = 0 ]] || fail "resumed: status $status: $(cat err.txt)"
[[ $(value content <got.json) = "$(value content <want.json)" ]] || fail "went on with the earlier run: $(cat err.txt)"
says "no checkpoint but those of an earlier run"
echo "ok begun anew, killed and resumed"

# The only process.
begin plan-one
reached 2
kill -KILL "$(children $watcher | tr -d ' ')"
same want-one.json "the only process killed"
says "warning: training was killed by signal 9 \\(Killed\\): starting anew, from epoch"
echo "ok one process"

# Three attempts without a checkpoint are the last.
how=(--epochs 100000 --checkpoint-every 1000000e --silence 1000) # that a rank was killed is noticed at once
begin plan "${local[@]}"
for _ in 1 2 3; do
    read -ra pids <<<"$(ranks)"
    kill -KILL "${pids[1]}"
    while [[ -e /proc/${pids[0]} ]]; do kill -0 $watcher 2>/dev/null || break; pause; done
done
ends 75
[[ $(starts) = 2 ]] || fail "started anew $(starts) times, not twice: $(cat err.txt)"
says "error: rank 1 was killed by signal 9 \\(Killed\\); three attempts in a row ended so, without a new checkpoint"
echo "ok given up"

# Asked to end, whichever process is: the model so far, and no other attempt.
how=(--epochs 100000 --checkpoint-every 60b)
for whom in watcher all rank; do
    begin plan "${local[@]}"
    reached 1
    read -ra pids <<<"$(ranks)"
    status=0
    "$tools/drps-train" plan -o never "${local[@]}" --checkpoint-dir got.checkpoint --force >out.txt 2>other.txt || status=$?
    [[ $status = 75 ]] || fail "two runs share a folder of checkpoints: status $status"
    grep -qE "got.checkpoint/rank-[012] are those of a run that is still going on \(process [0-9]+ on " other.txt || fail "$(cat other.txt)"
    [[ $whom = rank ]] || kill -TERM $watcher
    [[ $whom != all ]] || kill -TERM "${pids[@]}" 2>/dev/null || true # some may have ended meanwhile
    [[ $whom != rank ]] || kill -TERM "${pids[2]}"
    ends 130
    [[ $(starts) = 0 ]] || fail "SIGTERM to $whom: $(cat err.txt)"
    "$tools/drps-stat" got --verify >/dev/null || fail "SIGTERM to $whom: no model"
done
# The watcher killed: nobody is left.
begin plan "${local[@]}"
reached 1
read -ra pids <<<"$(ranks)"
kill -KILL $watcher
wait $watcher 2>/dev/null || true
for pid in "${pids[@]}"; do while [[ -e /proc/$pid && $(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null) != Z ]]; do pause; done; done
echo "ok ended"

# Errors that would come again.
rm -rf got got.*
for wrong in "1 diverged --lr 1e20" "1 too.small --memory 3M" "2 plan.for.3 --local 2"; do
    read -ra words <<<"$wrong"
    fails "${words[0]}" "${words[1]}" "$tools/drps-train" plan -o never --local 3 --on-failure resume "${words[@]:2}"
    [[ $(starts) = 0 ]] || fail "$wrong: $(cat err.txt)"
done
fails 2 "writes none" "$tools/drps-train" plan -o never --local 3 --on-failure resume --checkpoint-every never
fails 2 "needs --resume on every rank" "$tools/drps-train" plan -o never --peers peers.txt --rank 0 --on-failure resume
fails 2 "not one of: stop, resume" "$tools/drps-train" plan -o never --on-failure again
absent never
echo "ok errors that stay"

# Ranks of a peers file: the others start anew by themselves, and only the lost one is started again. First a rank with too
# little memory, of which all hear that it would fail again.
peer() { # RANK OPTIONS...
    "$tools/drps-train" plan -o "got-$1" --peers peers.txt --rank "$1" --timeout 60 --silence 1 --resume --on-failure resume "${@:2}" --json \
        >"out-$1.txt" 2>"err-$1.txt" &
    pids[$1]=$!
}
ports 3 >peers.txt
pids=()
for r in 0 1; do peer $r; done
peer 2 --memory 3M
for r in 0 1 2; do
    status=0 && wait "${pids[r]}" || status=$?
    [[ $status = 1 ]] || fail "rank $r ended with $status, though rank 2 has too little memory: $(cat err-$r.txt)"
done
how=(--epochs 60 --checkpoint-every 60b)
for victim in 0 2; do
    rm -rf got-*
    for r in 0 1 2; do peer $r "${how[@]}"; done
    watcher=${pids[0]}
    until (($(newest got-0.checkpoint/rank-0) >= 2)); do kill -0 $watcher || fail "$(cat err-0.txt)"; pause; done
    kill -KILL "${pids[victim]}" # its machine, as it were: what watches and what is watched
    wait "${pids[victim]}" 2>/dev/null || true
    mv "err-$victim.txt" "err-$victim.first.txt"
    # Rank 0 comes back before the others have noticed, rank 2 when they are waiting for it.
    until [[ $victim = 0 ]] || grep -q "starting anew" err-1.txt; do kill -0 $watcher || fail "$(cat err-0.txt)"; pause; done
    peer $victim "${how[@]}"
    for r in 0 1 2; do wait "${pids[r]}" || fail "rank $r ended with $? after rank $victim was lost: $(cat err-$r.txt)"; done
    [[ $(value content <out-0.txt) = "$(value content <want.json)" ]] || fail "peers, rank $victim: $(value content <out-0.txt) instead of $(value content <want.json)"
    grep -q "starting anew, from epoch" "err-1.txt" || fail "rank 1 does not start anew: $(cat err-1.txt)"
    echo "ok peers, rank $victim: $(grep "starting anew" err-1.txt)"
done
