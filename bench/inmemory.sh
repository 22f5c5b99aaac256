#!/usr/bin/env bash
# In-memory training speed, AdaGrad, resident store: LR and FM on the CTR-like set (4 M samples x 39 fields, 5 M ids) in
# batches of 1000, matrix factorisation on 9 M ratings of 100 K users and 20 K items in batches of 900, in a grid of 8 x 8
# cells with lanes. Each with the whole process on one core, with one compute thread on all cores, and with two; lmf-serial is
# lmf with --one-by-one. The second epoch on (page cache warm) counts.
# Columns: model; cores; compute threads; millions of samples a second (median, worst, best); of entries (nnz, for lmf
# ratings), median; ns that a cache line takes from one processor to another and back, before and after the run (bench_cores).
#   bench/inmemory.sh [EPOCHS]
. "$(dirname "$0")/lib.sh"
epochs=${1:-4}

ratings_text() {
    local text=$work/ratings.txt
    [[ -e $text ]] || "$tools/drps-gen" matrix --users 100K --items 20K --ratings "${DRPS_BENCH_RATINGS:-9M}" --factors 16 \
        --noise 0.6 --seed 1 -o "$text.new" 1>&2
    [[ -e $text ]] || mv "$text.new" "$text"
    echo "$text"
}

# line_ns: nanoseconds in which a cache line goes from the first processor to the second and back; - where there is one
line_ns() { "$tools/bench_cores" 2>/dev/null | awk '{line = $(NF - 1); exit} END {print line ? line : "-"}' || true; }

# train NAME PLAN ENTRIES CORES THREADS OPTIONS...: one line of the table.
train() {
    local name=$1 plan=$2 entries=$3 cores=$4 threads=$5 pin=()
    shift 5
    [[ $cores = all ]] || pin=(taskset -c "$cores")
    local before
    before=$(line_ns)
    "${pin[@]}" "$tools/drps-train" "$plan" -o "$work/model" --force --epochs "$epochs" --store resident --threads "$threads" \
        --optimizer adagrad --lr 0.05 --quiet --json "$@" >"$work/train.json"
    jq -r --arg head "$name,$cores,$threads" --arg tail "$before,$(line_ns)" --argjson entries "$entries" 'def millions: . / 1e4 | round / 100;
        [.epochs[1:][].samples_per_s] | sort as $v | $v[length / 2 | floor] as $median |
        "\($head),\($median | millions),\($v[0] | millions),\($v[-1] | millions),\($median * $entries | millions),\($tail)"' \
        "$work/train.json" | tee "$work/line"
    note_row
}

# note_row: the line just printed, as rows
note_row() {
    local model cores threads median worst best rest row how
    IFS=, read -r model cores threads median worst best rest <"$work/line"
    # shellcheck disable=SC2086 # algorithm and rank
    row="inmemory|$(model_name ${model/-serial/})"
    [[ $model != *-serial* ]] || row+=", lanes one by one"
    how="all cores, $threads thread$([[ $threads = 1 ]] || echo s)"
    [[ $cores = all ]] || how="one core"
    record "$row|$how" "$median" M
    record "$row|$how, worst" "$worst" M
    record "$row|$how, best" "$best" M
    if [[ $cores != all ]]; then
        one=$median
    elif [[ $threads = 2 ]]; then
        [[ -z $one ]] || record "$row|2 threads over one core" "$(awk -v a="$median" -v b="$one" 'BEGIN {printf "%.2f", a / b}')"
        record "$row|ns of a cache line, before and after" "$(cut -d , -f 2- <<<"$rest" | sed 's/,/, /')" ns
        one=
    fi
}

one= # of this model, the whole process on one core
echo "model,cores,threads,median,worst,best,entries,line_ns_before,line_ns_after"
while read -r algo rank batch entries; do
    plan=$work/plan-$algo$rank
    if [[ ! -e $plan ]]; then
        order=()
        if [[ $algo = lmf ]]; then text=$(ratings_text) order=(--order grid --grid 8 --lanes 4); else text=$(ctr_text); fi
        "$tools/drps-index" "$text" --algo "$algo" $([[ $rank = 0 ]] || echo --factors "$rank") --batch-size "$batch" "${order[@]}" \
            --test-fraction 0.02 -o "$plan" --quiet >/dev/null
    fi
    train "$algo $rank" "$plan" "$entries" 0 1
    train "$algo $rank" "$plan" "$entries" all 1
    train "$algo $rank" "$plan" "$entries" all 2
    [[ $algo != lmf ]] || for threads in 1 2; do
        train "lmf-serial $rank" "$plan" "$entries" all $threads --one-by-one
    done
done <<'MODELS'
lor 0 1000 39
fm 8 1000 39
fm 16 1000 39
lmf 16 900 1
MODELS
