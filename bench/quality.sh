#!/usr/bin/env bash
# Held-out loss on real data against LIBLINEAR (Debian: liblinear-tools), which minimises the same model's loss exactly.
# For each set the best of several regularisation strengths of the reference (-B 30: an intercept that is hardly
# regularised, as ours is not), and the best epoch of drps-train with the
# optimizer and rate named. Of several classes the accuracy is compared: the reference's best, and ours of the epoch with
# the best loss. Curves of all epochs go to $work/curves/*.tsv; `bench/curves.sh` draws them.
#   bench/quality.sh [DATA]      DATA: folder with the sets of a9a, imdb, ... as .xz (default ../shared/data)
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
[[ -d $data/a9a ]] || { echo "bench: no data sets in $data" >&2; exit 77; }
command -v liblinear-train >/dev/null || { echo "bench: install liblinear-tools" >&2; exit 1; }
mkdir -p "$work/curves"
cd "$work"

from_one() { awk '{printf "%s", $1; for (i = 2; i <= NF; i++) {split($i, a, ":"); printf " %d:%s", a[1] + 1, a[2]} print ""}'; }
xz -dc "$data/a9a/a9a.xz" >a9a.train
xz -dc "$data/a9a/a9a.t.xz" >a9a.test
xz -dc "$data/criteo-sample/criteo.train.libsvm.xz" >criteo.train
xz -dc "$data/criteo-sample/criteo."{dev,test}.libsvm.xz >criteo.test
xz -dc "$data/frappe/frappe.validation.libfm.xz" | from_one >frappe.train
xz -dc "$data/frappe/frappe.test.libfm.xz" | from_one >frappe.test
xz -dc "$data/ipinyou/train.fm.txt.xz" | from_one >ipinyou.train
xz -dc "$data/ipinyou/test.fm.txt.xz" | from_one >ipinyou.test
xz -dc "$data/imdb/imdb-bigram.train.libsvm.xz" >imdb.train
xz -dc "$data/imdb/imdb-bigram.test.libsvm.xz" >imdb.test
xz -dc "$data/abalone/abalone.libsvm.xz" | awk 'NR % 10 != 0' >abalone.train
xz -dc "$data/abalone/abalone.libsvm.xz" | awk 'NR % 10 == 0' >abalone.test

. "$root/bench/sets_of_classes.sh"

# Loss of LIBLINEAR's linear scores (weights file) on a test file: logistic, hinge or squared; ids from 1, bias last.
linear_loss() { # MODEL TEST LOSS
    awk -v loss="$3" '
        FNR == 1 {file++}
        file == 1 && /^label/ {sign = ($2 == 1 || $2 == "+1") ? 1 : -1}
        file == 1 && /^nr_feature/ {n = $2}
        file == 1 && /^bias/ {bias = $2}
        file == 1 && /^solver_type/ && /SVR/ {sign = 1}
        file == 1 && in_w {w[++k] = $1}
        file == 1 && /^w/ {in_w = 1; if (!sign) sign = 1}
        file == 2 {
            s = bias * w[n + 1]
            for (i = 2; i <= NF; i++) {split($i, a, ":"); if (a[1] <= n) s += w[a[1]] * a[2]}
            s *= sign
            y = (loss == "squared") ? $1 : ($1 > 0 ? 1 : -1)
            if (loss == "logistic") {z = y * s; l = z > 0 ? log(1 + exp(-z)) : -z + log(1 + exp(z))}
            else if (loss == "hinge") {l = 1 - y * s; if (l < 0) l = 0}
            else l = (s - y) * (s - y) / 2
            sum += l; count++
        }
        END {printf "%.5f\n", sum / count}' "$1" "$2"
}

reference() { # SET SOLVER LOSS C...
    local set=$1 solver=$2 loss=$3 c best=1e9 value at=-
    shift 3
    for c in "$@"; do
        liblinear-train -s "$solver" $([[ $solver = 11 ]] && echo "-p 0") -B 30 -c "$c" -q "$set.train" "$set.model" >/dev/null 2>&1
        value=$(linear_loss "$set.model" "$set.test" "$loss")
        if awk "BEGIN {exit !($value < $best)}"; then best=$value at=$c; fi
    done
    echo "$best C=$at"
}

reference_classes() { # SET SOLVER C...
    local set=$1 solver=$2 c best=0 value at=-
    shift 2
    for c in "$@"; do # a large bias makes the dual solver crawl
        liblinear-train -s "$solver" -B 1 -c "$c" -q "$set.train" "$set.model" >/dev/null 2>&1
        value=$(liblinear-predict "$set.test" "$set.model" /dev/null | sed 's/.*(\([0-9]*\)\/\([0-9]*\))/\1 \2/' | awk '{printf "%.4f", $1 / $2}')
        if awk "BEGIN {exit !($value > $best)}"; then best=$value at=$c; fi
    done
    echo "$best C=$at"
}

ours() { # NAME SET INDEX-OPTIONS -- TRAIN-OPTIONS
    local name=$1 set=$2 index=()
    shift 2
    while [[ $1 != -- ]]; do index+=("$1"); shift; done
    shift
    "$tools/drps-index" "$set.train" --test "$set.test" "${index[@]}" -o "plan-$name" --force --quiet --json >/dev/null
    "$tools/drps-train" "plan-$name" -o "model-$name" --force "$@" --quiet --json >"$name.json"
    jq -r '.epochs[] | [.epoch, .train_loss, .test_loss, .test_auc // "-", .test_accuracy // "-", .test_rmse // "-"] | @tsv' \
        "$name.json" >"curves/$name.tsv"
    jq -r '.epochs | min_by(.test_loss) | "\(.test_loss * 100000 | round / 100000) epoch \(.epoch)"' "$name.json"
}

row() { # NAME SET SOLVER LOSS "C..." INDEX-OPTIONS -- TRAIN-OPTIONS
    local name=$1 set=$2 solver=$3 loss=$4 cs=$5 ref our
    shift 5
    ref=$(reference "$set" "$solver" "$loss" $cs)
    our=$(ours "$name" "$set" "$@")
    record "quality|$name|LIBLINEAR" "${ref%% *}"
    record "quality|$name|drps, best epoch" "${our%% *}"
    printf '%-14s %-9s reference %-18s drps %-18s ratio %s   %s\n' "$name" "$loss" "$ref" "$our" \
        "$(awk "BEGIN {printf \"%.4f\", ${our%% *} / ${ref%% *}}")" "${*#*-- }"
}

row_classes() { # NAME SET SOLVER "C..." INDEX-OPTIONS -- TRAIN-OPTIONS
    local name=$1 set=$2 solver=$3 cs=$4 ref our
    shift 4
    ref=$(reference_classes "$set" "$solver" $cs)
    ours "$name" "$set" "$@" >/dev/null
    our=$(jq -r '.epochs | min_by(.test_loss) | "\(.test_accuracy * 10000 | round / 10000) epoch \(.epoch)"' "$name.json")
    record "quality|$name|LIBLINEAR" "${ref%% *}"
    record "quality|$name|drps, best epoch" "${our%% *}"
    printf '%-14s %-9s reference %-18s drps %-18s points %+.2f   %s\n' "$name" accuracy "$ref" "$our" \
        "$(awk "BEGIN {print 100 * (${our%% *} - ${ref%% *})}")" "${*#*-- }"
}

row a9a-lor a9a 0 logistic "0.03 0.1 0.3 1" --algo lor -- --epochs 20 --lr 0.03
row criteo-lor criteo 0 logistic "0.01 0.03 0.1" --algo lor -- --epochs 10 --lr 0.02
row frappe-lor frappe 0 logistic "1 3 10" --algo lor -- --epochs 30 --lr 0.2
row ipinyou-lor ipinyou 0 logistic "0.1 0.3 1 3" --algo lor -- --epochs 10 --lr 0.05 --l2 0.01 --eps 1e-8
row imdb-lor imdb 0 logistic "0.03 0.1 0.3" --algo lor -- --epochs 15 --lr 0.02
row a9a-svm a9a 3 hinge "0.01 0.1 1" --algo svm -- --epochs 30 --lr 0.02
row imdb-svm imdb 3 hinge "0.0003 0.001 0.003" --algo svm -- --epochs 15 --lr 0.01
row abalone-lir abalone 11 squared "1 10 100 1000" --algo lir -- --epochs 300 --lr 5

row_classes news-mlr news 0 "0.1 0.3 1" --algo mlr -- --epochs 20 --lr 0.03
row_classes tfidf-mlr tfidf 0 "30 100 300" --algo mlr -- --epochs 20
row_classes mnist-mlr mnist 0 "0.1 1" --algo mlr -- --epochs 20
row_classes news-svm news 3 "0.003 0.01 0.03" --algo svm -- --epochs 10
row_classes tfidf-svm tfidf 3 "0.3 1 3" --algo svm -- --epochs 20
row_classes mnist-svm mnist 3 "0.01 0.1 0.3" --algo svm -- --epochs 20

# No exact reference is packaged for these two; figures to compare with are in docs/quality.md.
xz -dc "$data/ml-1m/ratings.tsv.xz" >ml1m.all
awk 'BEGIN {srand(1)} {print > (rand() < 0.1 ? "ml1m.test" : "ml1m.train")}' ml1m.all
echo "ml1m-lmf       rank 16 loss $(ours ml1m-lmf ml1m --algo lmf --factors 16 --batch-size 1000 -- --epochs 30 --lr 0.05 --l2 0.05), best RMSE $(cut -f6 curves/ml1m-lmf.tsv | sort -n | head -1)"
echo "frappe-fm      rank 8  loss $(ours frappe-fm frappe --algo fm --factors 8 -- --epochs 20 --lr 0.1 --l2 0.001)"
