# shellcheck shell=bash
# What drps-fig9.sh and drps-table2.sh share: the four sets of "DRPS", Table 1, at a size that a small machine has room for, plans of them
# for five machines, and training by parallel model. Source it after lib.sh.
#
# A machine's time for a batch is emulated (drps-train --emulate): on average `seconds`, by one of two kinds of times, as the paper does not say
# what its machines' were: of equal machines a Pareto tail (tail), and one of them three times as slow (straggler). Time to a loss is epochs to
# it, of real training, times an epoch's seconds in the simulator (sim_sched), so that other load does not show; what passed is printed, too.
need sim_sched
machines=5 epochs=4 seconds=$(quickly 0.005 0.02) batches=$(quickly 10 40)
sets=$(quickly "movielens avazu" "matrix movielens classification avazu")
timings=$(quickly straggler "straggler tail")
bounds=$(quickly 10 "1 3 10 30") # of SSP, beside 0 (bsp) and inf (asp)
modes="bsp $(printf 'ssp:%s ' $bounds)asp wsp-literal wsp"

title() { # SET: as the paper has it
    case $1 in
    matrix) echo "LMF on matrix" ;;
    movielens) echo "LMF on MovieLens" ;;
    classification) echo "LoR on classification" ;;
    avazu) echo "LoR on Avazu-CTR" ;;
    esac
}

# The paper: 1.3 G ratings of 10 M x 10 K; 24 M of .26 M x .16 M; 10 M samples of 10 G dimensions; 40 M clicks of 9 M. Rank 2000.
make_set() { # SET: $work/SET.txt
    local n
    n=$(quickly 20K 200K)
    [[ ! -e $work/$1.txt ]] || return 0
    case $1 in
    matrix) gen matrix --ratings "$n" --users 10K --items 1K --factors 8 -o "$work/$1.txt" ;;
    movielens)
        if there ml-1m "a matrix for MovieLens"; then packed ml-1m/ratings.tsv.xz "$(quickly 20000 0)" >"$work/$1.txt"; else
            gen matrix --ratings "$n" --users 6K --items 4K --factors 8 -o "$work/$1.txt"
        fi
        ;;
    classification) gen classification --samples "$n" --nnz 20 --rows 100K --zipf 1.05 -o "$work/$1.txt" ;;
    avazu) gen ctr --samples "$n" --fields 22 --rows 50K --zipf 1.05 -o "$work/$1.txt" ;;
    esac
}

algorithm() { if [[ $1 = matrix || $1 = movielens ]]; then echo "--algo lmf --factors 16"; else echo "--algo lor"; fi; }

# rates SET MODE: BSP makes one step of five gradients
rates() {
    local lr=0.05
    [[ $1 = matrix || $1 = movielens || $2 = bsp ]] || lr=0.03
    echo "--lr $lr --eps 0.1"
}

# plan SET NAME OPTIONS...: $work/SET-NAME, and what drps-index says of it, $work/SET-NAME.json
plan() {
    local to=$work/$1-$2 samples
    make_set "$1"
    [[ ! -e $to.json ]] || return 0
    samples=$(wc -l <"$work/$1.txt")
    # shellcheck disable=SC2046 # words
    "$tools/drps-index" "$work/$1.txt" $(algorithm "$1") --workers $machines --batch-size $((samples * 9 / 10 / machines / batches)) --test-fraction 0.1 \
        --memory 1G -o "$to" --force --quiet --json "${@:3}" >"$to.new"
    mv "$to.new" "$to.json"
}

sync_of() { # MODE
    echo "--sync ${1%%:*}"
    [[ $1 != *:* ]] || echo "--staleness ${1#*:}"
}

# train SET TIMING MODE [OPTIONS...]: $work/SET-TIMING-MODE.json
train() {
    local run=$work/$1-$2-$3
    [[ ! -e $run.json ]] || return 0
    # shellcheck disable=SC2046 # words
    "$tools/drps-train" "$work/$1-ours" -o "$run.model" --force --local $machines --transport inproc --store resident --memory 1G $(sync_of "$3") $(rates "$1" "$3") \
        --epochs $epochs --emulate "$2:$seconds:1" --quiet --json "${@:4}" >"$run.new" 2>"$run.err" || { cat "$run.err" >&2 && exit 1; }
    rm -r "$run.model"
    mv "$run.new" "$run.json"
}

# The simulator's seconds of an epoch, of computation alone, in those of a batch: SET TIMING MODE
simulated() {
    local steps
    steps=$(jq '.claim_window_steps | if . > 0 then . else 1 end' "$work/$1-$2-$3.json")
    "$tools/sim_sched" --workers $machines --rounds "$(jq .batches "$work/$1-ours.json")" --timing "$2:$seconds:1" --epochs $epochs --window-steps "$steps" \
        --modes "$3" --json | jq ".modes[0].epochs_claims_s | add / $epochs / $seconds"
}

# goal SET TIMING: the held-out loss that bsp has after all epochs but one
goal() { jq ".epochs[$epochs - 2].test_loss" "$work/$1-$2-bsp.json"; }

# reach SET TIMING MODE GOAL: epochs and seconds to it, on the line between the ends of two epochs; "- -": it was not reached
reach() {
    jq -r --argjson goal "$4" '[foreach .epochs[] as $e (0; . + $e.seconds; {t: ., loss: $e.test_loss})] as $c |
        [range($c | length) as $i | select($c[$i].loss <= $goal) |
            (if $i == 0 then 1 else ($c[$i - 1].loss - $goal) / ($c[$i - 1].loss - $c[$i].loss) end) as $part |
            (if $i == 0 then 0 else $c[$i - 1].t end) as $before | "\($i + $part) \($before + $part * ($c[$i].t - $before))"][0] // "- -"' "$work/$1-$2-$3.json"
}

# results SET TIMING: a line a mode: mode, batches' time to the goal (simulated), epochs to it, seconds that passed, waiting, staleness, late
results() {
    local mode to
    for mode in $modes; do train "$1" "$2" "$mode"; done
    to=$(goal "$1" "$2")
    for mode in $modes; do
        # shellcheck disable=SC2046 # words
        set -- "$1" "$2" $(reach "$1" "$2" "$mode" "$to")
        echo "$mode $([[ $3 = - ]] && echo - || awk "BEGIN { print $3 * $(simulated "$1" "$2" "$mode") }") $3 $4" \
            "$(jq -r '"\([.ranks[].waiting_share] | add / length) \(([.ranks[] | (.stale_mean // 0) * (.iterations // 0)] | add) / ([.ranks[].iterations // 0, 1e-9] | add)) \(.emulated.late_share)"' "$work/$1-$2-$mode.json")"
    done
}

# best_bound: of the lines of results, that of the SSP that takes least, bsp and asp included as the bounds 0 and inf
best_bound() { awk '$1 ~ /^(bsp|asp|ssp)/ && $2 != "-" && (best == "" || $2 < best) { best = $2; line = $0 } END { print line }'; }
