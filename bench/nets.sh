#!/usr/bin/env bash
# Nets beside the models that they are compared with.
#   bench/nets.sh quality    the least held-out log loss of linear models, factorization machines and nets, over the same learning
#                            rates and epochs: samples of Criteo, iPinYou and Frappe, and generated clicks
#   bench/nets.sh clicks     generated clicks, 180 K and 2 M of them: the least held-out log loss of two epochs, of factorization machines,
#                            DeepFM and DLRM, with AdaGrad and Adam. Takes a quarter of an hour
#   bench/nets.sh digits     MNIST: accuracy of nets of one and two hidden layers and of LeNet, and seconds of an epoch
#   bench/nets.sh filters    LeNet on MNIST with three ranks, in each mode of synchronisation, without and with filters: accuracy, and MB
#                            of gradients and parameters
#   bench/nets.sh images     AlexNet on images of its size, generated with one channel and three, and enlarged digits: bytes of the
#                            plan, seconds of the processor for a step, beside those of its matrix products alone, memory, and
#                            accuracy. Takes three quarters of an hour
#   bench/nets.sh text       a language model of two LSTM layers on the Penn Treebank: perplexity, and seconds of the processor for an
#                            epoch, beside those of its matrix products alone. Takes half an hour
#   bench/nets.sh speed      DeepFM in memory, one and two threads, with the kernels that OpenBLAS takes by itself and with those for
#                            AVX-512, which old versions take on processors of Intel alone; three runs in turn
# DRPS_BENCH_SAMPLES: images of `images` (600).
# DRPS_BENCH_DATA: real sets (default ../shared/data); what is missing is left out, and said. DRPS_BENCH_EPOCHS: of each run (10).
# How fast a net trains whose embeddings do not fit: bench/relay.sh ratio --models deepfm:16.
. "$(dirname "$0")/lib.sh"
data=${DRPS_BENCH_DATA:-$root/../shared/data}
. "$(dirname "$0")/sets_of_fields.sh"
epochs=${DRPS_BENCH_EPOCHS:-10}
rates=(0.003 0.01 0.03 0.1)

train() { "$tools/drps-train" "$work/plan" -o "$work/model" --threads 1 --force --quiet --json --checkpoint-every never "$@" 2>"$work/said"; }

# ---- quality ----

# least ALGO: of all learning rates and epochs the least held-out loss, with the area under the curve there.
least() {
    local rate
    "$tools/drps-index" "$work/train" --test "$work/test" --algo "$1" --batch-size 100 -o "$work/plan" --force --quiet --no-forecast
    for rate in "${rates[@]}"; do
        train --lr "$rate" --epochs "$epochs" | jq -r --arg lr "$rate" '.epochs[] | "\(.test_loss) \(.test_auc) \($lr) \(.epoch)"'
    done | sort -g | awk 'NR == 1 { printf "%.4f (%.4f; %s, %d)", $1, $2, $3, $4 }'
}

compare() { # NAME: $work/train and $work/test
    local algo
    printf '| %s |' "$1"
    for algo in lor fm ffm wide-deep deepfm dlrm dcn; do printf ' %s |' "$(least $algo)"; done
    echo
}

there() { [[ -f $data/$1 ]] || { echo "bench: there is no $data/$1: it is left out" >&2; return 1; }; }

quality() {
    echo "| set | lor | fm | ffm | wide-deep | deepfm | dlrm | dcn |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    if there criteo-sample/fields.tsv.xz; then
        criteo train >"$work/train" && { criteo dev && criteo test; } >"$work/test"
        compare "Criteo sample"
    fi
    if there ipinyou/featindex.fm.txt.xz; then
        ipinyou train >"$work/train" && ipinyou test >"$work/test"
        compare "iPinYou sample"
    fi
    if there frappe/frappe.test.libfm.xz; then
        frappe validation >"$work/train" && frappe test >"$work/test"
        compare Frappe
    fi
    "$tools/drps-gen" ctr --format libffm --interactions 4 --samples 200K --rows 100K --seed 1 -o "$work/train" \
        --test-samples 20K --test-output "$work/test" --force --quiet
    compare "generated clicks, 180K"
}

# ---- clicks ----

# clicks_row TITLE INDEX-OPTIONS...: a line, of the plan of $work/train
clicks_row() {
    "$tools/drps-index" "$work/train" --test "$work/test" --batch-size 100 -o "$work/plan" --force --quiet --no-forecast "${@:2}"
    printf '| %s |' "$1"
    for how in "adagrad 0.03" "adagrad 0.01" "adam 0.001"; do
        # shellcheck disable=SC2086 # two words
        set -- $how
        printf ' %s |' "$(train --optimizer "$1" --lr "$2" --epochs 2 | jq '[.epochs[].test_loss] | min * 1e4 | round / 1e4')"
    done
    echo
}

clicks() {
    local samples
    echo "| clicks, model | AdaGrad, 0.03 | AdaGrad, 0.01 | Adam, 0.001 |"
    echo "| --- | --- | --- | --- |"
    for samples in 180K 2M; do # of which drps-gen takes those of the test away
        "$tools/drps-gen" ctr --format libffm --interactions 4 --samples "$([[ $samples = 2M ]] && echo 2020K || echo 200K)" --rows 100K --seed 1 \
            -o "$work/train" --test-samples 20K --test-output "$work/test" --force --quiet
        clicks_row "$samples, fm" --algo fm
        clicks_row "$samples, deepfm" --algo deepfm
        clicks_row "$samples, dlrm" --algo dlrm
        [[ $samples = 2M ]] || clicks_row "$samples, dlrm, 64 factors" --algo dlrm --factors 64
    done
}

# ---- digits ----

digits_row() { # NET RATE
    jq -r --arg net "$1" --arg lr "$2" \
        '"| \($net) | \($lr) | \(.epochs[-1].test_accuracy) | \(.epochs[-1].test_loss * 1e5 | round / 1e5) | \([.epochs[].seconds] | sort | .[length / 2 | floor] * 100 | round / 100) |"'
}

digits() {
    local name rate
    there mnist/train-images-idx3-ubyte.xz || exit 77
    . "$(dirname "$0")/digits.sh"
    digits_text train >"$work/train" && digits_text t10k >"$work/test"
    echo "h = bag 128; h = relu h; score = full classes h" | tr ';' '\n' >"$work/one hidden layer of 128"
    echo "h = bag 512; h = relu h; h = dropout 0.2 h; h = full 256 h; h = relu h; h = dropout 0.3 h; score = full classes h" |
        tr ';' '\n' >"$work/512 and 256, dropout"
    echo "| net | learning rate | accuracy on test samples after 20 epochs | test loss | seconds of an epoch |"
    echo "| --- | --- | --- | --- | --- |"
    for name in "one hidden layer of 128" "512 and 256, dropout"; do
        "$tools/drps-index" "$work/train" --test "$work/test" --algo net --net "$work/$name" --batch-size 100 -o "$work/plan" --force --quiet --no-forecast
        for rate in 0.01 0.02; do
            train --lr "$rate" --epochs 20 | digits_row "$name" "$rate"
        done
    done
    "$tools/drps-index" "$data/mnist/train-images-idx3-ubyte.xz" --test "$data/mnist/t10k-images-idx3-ubyte.xz" --algo lenet --batch-size 100 \
        -o "$work/plan" --force --quiet --no-forecast
    train --lr 0.015 --epochs 20 | digits_row LeNet 0.015
}

# ---- filters ----

# filtered NAME OPTIONS...: a line. The plan has no test samples, so that all bytes are of training.
filtered() {
    "$tools/drps-train" "$work/plan" -o "$work/model" --local 3 --lr 0.015 --epochs 2 --force --quiet --json --checkpoint-every never "${@:2}" \
        >"$work/trained" 2>"$work/said"
    "$tools/drps-predict" "$work/model" "$data/mnist/t10k-images-idx3-ubyte.xz" -o "$work/scores" --force --metrics --json --quiet >"$work/tested"
    jq -r --arg name "$1" --slurpfile test "$work/tested" '
        def mb(of): [.ranks[].sent | of] | add / 1e5 | round / 10;
        "| \($name) | \($test[0].test_accuracy) | \($test[0].test_loss * 1e4 | round / 1e4) | \(mb(.pushed.bytes + .sums.bytes)) | " +
        "\(mb(.pulled.bytes + .ahead.bytes + .marks.bytes)) |"' "$work/trained"
}

filters() {
    local sync gradients=(--push-values 8bit --push-top 5% --push-flush last) parameters=(--pull-values 8bit --pull-filter psi=0.01)
    there mnist/train-images-idx3-ubyte.xz || exit 77
    "$tools/drps-index" "$data/mnist/train-images-idx3-ubyte.xz" --algo lenet --batch-size 100 --workers 3 --residuals each -o "$work/plan" \
        --force --quiet --no-forecast
    echo "| mode, filters | accuracy on test samples | test loss | MB of gradients | MB of parameters |"
    echo "| --- | --- | --- | --- | --- |"
    filtered "bsp, none, sums" --net-exchange sums
    filtered "bsp, none, servers" --net-exchange servers
    filtered "bsp, gradients" "${gradients[@]}"
    filtered "bsp, parameters" "${parameters[@]}"
    filtered "bsp, both" "${gradients[@]}" "${parameters[@]}"
    for sync in "ssp --staleness 4" wsp asp; do
        parameters=(--pull-values 16bit)
        [[ $sync != ssp* ]] || parameters+=(--pull-cached)
        # shellcheck disable=SC2086 # several words
        filtered "${sync%% *}, none" --sync $sync
        # shellcheck disable=SC2086
        filtered "${sync%% *}, both" --sync $sync "${gradients[@]}" "${parameters[@]}"
    done
}

# ---- images ----

# user COMMAND...: seconds of the processor that it takes
user() {
    local TIMEFORMAT=%U
    { time "$@" >"$work/out" 2>"$work/said"; } 2>&1
}

images_row() { # NAME CHANNELS: $work/train-..., $work/test-...
    local of_one of_two steps=$((samples / 16)) epochs=8 products index file
    file=images-idx$([[ $2 = 1 ]] && echo 3 || echo 4)-ubyte
    products=$("$tools/bench_net_products" alexnet $((50176 * $2)) 10 16 | cut -d ' ' -f 1)
    index=$(user "$tools/drps-index" "$work/train-$file" --test "$work/test-$file" --algo alexnet --batch-size 16 -o "$work/plan" \
        --force --quiet --no-forecast)
    of_one=$(user train --lr 0.0003 --epochs 1) of_two=$(user train --lr 0.0003 --epochs 2)
    train --lr 0.0003 --epochs $epochs >"$work/trained"
    jq -r --arg name "$1" --arg step "$(awk -v a="$of_one" -v b="$of_two" -v n=$steps 'BEGIN { print (b - a) / n }')" --arg products "$products" \
        --arg bytes "$(($(stat -c %s "$work/plan/data.rec") / 1000000))" --arg index "$index" \
        '"| \($name) | \($bytes) MB | \($index) | \($step) | \($products) | \(.peak_rss_bytes / 1073741824 * 100 | round / 100) GiB | \(.epochs[0].test_accuracy) | \(.epochs[-1].test_accuracy) |"' \
        "$work/trained"
}

images() {
    local samples=${DRPS_BENCH_SAMPLES:-600}
    local mnist=("$data/mnist/train-images-idx3-ubyte.xz" "$data/mnist/train-labels-idx1-ubyte.xz")
    local tests=("$data/mnist/t10k-images-idx3-ubyte.xz" "$data/mnist/t10k-labels-idx1-ubyte.xz")
    echo "| images | batches | seconds to make the plan | seconds of a step | of its products alone | memory | accuracy on test samples after 1 epoch | after 8 |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    "$root/bench/images.py" stripes "$samples" 1 "$work/train"
    "$root/bench/images.py" stripes 100 2 "$work/test"
    images_row "stripes" 1
    "$root/bench/images.py" stripes "$samples" 1 "$work/train" 3
    "$root/bench/images.py" stripes 100 2 "$work/test" 3
    images_row "stripes of three channels" 3
    there mnist/train-images-idx3-ubyte.xz || return 0
    "$root/bench/images.py" enlarge 8 "$samples" "${mnist[@]}" "$work/train"
    "$root/bench/images.py" enlarge 8 100 "${tests[@]}" "$work/test"
    images_row "MNIST, enlarged" 1
}

# ---- text ----

text() {
    local part batch=1000 sequence=200 products
    local -A loss
    there ptb/ptb.train.txt.xz || exit 77
    for part in train valid test; do xzcat "$data/ptb/ptb.$part.txt.xz" >"$work/$part.txt"; done
    ! grep -q avx512f /proc/cpuinfo || export OPENBLAS_CORETYPE=SkylakeX
    "$tools/drps-index" "$work/train.txt" --test "$work/valid.txt" --algo lstm --sequence $sequence --batch-size $batch -o "$work/plan" \
        --force --quiet --no-forecast
    user train --epochs 16 --lr 0.08 --lr-decay cosine --eps 0.01 --init-scale 0.1 >"$work/seconds"
    mv "$work/out" "$work/trained"
    products=$("$tools/bench_net_products" lstm 2 10000 $batch 5 $sequence | cut -d ' ' -f 1)
    for part in valid test; do
        loss[$part]=$("$tools/drps-predict" "$work/model" "$work/$part.txt" --sequence 1000 -o "$work/scores" --metrics --json --quiet --force | jq .test_loss)
    done
    echo "| net, sequences, epochs | perplexity of validation | of test text | seconds of the processor for an epoch | of its products alone |"
    echo "| --- | --- | --- | --- | --- |"
    jq -r --argjson valid "${loss[valid]}" --argjson test "${loss[test]}" --argjson seconds "$(cat "$work/seconds")" --argjson products "$products" --argjson batch $batch '
        def round2: . * 100 | round / 100;
        "| two layers of 200, 200 tokens, \(.epochs | length) | \($valid | exp | round2) | \($test | exp | round2) | " +
        "\($seconds / (.epochs | length) | round) | \($products * 929589 / $batch | round) |"' "$work/trained"
}

# ---- speed ----

speed() {
    local threads kernels name
    "$tools/drps-gen" ctr --format libffm --interactions 4 --samples 200K --rows 100K --seed 1 -o "$work/train" --force --quiet
    "$tools/drps-index" "$work/train" --algo deepfm --batch-size 1000 -o "$work/plan" --force --quiet --no-forecast
    for _ in 1 2 3; do
        for kernels in "its own" SkylakeX; do
            [[ $kernels = "its own" ]] || grep -q avx512f /proc/cpuinfo || continue
            for threads in 1 2; do
                name="$threads thread$([[ $threads = 1 ]] || echo s), kernels: $kernels"
                ([[ $kernels = "its own" ]] || export OPENBLAS_CORETYPE=$kernels
                    "$tools/drps-train" "$work/plan" -o "$work/model" --threads "$threads" --epochs 4 --force --quiet --json \
                        --checkpoint-every never 2>"$work/said") | jq '[.epochs[1:][].samples_per_s] | sort | .[1]' >>"$work/$name.speeds"
            done
        done
    done
    echo "| threads, kernels of OpenBLAS | samples/s, median of three runs | least and most |"
    echo "| --- | --- | --- |"
    for name in "1 thread, kernels: its own" "2 threads, kernels: its own" "1 thread, kernels: SkylakeX" "2 threads, kernels: SkylakeX"; do
        [[ ! -e $work/$name.speeds ]] || sort -g "$work/$name.speeds" | awk -v name="$name" '{ v[NR] = $1 / 1000 }
            END { printf "| %s | %.0f K | %.0f to %.0f K |\n", name, v[2], v[1], v[3] }'
    done
}

case ${1:-} in
    quality | speed | clicks) $1 | tables "nets-$1" ;;
    digits) digits | tables nets-digits 2 ;;
    filters) filters | tables nets-filters ;;
    images) images | tables nets-images ;;
    text) text | tables nets-text ;;
    *) echo "usage: bench/nets.sh quality|clicks|digits|filters|images|text|speed" >&2; exit 2 ;;
esac
