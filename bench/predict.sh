#!/usr/bin/env bash
# Prediction: samples a second of drps-predict from text, of LR and of FM with 16 factors on the CTR-like set, trained for an epoch.
# First all of the model is in memory; then drps-predict has the least --memory that it names.
#   bench/predict.sh [RUNS]      how often (default 3); the median is printed
. "$(dirname "$0")/lib.sh"
runs=${1:-3}
text=$(ctr_text)
samples=$(wc -l <"$text")

# rate MODEL OPTIONS...: the median of samples a second, of the whole command
rate() {
    local i from
    for ((i = 0; i < runs; i++)); do
        from=$EPOCHREALTIME
        "$tools/drps-predict" "$1" "$text" -o "$work/scores" --force --quiet "${@:2}" >/dev/null
        awk "BEGIN {print $samples / ($EPOCHREALTIME - $from)}"
    done | median
}

least() { # MODEL: the least --memory, as drps-predict names it
    { "$tools/drps-predict" "$1" "$text" -o "$work/scores" --force --quiet --memory 1M 2>&1 || true; } |
        sed -n 's/.*at least \(--memory \)\{0,1\}\([0-9.]*\) \{0,1\}\([KMG]\)\(iB\)\{0,1\} is needed.*/\2\3/p'
}

{
    echo "| model | samples/s | with the least memory | least memory |"
    echo "| --- | --- | --- | --- |"
    for algo in lor fm; do
        "$tools/drps-index" "$text" --algo $algo --batch-size 1000 -o "$work/plan" --force --quiet
        "$tools/drps-train" "$work/plan" -o "$work/model" --force --epochs 1 --quiet
        memory=$(least "$work/model")
        echo "| $(model_name $algo 16) | $(rate "$work/model" | awk '{printf "%.0f", $1}') |" \
            "$([[ -z $memory ]] || rate "$work/model" --memory "$memory" | awk '{printf "%.0f", $1}') | $memory |"
    done
} | tables predict
