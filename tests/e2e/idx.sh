#!/usr/bin/env bash
# IDX files, the format of MNIST: the plan is that of libsvm text of the same numbers, plain and packed; labels are found by name or
# given; broken files are refused with their byte, and leave nothing behind.
. "$(dirname "$0")/lib.sh"

# bytes NUMBER...: as they are
bytes() { printf '%b' "$(printf '\\x%02x' "$@")"; }

# numbers N SEED: N numbers from 0 to 255, of which half are 0
numbers() { awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print rand() < 0.5 ? 0 : int(256 * rand()) }'; }

# make NAME SAMPLES SEED: images of 3 x 5 bytes, whose label is whether the first row is brighter, and NAME.svm
make() {
    numbers $((15 * $2)) "$3" >numbers.txt
    paste -d ' ' - - - - - - - - - - - - - - - <numbers.txt | awk '{
        printf "%d", ($1 + $2 + $3 + $4 + $5 > 300)
        for (k = 1; k <= 15; k++) if ($k) printf " %d:%.17g", k, $k / 255
        print ""
    }' >"$1.svm"
    # shellcheck disable=SC2046  # numbers
    bytes 0 0 8 3 0 0 $(($2 / 256)) $(($2 % 256)) 0 0 0 3 0 0 0 5 $(cat numbers.txt) >"$1-images-idx3-ubyte"
    # shellcheck disable=SC2046
    bytes 0 0 8 1 0 0 $(($2 / 256)) $(($2 % 256)) $(cut -c 1 "$1.svm") >"$1-labels-idx1-ubyte"
}

index() { "$tools/drps-index" "$@" --force --quiet; }
# same_batches A B: all but what plan.json says of the format and the command line
same_batches() { diff -rq -x plan.json "$1" "$2" >diff.txt || fail "$1 and $2: $(cat diff.txt)"; }

make train 700 1
make test 300 2

# ---- The plan of libsvm text ----

for algo in lor mlr "fm --factors 4" "svm --workers 2"; do
    read -r name options <<<"$algo"
    # shellcheck disable=SC2086  # options are words
    index train.svm --test test.svm --algo "$name" $options -o "of-text-$name"
    # shellcheck disable=SC2086
    index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo "$name" $options -o "$name"
    same_batches "of-text-$name" "$name"
    "$tools/drps-stat" "$name" --verify >/dev/null || fail "the plan of $name does not verify"
done
echo "ok the plan of libsvm text"

# ---- Packed, and labels elsewhere ----

mkdir packed named
gzip -c train-images-idx3-ubyte >packed/train-images-idx3-ubyte.gz
xz -c train-labels-idx1-ubyte >packed/train-labels-idx1-ubyte.xz
cp train-images-idx3-ubyte named/images
cp test-images-idx3-ubyte named/test
index packed/train-images-idx3-ubyte.gz --format idx --test test-images-idx3-ubyte --algo mlr -o packed.plan
same_batches of-text-mlr packed.plan
index named/images --labels train-labels-idx1-ubyte --test named/test --test-labels test-labels-idx1-ubyte --algo mlr -o named.plan
same_batches of-text-mlr named.plan
index - --labels train-labels-idx1-ubyte --test named/test --test-labels test-labels-idx1-ubyte --algo mlr -o stdin.plan \
    <train-images-idx3-ubyte
same_batches of-text-mlr stdin.plan
echo "ok packed, named and standard input"

# ---- Scores ----

"$tools/drps-train" mlr -o model --epochs 3 --quiet
"$tools/drps-predict" model test-images-idx3-ubyte -o scores.txt --metrics --json --quiet >idx.json
"$tools/drps-predict" model test.svm --format libsvm -o svm.txt --metrics --json --quiet >svm.json
cmp -s scores.txt svm.txt || fail "images have other scores than their text"
[[ $(value test_loss <idx.json) = "$(value test_loss <svm.json)" ]] || fail "another loss: $(cat idx.json svm.json)"
"$tools/drps-predict" model named/test -o unlabelled.txt --quiet # no labels are there, and none are needed
cmp -s unlabelled.txt svm.txt || fail "without labels there are other scores"
"$tools/drps-predict" model named/test --labels test-labels-idx1-ubyte -o named.txt --metrics --json --quiet >named.json
[[ $(value test_loss <named.json) = "$(value test_loss <svm.json)" ]] || fail "another loss with labels that are named"
echo "ok scores"

# ---- A plan is made again when the labels change ----

train() { "$tools/drps-train" train-images-idx3-ubyte --algo lor -o again --epochs 1 "$@" 2>&1; }
train --quiet
train --quiet --force
touch train-labels-idx1-ubyte
fails 1 'again.plan is there, and is not known to be of the same data' "$tools/drps-train" train-images-idx3-ubyte --algo lor -o again --epochs 1
echo "ok other labels are another plan"

# ---- Broken files ----

# refused PATTERN FILE [OPTION...]
refused() {
    fails 1 "$1" "$tools/drps-index" "${@:2}" --format idx --algo lor -o refused
    absent refused
}
cd named || exit
labels=../train-labels-idx1-ubyte
head -c 3000 images >cut.idx
refused 'cut.idx: ends at byte 3000, and its header promises 700 items of 15 bytes, up to byte 10516' cut.idx --labels $labels
{ cat images && echo; } >long.idx
refused 'long.idx: goes on at byte 10516, behind the 700 items' long.idx --labels $labels
{ bytes 0 0 10 && tail -c +4 images; } >type.idx
refused 'type.idx: byte 2: type 0x0a is none of idx' type.idx --labels $labels
refused 'byte 4: 300 labels, and images has 700 samples' images --labels ../test-labels-idx1-ubyte
cp images t-images-idx3-ubyte
refused 't-images-idx3-ubyte: its labels should be in t-labels-idx1-ubyte.*no such file.*--labels' t-images-idx3-ubyte
fails 2 'images: idx has its labels in another file.*--labels' "$tools/drps-index" images --algo lor -o refused
fails 2 'test: idx has its labels in another file.*--test-labels' "$tools/drps-index" images --labels $labels --test test --algo lor -o refused
fails 2 'files of labels are for idx' "$tools/drps-index" ../train.svm --labels $labels --algo lor -o refused
fails 2 'labels of test files, but no test file' "$tools/drps-index" images --labels $labels --test-labels $labels --algo lor -o refused
fails 2 'no lines that could be skipped' "$tools/drps-index" images --labels $labels --on-error skip --algo lor -o refused
gzip -c images | head -c 2000 >gzip.gz
refused 'gzip.gz: the gzip data ends early' gzip.gz --labels $labels
absent refused
cd ..
echo "ok broken files"

# ---- MNIST ----

mnist=$source/../shared/data/mnist
if [[ -f $mnist/train-images-idx3-ubyte.xz ]]; then
    index "$mnist/train-images-idx3-ubyte.xz" --test "$mnist/t10k-images-idx3-ubyte.xz" --algo mlr -o mnist
    "$tools/drps-train" mnist -o digits --epochs 3 --quiet --json >mnist.json
    accuracy=$(all_values test_accuracy <mnist.json | tail -1)
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' || fail "MNIST: accuracy $accuracy"
    echo "ok MNIST: accuracy $accuracy"
else
    echo "SKIPPED: MNIST, as ../shared/data has none"
fi
