# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this uses, and sets
# The setting of "Accelerating Distributed Machine Learning with Model Compression and Graph Partition": linear models of hashed
# features; sixteen machines, each a worker and a server. Its sets are rcv1.binary and news20 of LIBSVM; in their place: "text"
# (imdb, words and pairs of words), "news" (20news, twenty classes), "clicks" (criteo's sample), "ads" (ipinyou), and "CTR"
# (generated). Source it after lib.sh. DRPS_BENCH_SETS names fewer sets.
machines=16
read -ra sets <<<"${DRPS_BENCH_SETS:-text news clicks ads CTR}"

# describe SET: the algorithm, the bits of bins that are tried, and the sizes of what is generated where there is no such folder
describe() {
    case $1 in
    text) folder=imdb algo=lor bits="10 12 14 16 18" samples=$(quickly 3000 25000) nnz=300 rows=430K ;;
    news) folder=20news algo=mlr bits="8 10 12 14 16" samples=$(quickly 3000 11314) nnz=130 rows=45K ;;
    clicks) folder=criteo-sample algo=lor bits="8 10 12 14 16" samples=$(quickly 3000 7200) nnz=39 rows=38K ;;
    ads) folder=ipinyou algo=lor bits="8 10 12 14 16" samples=$(quickly 5000 26773) nnz=16 rows=133K ;;
    CTR) folder=none algo=lor bits="10 12 14 16 18" samples=$(quickly 20000 50000) nnz=39 rows=1M ;;
    esac
    [[ -z $quick ]] || bits="10 14"
}

# make_set SET: $work/train and $work/test
make_set() {
    describe "$1"
    if [[ $folder != none ]] && there "$folder" "$1"; then
        case $1 in
        text) packed imdb/imdb-bigram.train.libsvm.xz | mixed | awk -v most="$samples" 'NR <= most' >"$work/train" && packed imdb/imdb-bigram.test.libsvm.xz >"$work/test" ;;
        news) packed 20news/20news.train.libsvm.xz | mixed | awk -v most="$samples" 'NR <= most' >"$work/train" && packed 20news/20news.test.libsvm.xz >"$work/test" ;;
        clicks) packed criteo-sample/criteo.train.libsvm.xz | awk -v most="$samples" 'NR <= most' >"$work/train" && packed criteo-sample/criteo.test.libsvm.xz >"$work/test" ;;
        ads) packed ipinyou/train.fm.txt.xz | mixed | awk -v most="$samples" 'NR <= most' >"$work/train" && packed ipinyou/test.fm.txt.xz >"$work/test" ;;
        esac
    elif [[ $1 = text || $1 = news ]]; then
        algo=lor
        gen classification --samples $((samples * 5 / 4)) --test-samples $((samples / 4)) --test-output "$work/test" --nnz "$nnz" --rows "$rows" -o "$work/train"
    else
        gen ctr --samples $((samples * 5 / 4)) --test-samples $((samples / 4)) --test-output "$work/test" --fields "$nnz" --rows "$rows" -o "$work/train"
    fi
}

# sent PLAN_OPTION...: thousand rows of parameters that an epoch pulls from other machines; as many of gradients are pushed
sent() {
    "$tools/drps-index" "$work/train" --format libsvm --algo "$algo" --workers $machines --force --quiet --no-forecast -o "$work/dealt" "$@" 2>/dev/null
    "$tools/drps-stat" "$work/dealt" --json | jq -r '.cluster.pulled_rows / 1e3 | round'
}

# learn OPTION...: parameters, "accuracy, or AUC of two classes, %" and test loss of the best epoch
learn() {
    "$tools/drps-index" "$work/train" --test "$work/test" --format libsvm --algo "$algo" --force --quiet --no-forecast -o "$work/plan" "$@" 2>/dev/null
    "$tools/drps-train" "$work/plan" --epochs "$(quickly 2 20)" --patience 2 -o "$work/model" --force --quiet --json 2>/dev/null |
        jq -r '[.epochs[] | select(.test_loss)] | min_by(.test_loss) as $best | ($best.test_auc // $best.test_accuracy) as $quality |
            "\($quality * 1e4 | round / 100) | \($best.test_loss * 1e4 | round / 1e4)"'
}
parameters() { "$tools/drps-stat" "$work/plan" --json | jq -r '.rows * .dim'; }
