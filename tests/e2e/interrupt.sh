#!/usr/bin/env bash
# Ctrl-C ends cleanly with 130; kill -9 leaves nothing that looks complete, and the next run works.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 300K --seed 6 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --rank 8 --test-fraction 0.1 -o plan --quiet --json >/dev/null

# wait_for PATH PID: until the file exists; the process must live on
wait_for() {
    local tries=0
    until [[ -e $1 ]]; do
        kill -0 "$2" 2>/dev/null || fail "process ended before $1 existed"
        ((++tries < 20000)) || fail "$1 never appeared"
        read -rt 0.01 <> <(:) || true
    done
}

"$tools/drps-train" plan -o model --epochs 100000 --quiet &
pid=$!
wait_for model.partial $pid
read -rt 1 <> <(:) || true
kill -INT $pid
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "after SIGINT drps-train exited with $status"
absent model.partial
"$tools/drps-stat" model >stat.txt
grep -qi interrupted stat.txt || fail "drps-stat does not say that the model was interrupted"
"$tools/drps-predict" model data.svm -o scores.txt --quiet || fail "the interrupted model does not predict"

"$tools/drps-index" data.svm --algo lor -o plan2 --quiet &
pid=$!
wait_for plan2.partial $pid
kill -INT $pid
status=0
wait $pid || status=$?
[[ $status = 130 || $status = 0 ]] || fail "after SIGINT drps-index exited with $status"
[[ $status = 0 ]] || absent plan2

for tool in index train; do
    for round in 1 2 3; do
        if [[ $tool = index ]]; then set -- "$tools/drps-index" data.svm --algo lor -o killed --quiet
        else set -- "$tools/drps-train" plan -o killed --epochs 1000 --store rocksdb --memory 96M --quiet; fi
        "$@" &
        pid=$!
        wait_for killed.partial $pid
        read -rt "0.0$((round * 3))" <> <(:) || true
        kill -KILL $pid
        wait $pid 2>/dev/null || true
        [[ ! -e killed ]] || [[ $tool = index ]] && "$tools/drps-stat" killed --verify >/dev/null 2>&1 ||
            [[ ! -e killed ]] || fail "killed drps-$tool left something that looks complete"
        rm -rf killed
    done
    if [[ $tool = train ]]; then "$tools/drps-train" plan -o killed --quiet; else "$tools/drps-index" data.svm --algo lor -o killed --quiet; fi >/dev/null ||
        fail "drps-$tool after a killed run"
    absent killed.partial
    rm -rf killed
done
echo "ok"
