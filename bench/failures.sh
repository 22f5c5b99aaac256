#!/usr/bin/env bash
# What a lost rank costs: a job of four ranks on this machine, `--local 4 --on-failure resume`, loses one rank, drawn at random
# (rank 0 as often as any), every minute for 20 minutes. Its time is set beside that of the same job undisturbed, and its
# model must be the same. The time that a failure costs is what was trained since the last checkpoint, noticing it, and
# starting anew.
#   bench/failures.sh [--every S] [--minutes M] [--ranks N] [--checkpoint-every TIME] [-- OPTION...]
# Environment, besides lib.sh's: DRPS_BENCH_SAMPLES (default 400000), DRPS_BENCH_SEED of the draws (default 1).
# OPTION... go to drps-train, for instance --store relay --memory 100M. Needs ZeroMQ.
every=60 minutes=20 ranks=4 checkpoint=''
while (($#)); do
    case $1 in
    --every) every=$2 && shift 2 ;;
    --minutes) minutes=$2 && shift 2 ;;
    --ranks) ranks=$2 && shift 2 ;;
    --checkpoint-every) checkpoint=$2 && shift 2 ;;
    --) shift && break ;;
    *)
        sed -n '2,/^every/{/^#/p}' "$0" >&2
        exit 2
        ;;
    esac
done
options=("$@")
. "$(dirname "$0")/lib.sh"
tools=$(realpath "$tools")
cd "${work:?}" || exit
[[ -n $checkpoint ]] || checkpoint=$((every < 40 ? 1 : every / 20))s
RANDOM=${DRPS_BENCH_SEED:-1}

"$tools/drps-gen" ctr --samples "${DRPS_BENCH_SAMPLES:-400000}" --fields 20 --rows 1M --seed 5 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 8 --workers "$ranks" --batch-size 200 --test-fraction 0.05 -o plan --quiet

# train MODEL OPTION...: its report is left in MODEL.json, what it says in MODEL.err
# With `exec` before it, the process is drps-train's own.
train() { ${exec:-} "$tools/drps-train" plan -o "$1" --local "$ranks" "${options[@]}" "${@:2}" --json >"$1.json" 2>"$1.err"; }
now() { date +%s.%N; }
calc() { awk "BEGIN {printf \"%.1f\", $*}"; }

# There are as many epochs as the minutes have time for.
train short --epochs 3 --checkpoint-every never || { cat short.err >&2 && exit 1; }
epoch_s=$(jq '[.epochs[].seconds] | add / length' short.json)
epochs=$(awk "BEGIN {n = $minutes * 60 / $epoch_s; printf \"%d\", n < 1 ? 1 : n}")
begin=$(now)
train calm --epochs "$epochs" --checkpoint-every "$checkpoint" || { cat calm.err >&2 && exit 1; }
calm_s=$(calc "$(now) - $begin")

children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
# The processes of all ranks of this job, once all are there; none when it has ended.
processes() {
    local first pids=()
    while kill -0 "$job" 2>/dev/null; do
        first=$(children "$job")
        read -ra pids <<<"$first $(for pid in $first; do children "$pid"; done)"
        ((${#pids[@]} < ranks)) || { echo "${pids[@]}" && return; }
        read -rt 0.01 <> <(:) || true
    done
}

begin=$(now)
exec="exec" train lossy --epochs "$epochs" --checkpoint-every "$checkpoint" --on-failure resume &
job=$!
failures=0
while read -rt "$every" <> <(:) || kill -0 "$job" 2>/dev/null && awk "BEGIN {exit !($(now) - $begin < $minutes * 60)}"; do
    read -ra pids <<<"$(processes)"
    ((${#pids[@]} == ranks)) || break
    kill -KILL "${pids[RANDOM % ranks]}" && failures=$((failures + 1))
done
wait "$job" || { cat lossy.err >&2 && echo "bench: the job did not come through" >&2 && exit 1; }
lossy_s=$(calc "$(now) - $begin")
anew=$(grep -c "starting anew" lossy.err || true)
[[ $(jq .content lossy.json) = "$(jq .content calm.json)" ]] || { echo "bench: another model than undisturbed" >&2 && exit 1; }
((failures && anew == failures)) || { echo "bench: $failures ranks killed, and $anew new starts" >&2 && exit 1; }

lost_s=$(calc "($lossy_s - $calm_s) / $failures")
echo "$ranks ranks, $epochs epochs, a checkpoint every $checkpoint, a rank killed every $every s for $minutes minutes${options[*]:+, ${options[*]}}; the same model"
echo
echo "| undisturbed | with failures | failures | a failure costs |"
echo "| --- | --- | --- | --- |"
echo "| $calm_s s | $lossy_s s | $failures | $lost_s s |"
row="$ranks ranks, every $every s${options[*]:+, ${options[*]}}"
record "failures|$row|undisturbed" "$calm_s" s
record "failures|$row|with failures" "$lossy_s" s
record "failures|$row|failures" "$failures"
record "failures|$row|a failure costs" "$lost_s" s
