#!/usr/bin/env bash
# How many passes quasi-Newton methods take to the optimum that LIBLINEAR finds, and whether that is the same out of core.
#   bench/quasi_newton.sh [PASSES]      at most so many passes (default 400)
# a9a of ../shared/data gets a feature that all samples have in place of the intercept, which LIBLINEAR's penalty has in it. The objectives
# of both models are computed here, in double, from their weights and the samples. Counts and bytes alone: a busy machine does not matter.
# Environment, besides lib.sh's: DRPS_BENCH_SAMPLES (default 1000000), samples of the generated clicks
. "$(dirname "$0")/lib.sh"
passes=${1:-400} samples=${DRPS_BENCH_SAMPLES:-1000000}
command -v liblinear-train >/dev/null || { echo "bench: install LIBLINEAR (liblinear-tools)" >&2; exit 1; }

train() { "$tools/drps-train" "$@" -o "$work/model" --force --quiet --json --checkpoint-every never; }

# ---- a9a ----

data=$root/../shared/data/a9a/a9a.xz
[[ -f $data ]] || { echo "bench: there is no $data" >&2; exit 1; }
xzcat "$data" | sed 's/ *$/ 200:1/' >"$work/a9a.svm"
"$tools/drps-index" "$work/a9a.svm" --algo lor --no-bias -o "$work/a9a" --quiet
liblinear-train -s 0 -e 1e-10 -c 1 -q "$work/a9a.svm" "$work/liblinear"

# objective: of weights on stdin, lines of feature and weight
objective() {
    awk 'function loss(margin) { return margin > 0 ? log(1 + exp(-margin)) : -margin + log(1 + exp(margin)) }
        FNR == NR { w[$1] = $2; sum += $2 * $2 / 2; next }
        { score = 0; for (i = 2; i <= NF; i++) { split($i, e, ":"); score += w[e[1]] * e[2] } sum += loss($1 * score) }
        END { printf "%.5f", sum }' - "$work/a9a.svm"
}
seq 200 | sed 's/.*/1 &:1/' >"$work/units.svm" # whose log-odds are the weights
of_model() { "$tools/drps-predict" "$work/model" "$work/units.svm" -o - --quiet | awk '{ print NR, log($1 / (1 - $1)) }' | objective; }
best=$(awk '$1 == "label" { label = $2 } on { print ++n, $1 * label } $1 == "w" { on = 1 }' "$work/liblinear" | objective)
echo "LIBLINEAR's optimum of a9a, l2 1: $best"
record "quasi-newton|a9a, LIBLINEAR|objective" "$best"

echo
row() { # NAME: of the run in run.json
    jq -r '.epochs[] | "\(.objective) \(.accepted)"' "$work/run.json" | awk -v name="$1" -v best="$best" \
        -v ended="$(jq -r .ended "$work/run.json")" -v own="$(of_model)" '
        !$2 { rejected++; next }
        { if (!a && $1 < best * (1 + 1e-3)) a = NR; if (!b && $1 < best * (1 + 1e-6)) b = NR }
        END { printf "| %s | %s | %s | %d | %d | %.1e | %s |\n", name, a ? a : "-", b ? b : "-", NR, rejected, own / best - 1, ended }'
}
{
    echo "| method | passes to 1e-3 | to 1e-6 | all passes | rejected | above the optimum | ended |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    for method in "lbfgs --memory-pairs 5" lbfgs "lbfgs --memory-pairs 20" bfgs dfp sr1 broyden; do
        # shellcheck disable=SC2086 # options
        train "$work/a9a" --optimizer $method --l2 1 --tolerance 1e-6 --epochs "$passes" >"$work/run.json"
        row "$method"
    done
} | tables quasi-newton

# ---- Out of core ----

"$tools/drps-gen" ctr --samples "$samples" --fields 20 --rows $((samples * 3)) --seed 3 -o "$work/ctr.svm" --quiet
"$tools/drps-index" "$work/ctr.svm" --algo lor --batch-size 2K -o "$work/ctr" --quiet
mib() { awk '{ printf "%.1f MiB", $1 / 1048576 }'; }
of() { jq "$1" "$work/run.json" | mib; }
want=
echo
{
    echo "| clicks, lbfgs, 10 passes | rows | in memory | read a pass | written a pass |"
    echo "| --- | --- | --- | --- | --- |"
    little=$((40 * 1024 + samples / 40))K # for all that is not rows, and some of these
    for way in "resident 8G 1" "relay $little 1" "relay $little 2" "file $little 1"; do
        read -r store memory threads <<<"$way"
        train "$work/ctr" --optimizer lbfgs --l2 1 --epochs 10 --store "$store" --memory "$memory" --threads "$threads" >"$work/run.json"
        content=$(jq -r .content "$work/run.json")
        [[ $content = "${want:=$content}" ]] || { echo "bench: $way: another model" >&2; exit 1; }
        echo "| $store, threads: $threads | $(of '.rows * .row_bytes') | $(of '.blocks.pool_bytes // .windows.pool_bytes // (.rows * .row_bytes)') | $(of '.epochs[8].read_bytes') | $(of '.epochs[8].written_bytes') |"
    done
} | tables quasi-newton
echo
echo "all with the same bits"
