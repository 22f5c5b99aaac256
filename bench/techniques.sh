#!/usr/bin/env bash
# What each technique that saves traffic is worth: alone, against none of them, and when it alone is left out of all. MB that all ranks send in
# an epoch (exact), the median epoch's seconds, and held-out loss or RMSE.
#   bench/techniques.sh [--quick] [DATA]      --quick: small samples of the sets; DATA: default ../shared/data; sets that are not
#                                             there are generated, and it says so
# Ranks are processes of this machine, and messages go through sockets: seconds say what techniques cost; what they bring on a
# network follows from the bytes. Environment, besides lib.sh's: DRPS_BENCH_WORKERS (default 4), DRPS_BENCH_EPOCHS (default 3)
. "$(dirname "$0")/papers/lib.sh"
workers=${DRPS_BENCH_WORKERS:-4} epochs=${DRPS_BENCH_EPOCHS:-3}

# name | drps-index with it | without | drps-train with it | without | kind | what a build must have: TOOL OPTION. "-": nothing.
# BITS: 8bit, or 16bit where rows have one value.
# Kinds: exact; handed, which is exact and has no gradients that could be filtered; filter, which changes the model.
# Rows are by hash without homes; but samples can be placed only with rows that have a home, or lie in a block that has (greedy).
techniques=(
    "homes | --partition auto | | - | - | exact |"
    "samples placed | --samples placed | --samples dealt | - | - | exact |"
    "overlap | - | - | - | --no-overlap | exact |"
    "fresh rows | - | - | - | --no-fresh | exact |"
    "rows handed on | --hand-on all | - | - | - | handed | drps-index --hand-on"
    "8-bit gradients | --residuals all | - | --push-values 8bit | - | filter |"
    "top 10 % of gradients | --residuals all | - | --push-top 10% | - | filter |"
    "short parameters | --residuals all | - | --pull-values BITS | - | filter | drps-train --pull-values"
    "parameters that changed | --residuals all | - | --pull-filter psi=1e-2,d=0.1 | - | filter | drps-train --pull-filter"
)
# Instead of others: name | drps-index | drps-train | only for the set
others=(
    "samples of a round | --partition auto --samples round | --no-overlap --no-fresh |"
    "rows that circulate | --order grid | | ml-1m"
)

field() { awk -F '|' -v n="$2" '{ gsub(/^ +| +$/, "", $n); print $n == "-" ? "" : $n }' <<<"$1"; }
built() { # LINE: has this build the technique?
    local tool option
    read -r tool option < <(field "$1" 7)
    [[ -z $tool ]] || known "$tool" "$option"
}

# options HOW: index_with and train_with of a run that has the techniques for which HOW, a letter each, is 1
options() {
    local i part homes=${1:0:1} placed=${1:1:1}
    index_with=() train_with=()
    for i in "${!techniques[@]}"; do
        part=$((2 + (1 - ${1:i:1})))
        # shellcheck disable=SC2207 # they are words
        index_with+=($(field "${techniques[i]}" $part)) train_with+=($(field "${techniques[i]}" $((part + 2))))
    done
    train_with=("${train_with[@]/BITS/$bits}")
    ((homes)) || index_with+=(--partition "$( ((placed)) && echo greedy || echo hash)")
}

# shellcheck disable=SC2154 # bench/lib.sh sets work
# run INDEX-OPTIONS... -- TRAIN-OPTIONS...: the line's figures; fails where this build cannot do all that together, and says why in refused
run() {
    local index=() status=0 why=$work/why
    while [[ $1 != -- ]]; do index+=("$1") && shift; done
    shift
    refused="not together"
    "$tools/drps-index" "${set_options[@]}" --workers "$workers" "${index[@]}" -o "$work/plan" --force --quiet --no-forecast 2>"$why" || status=$?
    ((status)) || "$tools/drps-train" "$work/plan" -o "$work/model" --force --local "$workers" --store resident --epochs "$epochs" "$@" \
        --quiet --json >"$work/train.json" 2>"$why" || status=$?
    ((status != 2)) || { cat "$why" >&2 && return 1; }
    ((status == 0)) || { cat "$why" >&2 && exit 1; }
    mb=$(jq --argjson epochs "$epochs" '[.ranks[].sent_bytes] | add / 1e4 / $epochs | round / 100' "$work/train.json")
    seconds=$(jq '.epochs[].seconds' "$work/train.json" | median | awk '{ printf "%.3f", $1 }')
    loss=$(jq '.epochs[-1] | .test_rmse // .test_loss | . * 1e5 | round / 1e5' "$work/train.json")
}

# line NAME INDEX-OPTIONS... -- TRAIN-OPTIONS...: a line of the table
line() {
    if run "${@:2}"; then
        plain=${plain:-$mb}
        echo "| $name, $1 | $mb | $(awk "BEGIN { printf \"%.1f\", 100 * $mb / $plain }") % | $seconds | $loss |"
    else
        echo "| $name, $1 | $refused | | | |"
    fi
}

# with LABEL HOW: a line of the run that has these techniques
with() {
    options "$2"
    line "$1" "${index_with[@]}" -- "${train_with[@]}"
}

# all_of LABEL KIND...: the run with all techniques of these kinds that this build has, and those without one of them
all_of() {
    local label=$1 all="" i kind
    shift
    for i in "${!techniques[@]}"; do
        kind=$(field "${techniques[i]}" 6)
        if [[ " $* " = *" $kind "* ]] && built "${techniques[i]}"; then all+=1; else all+=0; fi
    done
    with "$label" "$all"
    for i in "${!techniques[@]}"; do
        [[ ${all:i:1} = 0 ]] || with "$label but $(field "${techniques[i]}" 1)" "${all:0:i}0${all:i+1}"
    done
}

# techniques_on NAME INDEX-OPTIONS...: all lines of a set
techniques_on() {
    local i how none other only
    name=$1 set_options=("${@:2}") plain="" bits=8bit
    [[ $* != *lor* ]] || bits=16bit
    none=${techniques[*]/*/0} none=${none// /}
    with "none of them" "$none"
    for i in "${!techniques[@]}"; do
        how=$(field "${techniques[i]}" 1)
        if built "${techniques[i]}"; then with "$how alone" "${none:0:i}1${none:i+1}"; else echo "| $name, $how | not in this build | | | |"; fi
    done
    all_of "all exact ones" exact handed
    all_of "all and filters" exact filter
    for other in "${others[@]}"; do
        only=$(field "$other" 4)
        [[ -z $only || $only = "$name" ]] || continue
        # shellcheck disable=SC2046 # they are options
        line "$(field "$other" 1)" $(field "$other" 2) -- $(field "$other" 3)
    done
}

if there ml-1m ml-1m; then packed ml-1m/ratings.tsv.xz | mixed | awk -v most="$(quickly 50000 1000209)" 'NR <= most' >"$work/ratings.tsv"; else
    gen matrix --ratings "$(quickly 50K 1M)" --users 6K --items 4K -o "$work/ratings.tsv"
fi
gen ctr --samples "$(quickly 20K 400K)" --fields 20 --rows "$(quickly 20K 500K)" -o "$work/ctr.svm"
if there imdb imdb; then packed imdb/imdb.train.libsvm.xz | mixed | awk -v most="$(quickly 4000 25000)" 'NR <= most' | unit >"$work/text.svm"; else
    gen classification --samples "$(quickly 4K 25K)" --nnz 130 --rows 44K -o "$work/text.svm"
fi
{
    techniques_on "ml-1m" "$work/ratings.tsv" --format ratings --algo lmf --factors 16 --batch-size 500 --test-fraction 0.1
    techniques_on "CTR, FM" "$work/ctr.svm" --format libsvm --algo fm --factors 8 --batch-size 500 --test-fraction 0.1
    techniques_on "imdb, LR" "$work/text.svm" --format libsvm --algo lor --batch-size 50 --test-fraction 0.1
} | table techniques 1 "set, with | MB sent in an epoch | of none | s an epoch | held-out loss or RMSE"
