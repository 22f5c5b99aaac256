#!/usr/bin/env bash
# Scores of one sample at a time by the library (bench_predictor): with all rows in memory, and from a model on disk with a cache of a few
# MiB, for samples that are scored for the first time (cold: the model's files have left the page cache) and again.
#   bench/predictor.sh [SAMPLES]      of training, default 400K
. "$(dirname "$0")/lib.sh"
titles="model | memory | us of a call, first pass: median | us of a call, first pass: mean | reads of a call, first pass | us of a call, second pass: median | us of a call, second pass: mean | reads of a call, second pass | seconds to open"

measure() { # NAME MEMORY MODEL N
    local us
    read -ra us < <("$tools/bench_predictor" "$3" "$work/data" "$2" "$4")
    echo "| $1 | $(($2 ? $2 >> 20 : 0)) MiB | ${us[0]} | ${us[1]} | ${us[2]} | ${us[4]} | ${us[5]} | ${us[6]} | ${us[8]} |" | sed 's/| 0 MiB |/| all |/'
}

echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
"$tools/drps-gen" ctr --samples "${1:-400K}" --fields 39 --rows 2M --seed 1 -o "$work/data" --force --quiet
for kind in "LR, 39 features" "FM, 8 factors, 39 features"; do
    how=(--algo lor)
    [[ $kind != FM* ]] || how=(--algo fm --factors 8)
    "$tools/drps-index" "$work/data" "${how[@]}" --no-forecast -o "$work/plan" --force --quiet
    "$tools/drps-train" "$work/plan" -o "$work/model" --force --quiet
    measure "$kind" 0 "$work/model" 20000 | tables predictor 2 "$titles"
    measure "$kind" $((44 << 20)) "$work/model" 2000 | tables predictor 2 "$titles" # names, and some rows
    measure "$kind" $((12 << 20)) "$work/model" 2000 | tables predictor 2 "$titles" # names do not fit
done
