#!/usr/bin/env bash
# Field-aware factorization machines of 4 factors: held-out log loss, time of an epoch, and what memory below the model's size costs.
#   bench/ffm.sh quality     the Criteo and iPinYou samples, and generated clicks: log loss by epoch
#   bench/ffm.sh speed       generated clicks in memory, one core: processor time of an epoch
#   bench/ffm.sh ratio [MEMORY]   generated clicks out of core, beside all in memory (default 1G)
# DRPS_BENCH_DATA: real sets (default ../shared/data). LIBFFM: libffm's program ffm-train, to compare with, and XLEARN: xLearn's xlearn_train, of which speed is compared; without them drps alone is run.
# They have the same factors and epochs, and their own defaults; xLearn runs with --quiet, which spares it losses. A time is that of one more epoch, after all have their binary files. DRPS_BENCH_SAMPLES (500K; ratio: 3M) and DRPS_BENCH_FEATURES (1M; ratio: 100M) are of
# the generated clicks, 39 fields each; DRPS_BENCH_EPOCHS (3; quality: 15). Times of speed are processor time, which other work on the
# machine changes less; ratio fails where a store gives another model.
. "$(dirname "$0")/lib.sh"
what=${1:-} memory=${2:-1G}
data=${DRPS_BENCH_DATA:-$root/../shared/data}
. "$(dirname "$0")/sets_of_fields.sh"
export OMP_NUM_THREADS=1
[[ -z ${LIBFFM:-} ]] || LIBFFM=$(realpath "$LIBFFM")
[[ -z ${XLEARN:-} ]] || XLEARN=$(realpath "$XLEARN")

index() { "$tools/drps-index" "$@" --format libffm --algo ffm --force --quiet --no-forecast; }
train() { "$tools/drps-train" "$@" -o "$work/model" --threads 1 --force --quiet --json --checkpoint-every never; }
clicks() { # NAME SAMPLES FEATURES [OPTION...]
    local name=$1 samples=$2 features=$3
    shift 3
    "$tools/drps-gen" ctr --format libffm --interactions 4 --samples "$samples" --rows "$features" --seed 1 -o "$work/$name" --force --quiet "$@"
}

# Its binary files go to the folder where it is called.
libffm() { (cd "$work" && "$LIBFFM" "$@"); }

# Seconds of processor time, of all threads, that a command takes.
processor_seconds() { { TIMEFORMAT='%U %S' && time "$@" >/dev/null 2>"$work/err"; } 2>&1 | awk '{ print $1 + $2 }'; }

# ---- Held-out log loss ----

# best: of lines "epoch loss", the least loss and its epoch.
best() { awk 'NR == 1 || $2 < least { least = $2; at = $1 } END { printf "%.4f, epoch %d", least, at }'; }

compare() { # NAME: $work/train and $work/test
    local drps peer=-
    index "$work/train" --test "$work/test" -o "$work/plan"
    drps=$(train "$work/plan" --epochs "${DRPS_BENCH_EPOCHS:-15}" | jq -r '.epochs[] | "\(.epoch) \(.test_loss)"' | best)
    [[ -z ${LIBFFM:-} ]] || peer=$(libffm -k 4 -t "${DRPS_BENCH_EPOCHS:-15}" -s 1 -p "$work/test" "$work/train" "$work/peer" |
        awk '$1 ~ /^[0-9]+$/ && NF == 4 { print $1, $3 }' | best)
    echo "| $1 | $drps | $peer |"
}

quality() {
    echo "| set | drps: least held-out log loss | libffm: least held-out log loss |"
    echo "| --- | --- | --- |"
    if [[ -f $data/criteo-sample/fields.tsv.xz ]]; then
        criteo train >"$work/train" && { criteo dev && criteo test; } >"$work/test"
        compare "Criteo sample"
    else
        echo "bench: there is no $data/criteo-sample: it is left out" >&2
    fi
    if [[ -f $data/ipinyou/featindex.fm.txt.xz ]]; then
        ipinyou train >"$work/train" && ipinyou test >"$work/test"
        compare "iPinYou sample"
    else
        echo "bench: there is no $data/ipinyou: it is left out" >&2
    fi
    clicks train 80K 20K --test-samples 20K --test-output "$work/test"
    compare "generated, 60K clicks"
}

# ---- Time in memory ----

speed() {
    local epochs=${DRPS_BENCH_EPOCHS:-3} samples=${DRPS_BENCH_SAMPLES:-500K} n batch one all peer other
    clicks clicks "$samples" "${DRPS_BENCH_FEATURES:-1M}"
    n=$(wc -l <"$work/clicks")
    echo "| batch | drps: us of a processor a sample | libffm: us of a processor a sample | libffm / drps | xLearn: us of a processor a sample | xLearn / drps |"
    echo "| --- | --- | --- | --- | --- | --- |"
    # What one more epoch takes: reading and writing are in both.
    more() { # COMMAND, which takes a number of epochs
        one=$(processor_seconds "$1" 1) all=$(processor_seconds "$1" "$epochs")
        awk -v one="$one" -v all="$all" -v e="$epochs" -v n="$n" 'BEGIN { printf "%.2f", (all - one) / (e - 1) / n * 1e6 }'
    }
    drps_epochs() { train "$work/plan" --store resident --epochs "$1"; }
    peer_epochs() { libffm -k 4 -t "$1" -s 1 "$work/clicks" "$work/peer"; }
    other_epochs() { (cd "$work" && USER=${USER:-none} "$XLEARN" clicks -s 2 -k 4 -e "$1" -nthread 1 -m other --quiet); }
    times() { awk -v a="$1" -v b="$all" 'BEGIN { if (a > 0) printf "%.1f", a / b; else printf "-" }'; }
    peer=- other=-
    if [[ -n ${XLEARN:-} ]]; then
        other_epochs 1 >/dev/null # makes its binary file
        other=$(more other_epochs)
    fi
    if [[ -n ${LIBFFM:-} ]]; then
        peer_epochs 1 >/dev/null # makes its binary file
        peer=$(more peer_epochs)
    fi
    for batch in 100 1000; do
        index "$work/clicks" --batch-size $batch -o "$work/plan"
        all=$(more drps_epochs)
        echo "| $batch | $all | $peer | $(times "$peer") | $other | $(times "$other") |"
    done
}

# ---- Out of core ----

ratio() {
    local run content want=
    clicks clicks "${DRPS_BENCH_SAMPLES:-3M}" "${DRPS_BENCH_FEATURES:-100M}" --zipf 1
    index "$work/clicks" --batch-size 1000 --memory 1G -o "$work/plan"
    rm "$work/clicks"
    echo "| run | rows with their state | epoch | samples a second | read, written an epoch | waiting |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for run in "relay $memory" "resident 20G"; do
        train "$work/plan" --epochs "${DRPS_BENCH_EPOCHS:-2}" --store "${run% *}" --memory "${run#* }" >"$work/run.json"
        content=$(jq -r .content "$work/run.json")
        [[ $content = "${want:=$content}" ]] || { echo "bench: $run: another model" >&2; exit 1; }
        jq -r --arg run "$run" '(.rows * .row_bytes / 1e9 * 100 | round / 100) as $gb | .epochs[-1] |
            "| \($run) | \($gb) GB | \(.epoch) | \(.samples_per_s | round) | \(.read_bytes / 1e9 * 100 | round / 100), \(.written_bytes / 1e9 * 100 | round / 100) GB | \(.stall_share * 1000 | round / 10) % |"' "$work/run.json"
    done
}

case $what in
    quality | speed | ratio) $what | tables "ffm-$what" ;;
    *) echo "usage: bench/ffm.sh quality|speed|ratio [MEMORY]" >&2; exit 2 ;;
esac
