#!/usr/bin/env bash
# Training that is killed (SIGKILL) at random instants and resumed, over and over, until the run ends: its model must be that of a
# run that was not disturbed, to the last bit, with the same losses of all epochs, and nothing else may be left.
#   bench/crash.sh [--kills N] [--seed S] [--jobs J]
# --kills: 500 if not given. --seed: printed; all that is random is drawn from it. --jobs: runs side by side (half as many as
# there are processors).
# Instants: any; while drps-train starts; while a checkpoint is written; while the model is made; just after. A run of three ranks
# loses one of them, or all, or the process that has started them. A killed run is resumed at once, and may be killed again.
# Prints a table; what fails is told with seed and folder, and the folder stays. Environment: DRPS_TOOLS (default build/bin).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${DRPS_TOOLS:-$root/build/bin}
kills=500 seed=$((($$ << 15 | RANDOM) & 0x3fffffff)) jobs=$((($(nproc) + 1) / 2))
while (($#)); do
    case $1 in
    --kills) kills=$2 ;;
    --seed) seed=$2 ;;
    --jobs) jobs=$2 ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[[ -x $tools/drps-train ]] || { echo "crash.sh: build drps first ($tools/drps-train is missing)" >&2 && exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/drps-crash.XXXXXX")
cd "$work"
echo "seed $seed, $kills kills, $jobs at a time, in $work"

# What is trained: title; plan; ranks; stores; options.
cases=(
    "fm, resident;fm;1;resident;--epochs 3"
    "fm, relay, runs merged;fm;1;relay;--epochs 2"
    "fm, file;fm;1;file;--epochs 2"
    "fm, rocksdb;fm;1;rocksdb;--epochs 2"
    "fm, leveldb;fm;1;leveldb;--epochs 2"
    "fm, another store each time;fm;1;resident relay file rocksdb leveldb;--epochs 3"
    "lor, patience;lor;1;resident relay;--epochs 20 --patience 2 --lr 1"
    "fm, patience, over a model;fm;1;relay file;--epochs 20 --patience 1 --lr 1 --force"
    "lmf, grid, lanes, 2 threads;lmf;1;resident;--epochs 3 --threads 2"
    "lmf, grid, lanes, stores;lmf;1;relay file rocksdb;--epochs 2 --threads 2"
    "fm, 3 ranks;fm3;3;resident relay file;--epochs 3"
    "lor, 3 ranks, patience;lor3;3;resident relay;--epochs 20 --patience 2 --lr 1"
)
instants=(any any any any any start checkpoint checkpoint export end)
victims=(parent all one)
most_kills=6 # of one run
limit_s=300  # a run that takes longer hangs

# nap SECONDS: without a process.
exec {never}<> <(:)
nap() { read -rt "$1" -u "$never" || true; }
# below N: a number from 0 to N - 1
below() { number=$(((RANDOM << 15 | RANDOM) % $1)); }
# one_of NAME...
one_of() { below $#; shift "$number"; picked=$1; }

# ---- Plans, memory, models of undisturbed runs ----

make_plans() {
    "$tools/drps-gen" ctr --samples 30K --fields 10 --rows 100K --zipf 0.8 --seed 3 -q -o clicks
    "$tools/drps-gen" matrix --ratings 60K --users 3K --items 1500 --seed 3 -q -o ratings
    index() { "$tools/drps-index" "$1" -o "$2" --test-fraction 0.05 -q "${@:3}"; }
    index clicks fm --algo fm --factors 16 --batch-size 100
    index clicks lor --algo lor --batch-size 100
    index ratings lmf --algo lmf --factors 8 --batch-size 300 --order grid --lanes 2
    index clicks fm3 --algo fm --factors 8 --batch-size 50 --workers 3
    index clicks lor3 --algo lor --batch-size 50 --workers 3
}

# least PLAN RANKS STORE OPTION...: bytes of the least memory that will do for all ranks; nothing: this build lacks the store
least() {
    { "$tools/drps-train" "$1" -o none --store "$3" --memory 1M --local "$2" "${@:4}" 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | sort -n | awk -v more="$(($2 > 1 ? 4 : 0))" '{least = $1} END {if (NR) print int((least + more + .1) * 1048576)}' # not all ranks say theirs
}

# results MODEL: what must be the same
results() { grep -hE '"(content|train_loss|test_loss|best_epoch|stopped_early)":' "$1/model.json" | tr -d ' ,'; }

# Without ZeroMQ there are no processes that could be killed one by one.
drop_ranks() {
    local case kept=()
    ! "$tools/drps-train" fm3 -o none --local 3 --memory 1M 2>&1 | grep -q 'no ZeroMQ' && return
    for case in "${cases[@]}"; do [[ $case = *';3;'* ]] || kept+=("$case"); done
    cases=("${kept[@]}")
    echo "this build has no ZeroMQ: one process each"
}

declare -A least_of
prepare() {
    local title plan ranks stores options store begin case
    for case in "${cases[@]}"; do
        IFS=';' read -r title plan ranks stores options <<<"$case"
        for store in $stores; do
            # shellcheck disable=SC2086 # words
            least_of[$title $store]=$(least "$plan" "$ranks" "$store" $options)
        done
        begin=${EPOCHREALTIME/./}
        # shellcheck disable=SC2086 # words
        "$tools/drps-train" "$plan" -o "$plan.want" --local "$ranks" --checkpoint-every "$(every "$plan")" --store resident --memory 96M -q --force $options
        results "$plan.want" >"$title.want"
        grep -q content "$title.want"
        lasts+=($((${EPOCHREALTIME/./} - begin)))
        [[ $options != *patience* ]] || grep -q '"stopped_early":true' "$title.want" || { echo "crash.sh: '$title' was to stop early" >&2 && exit 1; }
    done
    "$tools/drps-train" fm -o fm.old -q
    "$tools/drps-train" fm -o none --store relay --memory "${least_of[fm, relay, runs merged relay]}" -q --json | grep -c '"merged_bytes": [1-9]' >none.txt ||
        { echo "crash.sh: relay merges no runs" >&2 && exit 1; }
}

# every PLAN: batches between two checkpoints
every() { case $1 in lmf) echo 40b ;; *3) echo 25b ;; *) echo 40b ;; esac; }

# ---- One run, killed and resumed ----

fail() {
    {
        echo "crash.sh: FAILED: $title: $*"
        echo "  seed $seed, job $job, run $runs: $story"
        echo "  folder $PWD, where log has what was said; its end:"
        tail -n 5 log | sed 's/^/    /'
    } >&2
    : >"$work/failed"
    exit 1
}

lives() { [[ -e /proc/$1/exe ]]; } # a zombie has none

# await TEST...: until the words are true, or the run has ended
await() {
    until "$@"; do
        lives "$pid" || return 1
        nap 0.0003
    done
}
writes_checkpoint() { compgen -G 'run/model.checkpoint/rank-*/*.partial' >/dev/null; }
exports() { [[ -e run/model.trained ]]; }
exported() { [[ ! -e run/model.trained ]]; }

# lie_in_wait INSTANT: returns at the instant, or when the run has ended
lie_in_wait() {
    case $1 in
    start) below 40000 ;;
    any) below "$last" ;;
    checkpoint) below $((last / 2)) ;;
    *) below 1 ;;
    esac
    story+=" $1+$((number / 1000))ms"
    nap "$((number / 1000000)).$(printf %06d $((number % 1000000)))"
    case $1 in
    checkpoint) await writes_checkpoint && below 8000 ;;
    export) await exports && below 60000 ;;
    end) await exports && await exported && below 4000 ;;
    *) return 0 ;;
    esac || return 0
    nap "0.$(printf %06d "$number")"
}

gone() {
    local p
    for p in "$@"; do
        while lives "$p"; do
            ((SECONDS - begun < limit_s)) || fail "process $p does not end"
            nap 0.002
        done
    done
}

# strike: kills the run, of several ranks some of it. Returns when all of its processes have ended, with `status`.
strike() {
    local children=
    [[ $ranks = 1 ]] || children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || pgrep -P "$pid" || true)
    picked=parent
    [[ -z $children ]] || one_of "${victims[@]}"
    story+=" $picked"
    # shellcheck disable=SC2086 # words
    case $picked in
    parent) kill -KILL "$pid" ;;
    all) kill -KILL $children "$pid" ;;
    one) one_of $children && kill -KILL "$picked" ;;
    esac 2>/dev/null || true # it may have ended
    # shellcheck disable=SC2086
    gone $children "$pid"
}

attempt() { # KILL RESUME...: one process, killed where KILL is 1
    local kill=$1 store extra=()
    shift
    # shellcheck disable=SC2086
    one_of $stores
    store=$picked
    memory=${least_of[$title $store]}
    [[ -n $memory ]] || { store="file" && memory=128M; } # not in this build
    [[ $store != resident ]] || memory=96M
    if [[ $rows ]]; then
        ((RANDOM % 4)) || memory=128M
    else # a relay store that has saved itself is read with the memory that it had
        [[ $store = relay ]] || memory=$((96 * ranks + 32))M
    fi
    [[ $ranks = 1 ]] || extra=(--silence 1 --timeout 20) # what a lost rank costs
    story+="; $store $memory $*"
    begun=$SECONDS status=0
    # shellcheck disable=SC2086
    "$tools/drps-train" "../$plan" -o run/model --local "$ranks" --store "$store" --memory "$memory" \
        --checkpoint-every "$(every "$plan")" $rows $options "${extra[@]}" "$@" >>log 2>&1 &
    pid=$!
    if ((kill)); then
        one_of "${instants[@]}"
        lie_in_wait "$picked"
        strike
    fi
    gone "$pid"
    wait "$pid" 2>/dev/null || status=$?
    story+=" ->$status"
}

run_case() {
    local most resume=() rows='' done_before=$killed
    ((RANDOM % 2)) || rows=--checkpoint-rows
    IFS=';' read -r title plan ranks stores options <<<"${cases[$1]}"
    last=${lasts[$1]} story=$rows begun=$SECONDS
    local started=${EPOCHREALTIME/./} goes=0
    rm -rf run log
    mkdir run
    : >log
    [[ $options != *--force* ]] || cp -r ../fm.old run/model
    below $((most_kills < quota - killed ? most_kills : quota - killed))
    most=$((number + 1 + killed))
    while :; do
        attempt $((killed < most)) "${resume[@]}"
        case $status in
        0) break ;;
        137) killed=$((killed + 1)) ;;
        75)
            [[ $story = *one* ]] || fail "ended with 75"
            grep -qE 'rank [12].*(is dead|ended with|was killed|did not start)' <(tail -n 3 log) || fail "ended with 75, and does not say that a rank is lost"
            killed=$((killed + 1))
            ;;
        *) fail "ended with $status" ;;
        esac
        resume=(--resume)
        goes=$((goes + 1))
    done
    results run/model >got 2>/dev/null || fail "there is no model"
    cmp -s got "../$title.want" || fail "the model is not that of the undisturbed run: $(diff got "../$title.want" | head -n 4 | tr '\n' ' ')"
    # A rank that is killed when the model is nearly there ends nothing, and cannot clear up.
    [[ $story != *" one ->0" ]] || rm -rf run/model.checkpoint run/model.rank-*.partial
    left=$(cd run && shopt -s nullglob dotglob && echo *)
    [[ $left = model ]] || fail "left behind: $left"
    "$tools/drps-stat" run/model --verify >/dev/null || fail "the model is damaged"
    echo "$1 $((killed - done_before)) $goes $(grep -c 'going on from checkpoint' log || true) $((${EPOCHREALTIME/./} - started))" >>runs
}

# ---- All runs of a job ----

run_job() {
    job=$1 quota=$2 killed=0 runs=0
    mkdir "job-$job" && cd "job-$job"
    mkdir tmp
    export TMPDIR=$PWD/tmp # for sockets that killed ranks leave
    RANDOM=$((seed % 32768 * 31 + seed / 32768 + job * 7919))
    while ((killed < quota)) && [[ ! -e $work/failed ]]; do
        run_case $(((job * 5 + runs) % ${#cases[@]}))
        runs=$((runs + 1))
    done
}

lasts=() pids=()
make_plans
drop_ranks
prepare
started=$SECONDS
for ((j = 0; j < jobs; j++)); do
    run_job "$j" $((kills / jobs + (j < kills % jobs))) &
    pids+=($!)
done
failed=0
for p in "${pids[@]}"; do
    wait "$p" || failed=1
done
titles=$(printf '%s\n' "${cases[@]}")
echo "| case | runs | kills | resumed | of these from a checkpoint | seconds |"
echo "| --- | --- | --- | --- | --- | --- |"
cat job-*/runs 2>/dev/null | awk -F'[; ]' -v titles="$titles" '
    BEGIN { n = split(titles, line, "\n") }
    { runs[$1]++; kills[$1] += $2; resumed[$1] += $3; from[$1] += $4; s[$1] += $5 / 1e6 }
    END {
        for (i = 0; i < n; i++) {
            split(line[i + 1], part, ";")
            printf "| %s | %d | %d | %d | %d | %.1f |\n", part[1], runs[i], kills[i], resumed[i], from[i], s[i]
            all += runs[i]; k_all += kills[i]; r_all += resumed[i]; f_all += from[i]; s_all += s[i]
        }
        printf "| all | %d | %d | %d | %d | %.1f |\n", all, k_all, r_all, f_all, s_all
    }'
((!failed)) || { echo "crash.sh: FAILED, seed $seed; $work stays" >&2 && exit 1; }
echo "every model is that of the undisturbed run; $((SECONDS - started)) s"
rm -rf "$work"
