#!/usr/bin/env bash
# Ranks that are started one by one say whom they wait for, that one never came, and that they are done.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 2K --fields 4 --rows 1K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo lor --workers 2 -o plan --quiet
ports 2 >peers.txt
second=$(sed -n 2p peers.txt)

status=0
"$tools/drps-train" plan -o never --peers peers.txt --rank 0 --timeout 10 2>err.txt || status=$?
! grep -q "this build has no ZeroMQ" err.txt || skip "this build has no ZeroMQ"
[[ $status = 75 ]] || fail "a rank that nobody joins ended with $status: $(cat err.txt)"
grep -qF "waiting for rank 1 ($second), up to 10 s" err.txt || fail "nothing is said of the rank that is waited for: $(cat err.txt)"
grep -qF "rank 1 ($second) did not start within 10 s" err.txt || fail "nothing is said of the rank that did not come: $(cat err.txt)"
absent never
echo "ok waiting"

"$tools/drps-train" plan -o other --peers peers.txt --rank 1 --epochs 2 --timeout 60 >one.txt 2>one.err &
one=$!
"$tools/drps-train" plan -o model --peers peers.txt --rank 0 --epochs 2 --timeout 60 --quiet || fail "rank 0 failed"
wait $one || fail "rank 1 failed: $(cat one.err)"
grep -qE "rank 1 is done: 2 epochs in [0-9.]+ s, .* of memory at most; rank 0 writes the model" one.err || fail "rank 1 does not say that it is done: $(cat one.err)"
[[ ! -s one.txt ]] || fail "rank 1 has printed: $(cat one.txt)"
echo "ok done"

# A rank that is killed while ranks meet is noticed, also where whoever started the run ignores the ends of processes, which is inherited.
(trap '' CHLD && exec "$tools/drps-train" plan -o lost --local 2 --epochs 100000 --timeout 60 --quiet) 2>lost.err &
run=$!
until child=$(pgrep -P $run); do kill -0 $run || fail "it has ended: $(cat lost.err)"; pause; done
kill -KILL "$child"
status=0
wait $run || status=$?
[[ $status = 75 ]] || fail "a run whose rank was killed ended with $status: $(cat lost.err)"
grep -q "rank 1 was killed by signal 9" lost.err || fail "nobody says that a rank was killed: $(cat lost.err)"
absent lost
echo "ok killed"
