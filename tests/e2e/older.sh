#!/usr/bin/env bash
# What earlier versions have written is read: a plan, one for two workers, what was trained, and a model (older/, made of
# older/data.svm, --algo fm with two factors). They have members of other names: rank for factors, eval_... for test_...
. "$(dirname "$0")/lib.sh"
cp -r "$source/tests/e2e/older" older # engines write where they read
chmod -R u+w older
content=37dbe19cd4d23f16 # of older/model and of older/trained

for plan in plan plan-2; do
    for name in '"rank": 2,' '"eval_batches"'; do grep -qF "$name" "older/$plan/plan.json" || fail "$plan is not an older one"; done
    "$tools/drps-stat" older/$plan --verify >/dev/null || fail "$plan does not verify"
    [[ $("$tools/drps-stat" older/$plan --json | value factors) = 2 ]] || fail "$plan: other factors"
    [[ $("$tools/drps-stat" older/$plan --json | value test_batches) -gt 0 ]] || fail "$plan: no test batches"
done

# Plans of today for the same data give the same models.
same() { # WORKERS OLDER BATCH-SIZE TRAIN-OPTIONS...
    local workers=$1 plan=$2 size=$3 want place=()
    shift 3
    ((workers == 1)) || place=(--partition range) # the default then
    "$tools/drps-index" older/data.svm "${place[@]}" --algo fm --factors 2 --test-fraction 0.2 --batch-size "$size" --workers "$workers" \
        --memory 64M -o today --force --quiet
    want=$("$tools/drps-train" today -o model --epochs 2 --force --json --quiet "$@" | value content)
    [[ $want =~ ^[0-9a-f]{16}$ ]] || fail "$plan $*: no content"
    [[ $("$tools/drps-train" "older/$plan" -o model --epochs 2 --force --json --quiet "$@" | value content) = "$want" ]] ||
        fail "$plan $*: another model than that of a plan of today"
    echo "ok $plan $*"
}
for store in resident relay file; do
    same 1 plan 50 --store $store
    same 2 plan-2 25 --store $store --local 2 --transport inproc
done

[[ $("$tools/drps-train" --publish older/trained -o published --json | value content) = "$content" ]] ||
    fail "what was trained gives another model"
"$tools/drps-stat" published --verify >/dev/null || fail "the published model does not verify"
"$tools/drps-predict" published older/data.svm -o want --quiet
echo "ok trained"
status=0
"$tools/drps-predict" older/model older/data.svm -o scores --quiet 2>err.txt || status=$?
! grep -q 'rocksdb, which is not in this build' err.txt || skip "the older model is kept in rocksdb, which is not in this build"
[[ $status = 0 ]] || fail "the older model: $(cat err.txt)"
cmp scores want || fail "the older model gives other scores"
[[ $(wc -l <scores) = 300 ]] || fail "scores of $(wc -l <scores) samples"
[[ $("$tools/drps-stat" older/model --json | value content) = "$content" ]] || fail "the older model has other content"
"$tools/drps-stat" older/model --verify >/dev/null || fail "the older model does not verify"
echo "ok model"
