#!/usr/bin/env bash
# Fitting a CSR matrix from Python beside drps-index and drps-train on the same samples as libsvm text: seconds of both, in turns.
# The models must be the same, bit for bit. Python's start and loading the matrix do not count; parsing text does.
#   bench/python.sh [RUNS [SAMPLES [EPOCHS]]]      default: 5 pairs, 400K samples of 39 features, 3 epochs
# Needs /usr/bin/python3 with cffi, numpy, scipy and scikit-learn, and a build with -DBUILD_SHARED_LIBS=ON.
. "$(dirname "$0")/lib.sh"
runs=${1:-5} samples=${2:-400K} epochs=${3:-3}
export DRPS_LIBRARY=${DRPS_LIBRARY:-$(readlink -f "$tools/../libdrps.so.0")}
[[ -e $DRPS_LIBRARY ]] || { echo "bench: build with -DBUILD_SHARED_LIBS=ON first" >&2 && exit 1; }

mkdir -p "$work/site"
cp -r "$root/python/drps" "$work/site/"
/usr/bin/python3 "$root/python/build_ffi.py" "$work/site"
export PYTHONPATH=$work/site PYTHONDONTWRITEBYTECODE=1
python() { /usr/bin/python3 "$root/bench/python_fit.py" "$@"; }

"$tools/drps-gen" ctr --samples "$samples" --fields 39 --rows 1M --seed 1 -o "$work/data.svm" --force --quiet
python make "$work/data.svm" "$work/data.npz"

seconds_of_tools() { # ALGO TASK...
    local from=$EPOCHREALTIME
    "$tools/drps-index" "$work/data.svm" --format libsvm --algo "$1" "${@:2}" --batch-size 1000 -o "$work/plan" --force --quiet
    "$tools/drps-train" "$work/plan" -o "$work/model" --epochs "$epochs" --force --quiet
    awk "BEGIN {print $EPOCHREALTIME - $from}"
}

{
    echo "| model | tools | Python | Python / tools | least | most |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for algo in lor fm; do
        task=()
        [[ $algo = lor ]] || task=(--task classification)
        seconds_of_tools $algo "${task[@]}" >/dev/null # files are in the page cache
        content=$("$tools/drps-stat" "$work/model" --json | jq -r .content)
        for ((i = 0; i < runs; i++)); do
            echo "$(seconds_of_tools $algo "${task[@]}") $(python fit "$work/data.npz" $algo "$epochs" "$work/fitted" "$content")"
            rm -rf "$work/fitted"
        done >"$work/pairs"
        ratios=$(awk '{print $2 / $1}' "$work/pairs" | sort -n)
        printf '| %s | %.2f s | %.2f s | %.2f | %.2f | %.2f |\n' "$(model_name $algo 16)" "$(cut -d ' ' -f 1 "$work/pairs" | median)" \
            "$(cut -d ' ' -f 2 "$work/pairs" | median)" "$(median <<<"$ratios")" "$(head -1 <<<"$ratios")" "$(tail -1 <<<"$ratios")"
    done
} | tables python
