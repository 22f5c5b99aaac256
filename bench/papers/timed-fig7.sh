#!/usr/bin/env bash
# "Timed Dataflow", Figure 7: percent of parameters that the significance filter drops (P-SMP) under BSP, by threshold, in the
# iterations 1 to 20, 21 to 40 and so on: what is not pulled, of the bytes that are pulled without it.
#   bench/papers/timed-fig7.sh [--quick] [DATA]
# drps sends a row when one of its values has changed enough, and at the end of an epoch, here each 20 iterations, all of them.
# Exact. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"
iterations=20
stretches=$(quickly 2 5)

# model, threshold, the percentage that the paper's text says of the figure
printed="clicks 1e-4 up to 50
clicks 2e-4 up to 82
ratings 1e-3 99 after 80
ratings 2e-4 99 after 80
alexnet 1e-4 up to 65
alexnet 5e-3 up to 80"
thresholds_of() { if [[ $1 = alexnet ]]; then echo 1e-4 5e-3 1e-2 1e-1 1; else echo 1e-4 2e-4 1e-3 1e-2 1e-1; fi; }

# pulled_by MODEL OPTIONS...: bytes after each stretch of iterations
pulled_by() {
    for ((epochs = 1; epochs <= stretches; epochs++)); do
        timed_train "$1" bsp "${@:2}" || return 1
        jq .pulled "$work/run.json"
    done
}

# shares FILE PLAIN: of bytes after each stretch, the cells of what each one saved in percent
shares() {
    paste "$1" "$2" | awk '{ printf "%.1f | ", 100 * (1 - ($1 - before) / ($2 - plain)); before = $1; plain = $2 }'
}

titles="model | threshold | paper"
for ((i = 1; i <= stretches; i++)); do titles+=" | $((20 * i - 19)) to $((20 * i))"; done
for model in "${models[@]}"; do
    timed_plan "$model"
    pulled_by "$model" >"$work/plain-pulled"
    for psi in $(thresholds_of "$model"); do
        row="| $title | $psi | $(awk -v row="$model $psi" '$1 " " $2 == row { print substr($0, length(row) + 2) }' <<<"$printed") |"
        if pulled_by "$model" --pull-filter "d=0.1,eps=1e-6,psi=$psi" >"$work/pulled"; then
            echo "$row $(shares "$work/pulled" "$work/plain-pulled")"
        else
            echo "$row not in this build |"
            break
        fi
    done
done | table paper-timed-fig7 2 "$titles"
