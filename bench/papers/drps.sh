# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this uses, and sets
# The setting of "DRPS: efficient disk-resident parameter servers", section 7.1: five machines, batches of 0.01 % of the samples, so that
# an epoch has 10,000, k = 50. Its sets, divided by DRPS_BENCH_FACTOR (100; --quick: 2000) in samples, rows and ratings, all generated:
#   avazu           Avazu-CTR: 40 M samples of 22 features, 9 M ids; LoR
#   classification  10 M samples, 10 G ids, of 100 features here (the paper has 35 GB of text); LoR
#   movielens       24 M ratings of 260 thousand users, 160 thousand items; LMF of rank 8 (the paper: 2000)
#   matrix          1.3 G ratings of 10 M users, 10 thousand items, all used alike: divided by 100 times as much; LMF
# Source it after lib.sh. DRPS_BENCH_SETS names fewer sets.
factor=${DRPS_BENCH_FACTOR:-$(quickly 2000 100)}
workers=5 batches=$(quickly 1000 10000) k=50
read -ra sets <<<"${DRPS_BENCH_SETS:-avazu classification movielens matrix}"

part() { echo $(($1 / factor > ${2:-1} ? $1 / factor : ${2:-1})); }

# describe SET: its title, samples and options of drps-index
describe() {
    how=(--format libsvm --algo lor)
    case $1 in
    avazu) title="LoR, Avazu-CTR / $factor" samples=$(part 40000000) ;;
    classification) title="LoR, classification / $factor" samples=$(part 10000000) ;;
    movielens) title="LMF, MovieLens / $factor" samples=$(part 24000000) ;;
    matrix) title="LMF, matrix / ${factor}00" samples=$(part 13000000) ;;
    esac
    [[ $1 = avazu || $1 = classification ]] || how=(--format ratings --algo lmf --factors 8)
    how+=(--batch-size $((samples / batches > 1 ? samples / batches : 1)))
}

make_set() { # SET: $work/SET
    local users
    case $1 in
    avazu) gen ctr --samples "$samples" --fields 22 --rows "$(part 9000000)" --zipf 1.05 -o "$work/$1" ;;
    classification) gen classification --samples "$samples" --nnz 100 --rows "$(part 10000000000)" --zipf 1.05 -o "$work/$1" ;;
    movielens) gen matrix --ratings "$samples" --users "$(part 260000 50)" --items "$(part 160000 30)" -o "$work/$1" ;;
    matrix) gen matrix --ratings "$samples" --users "$(part 100000 50)" --items "$(part 10000 30)" -o "$work/$1" ;;
    esac
}

# processor COMMAND...: seconds of the processor that it takes, its children's too, in `spent`; what it prints goes to $work/printed
processor() {
    local TIMEFORMAT='%U %S'
    spent=$({ time "$@" >"$work/printed" 2>"$work/messages"; } 2>&1 | awk '{ print $1 + $2 }')
}
