# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this uses, and sets
# The setting of "Timed Dataflow": five workers, two servers beside them; in each iteration a worker computes the gradient of a fixed
# batch, a tenth of its samples (LR) or all of them (MF), and SGD steps. Its sets are 680 M clicks of Criteo and 22 M ratings of
# MovieLens, and 100 thousand images of ImageNet; in their place: "LR, clicks" (generated), "LR, text" (imdb, words), "MF, ratings"
# (ml-100k), "AlexNet, digits" (MNIST). Source it after lib.sh.
#
# AlexNet is one of 28 x 28 pixels: five convolutions, three poolings and three full layers with dropout, 395,604 parameters, of which
# 84 % are of full layers (the original: 61 M, 96 %). Its batches have 20 images (256). It steps by AdaGrad: SGD alone has not learnt
# enough after so few iterations to compare by. Under SSP, where each worker's gradient is a step of its own, it has half the rate.
#
# drps sends whole what it has held back at the end of each epoch, and the paper does not: so the plan's epoch repeats the samples,
# in the order given, and has `iterations` of the paper's. Thresholds are of gradients of the mean loss of a worker's batch, as the
# paper's seem to be; drps-train's are of the sum. DRPS_BENCH_MODELS names fewer models,
# DRPS_BENCH_SYNCS one of "bsp" and "ssp8".
. "$(dirname "${BASH_SOURCE[0]}")/../digits.sh"
workers=5 servers=2 ranks=7
read -ra models <<<"${DRPS_BENCH_MODELS:-clicks text ratings alexnet}"
read -ra syncs <<<"${DRPS_BENCH_SYNCS:-bsp ssp8}"
iterations=100 epochs=$(quickly 1 4)

# What a model is: its title, samples and iterations a pass; the learning rate of the mean loss, tried by factors of 2 to 5 (of
# AdaGrad: of any loss).
describe() { # MODEL
    case $1 in
    clicks) title="LR, clicks" samples=$(quickly 20000 100000) pass=10 step=0.4 ;;
    text) title="LR, text" samples=$(quickly 5000 25000) pass=10 step=1.5 ;;
    ratings) title="MF, ratings" samples=$(quickly 20000 90570) pass=1 step=0.36 ;;
    alexnet) title="AlexNet, digits" samples=$((iterations * $(quickly 20 100))) pass=$iterations step=0.01 ;;
    esac
    batch=$((samples / pass / workers))
}

# rate_of MODEL SYNC: options of the optimizer, one a line
rate_of() {
    local of=$batch optimizer=sgd
    if [[ $1 = alexnet ]]; then
        optimizer=adagrad of=1
        [[ $2 = bsp ]] || of=2
    fi
    printf '%s\n' --optimizer $optimizer --lr "$(awk "BEGIN { print $step / $of }")"
}

# per_batch X: of the mean loss to that of the sum over a batch
per_batch() { awk "BEGIN { printf \"%.6g\", $1 * $batch }"; }

make_clicks() {
    gen ctr --samples $((samples * 6 / 5)) --test-samples $((samples / 5)) --test-output "$work/clicks.test" --fields 39 --rows 100K \
        -o "$work/clicks.train"
}
make_text() {
    if there imdb "text"; then
        packed imdb/imdb.train.libsvm.xz | mixed | awk -v most="$samples" 'NR <= most' | unit >"$work/text.train"
        packed imdb/imdb.test.libsvm.xz | mixed | awk -v most="$samples" 'NR <= most' | unit >"$work/text.test"
    else
        gen classification --samples $((2 * samples)) --test-samples "$samples" --test-output "$work/text.test" --nnz 130 --rows 44K \
            -o "$work/text.raw"
        unit <"$work/text.raw" >"$work/text.train"
        unit <"$work/text.test" >"$work/text.raw" && mv "$work/text.raw" "$work/text.test"
    fi
}
make_ratings() {
    if there ml-100k "ratings"; then
        packed ml-100k/ua.base.xz | mixed | awk -v most="$samples" 'NR <= most' >"$work/ratings.train"
        packed ml-100k/ua.test.xz >"$work/ratings.test"
    else
        gen matrix --ratings $((samples * 11 / 10)) --test-samples $((samples / 10)) --test-output "$work/ratings.test" --users 940 \
            --items 1700 -o "$work/ratings.train"
    fi
}

# Each number's place is its field.
make_alexnet() {
    local numbers='{ printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, part, ":"); printf " %d:0:%s", part[1] - 1, part[2] }; print "" }'
    if there mnist "images of ten kinds"; then
        digits_text train | awk -v most="$samples" "NR <= most $numbers" >"$work/alexnet.train"
        digits_text t10k | awk -v most="$(quickly 500 10000)" "NR <= most $numbers" >"$work/alexnet.test"
    else
        digits_generated $((2 * samples)) | awk "$numbers" >"$work/alexnet.all"
        head -n "$samples" "$work/alexnet.all" >"$work/alexnet.train"
        tail -n +$((samples + 1)) "$work/alexnet.all" >"$work/alexnet.test"
    fi
    tr ';' '\n' >"$work/alexnet.net" <<'END'
h = image 1 28 28
h = conv 16 5 2 2 h; h = relu h; h = pool 2 2 h
h = conv 32 5 1 2 h; h = relu h; h = pool 3 2 h
h = conv 48 3 1 1 h; h = relu h
h = conv 48 3 1 1 h; h = relu h
h = conv 32 3 1 1 h; h = relu h; h = pool 2 1 h
h = dropout 0.5 h; h = full 512 h; h = relu h
h = dropout 0.5 h; h = full 512 h; h = relu h
score = full classes h
END
}

# timed_plan MODEL: makes its plan, and describes it
timed_plan() {
    local i how=(--format libsvm --algo lor)
    describe "$1"
    case $1 in
    ratings) how=(--format ratings --algo lmf --factors 16) ;;
    alexnet) how=(--format libffm --algo net --net "$work/alexnet.net") ;;
    esac
    "make_$1"
    for ((i = 0; i < iterations / pass; i++)); do cat "$work/$1.train"; done >"$work/$1.repeated"
    "$tools/drps-index" "$work/$1.repeated" --test "$work/$1.test" "${how[@]}" --order given --batch-size "$batch" --workers $workers \
        --servers $servers --separate --partition range --samples dealt --residuals all -o "$work/$1.plan" --force --quiet --no-forecast
    rm "$work/$1.repeated"
}

# how_of SYNC: options of "bsp" or "ssp8", one a line: workers do not take over each other's batches, as in the paper
how_of() {
    case $1 in
    bsp) echo --no-fresh ;;
    ssp*) printf '%s\n' --sync ssp --staleness "${1#ssp}" --no-claim ;;
    esac
}

# timed_train MODEL SYNC OPTIONS...: leaves in run.json the quality ("points": percent of right test samples, or -100 ln of the
# RMSE), bytes of parameters that training pulled, and what is saved of them (to plain.json's run, if it is there) and of gradients,
# in percent. Fails where this build has not the options, or not under SYNC.
timed_train() {
    local model=$1 status=0 how rate eval plain=null
    eval=$(jq '.cluster.test_pulled_rows * .dim * 4' "$work/$model.plan/plan.json")
    [[ ! -e $work/plain.json ]] || plain=$(jq .pulled "$work/plain.json")
    mapfile -t how < <(how_of "$2")
    mapfile -t rate < <(rate_of "$1" "$2")
    timeout 600 "$tools/drps-train" "$work/$model.plan" -o "$work/model" --force --local $ranks --transport inproc --store resident \
        "${rate[@]}" --epochs "$epochs" "${how[@]}" "${@:3}" \
        --quiet --json >"$work/train.json" 2>"$work/train.err" || status=$?
    case $status in
    0) ;;
    2) return 1 ;;
    124) echo "$(basename "$0"): $model, $*: no end after ten minutes" >&2 && exit 1 ;;
    *) grep -q diverged "$work/train.err" || { cat "$work/train.err" >&2 && exit 1; } ;;
    esac
    if ((status)); then echo '{"points": -1000, "pulled": 0, "pull_saved": 0, "saved": 0, "dropped": 0, "quality": "diverged"}'; else
        jq --argjson eval "$((eval * epochs))" --argjson pulled "$plain" '
            def sum(of): [.ranks[] | of // 0] | add;
            (.epochs[-1] | .test_rmse // .test_accuracy) as $q | sum(.push.plain_bytes) as $plain |
            {quality: ($q * 1e5 | round / 1e5), points: (if .epochs[-1].test_rmse then -100 * ($q | log) else 100 * $q end),
             pulled: (sum(.sent | .pulled.bytes + .ahead.bytes + .marks.bytes) - $eval),
             saved: (if $plain > 0 then 100 * (1 - sum(.push.sent_bytes) / $plain) else 0 end),
             dropped: (if $plain > 0 then 400 * sum(.push.zero + .push.below + .push.beyond) / $plain else 0 end)} |
            .pull_saved = (if $pulled then 100 * (1 - .pulled / $pulled) else 0 end)' "$work/train.json"
    fi >"$work/run.json"
}

# timed_plain MODEL SYNC: without filters, to plain.json
timed_plain() {
    rm -f "$work/plain.json"
    timed_train "$1" "$2"
    mv "$work/run.json" "$work/plain.json"
}

# points_lost: how many run.json has less than plain.json, to three digits
points_lost() { jq --slurpfile plain "$work/plain.json" '($plain[0].points - .points) * 1000 | round / 1000 + 0' "$work/run.json"; }

# first_within POINTS MODEL SYNC OPTIONS...: trains with one list of options after another, until one loses at most so many points
# to plain.json; sets chosen to it, and leaves its run in run.json. Those that this build has not, or not under SYNC, are passed
# over. Fails where none is left; why says what it found.
first_within() {
    local options
    chosen="" why="not in this build"
    for options in "${@:4}"; do
        # shellcheck disable=SC2086 # they are options
        timed_train "$2" "$3" $options || continue
        why="all lose more"
        awk "BEGIN { exit !($(points_lost) <= $1) }" || continue
        chosen=$options
        return 0
    done
    return 1
}

# cells JQ: run.json's figure, the points that it lost, and the options; or why there are none, if first_within failed
cells() {
    if [[ -n $chosen ]]; then echo "$(jq "$1 * 10 | round / 10" "$work/run.json") | $(points_lost) | ${chosen//--}"; else echo "$why | | "; fi
}
