#!/usr/bin/env bash
# "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 8: what machines move in each epoch
# of a dense net's training, with and without pruning.
#   bench/papers/compress-fig8.sh [--quick] [DATA]
# drps-train trains a net of 784, 128, 64 and 10 neurons on MNIST, on one machine. As in the paper, its parameters after each epoch
# are pruned, and what machines would move is counted (bench/papers/dynamic.c). The paper does not say what its net, data and
# settings are. Here a unit is at most 28 incoming weights of a neuron. A round has 160 samples of 4,800, and 960 are recent. r is 10,
# c .3, epsilon 1e-5 at a learning rate of .001. Reallocation begins where loads differ by a tenth of their mean. All are exact
# counts, of a model whose last digits depend on the kind of processor. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../digits.sh"
need bench_dynamic
ways=(random fixed mgp mgp-matched homes printed network counted)
titles="random | fixed | MGP | MGP, parts matched | homes | Algorithms 3 and 4 | with Eq. (1) | counted"

if there mnist "images of ten kinds"; then
    digits_text train | awk -v most="$(quickly 3000 0)" '!most || NR <= most' >"$work/train"
else
    digits_generated "$(quickly 3000 60000)" >"$work/train"
fi
epochs=$(quickly 3 10)
echo "h = bag 128; h = relu h; h = full 64 h; h = relu h; score = full classes h" | tr ';' '\n' >"$work/net"
"$tools/drps-index" "$work/train" --algo net --net "$work/net" --batch-size 100 -o "$work/plan" --force --quiet --no-forecast
models=()
for ((epoch = 1; epoch <= epochs; epoch++)); do
    # A run of so many epochs ends with what a longer one has then.
    "$tools/drps-train" "$work/plan" -o "$work/$epoch" --epochs "$epoch" --optimizer sgd --lr 0.001 --threads 1 --force --quiet \
        --checkpoint-every never
    models+=("$work/$epoch")
done
for share in 0 0.8; do
    for machines in 16 4; do
        "$tools/bench_dynamic" "$work/train" 784:128:64:10 "machines=$machines" "prune=$share" "samples=$(quickly 800 4800)" \
            "recent=$(quickly 160 960)" "${models[@]}" |
            awk -v title="$machines machines, $([[ $share = 0 ]] && echo "not pruned" || echo pruned)" '{ print title "\t" $0 }'
    done
done >"$work/lines.tsv"

# volumes COLUMN: of an epoch and of all, that column of "moves" (uses and sets with what moved), to random's, which is in thousand
# parameters; moved: in thousands, all of them
volumes() {
    awk -F '\t' -v column="$1" -v ways="${ways[*]}" -v last="$epochs" '
        function cell(title, way, epoch,    value) {
            if (!((title, way, epoch) in volume)) return " not in this build |"
            value = volume[title, way, epoch]
            if (column == "moved" || way == "random") return sprintf(" %.1f |", value / 1000)
            return sprintf(" %.3f |", value / volume[title, "random", epoch])
        }
        function line(title, epoch, name,    w, text) {
            text = "| " title ", " name " |"
            for (w = 1; w <= n; w++) text = text cell(title, way[w], epoch)
            print text
        }
        BEGIN { n = split(ways, way, " ") }
        $2 != "moves" { next }
        !($1 in seen) { seen[$1] = 1; order[++all] = $1 }
        {
            value = column == "uses" ? $6 + $9 : column == "sets" ? $7 + $9 : column == "busiest" ? $8 : $9
            volume[$1, $4, $5] = value
            volume[$1, $4, "all"] += value
        }
        END {
            for (i = 1; i <= all; i++) {
                if (column != "moved") { line(order[i], 1, "epoch 1"); line(order[i], last, "epoch " last) }
                line(order[i], "all", "all epochs")
            }
        }' "$work/lines.tsv"
}

echo "rounds: thousand parameters at random, each once a round for each machine that uses it; the others to that, with what moved"
volumes uses | table paper-compress-fig8-rounds 1 "machines, epoch; rounds | $titles"
echo "sets: each once an epoch for each machine, with what moved"
volumes sets | table paper-compress-fig8-sets 1 "machines, epoch; sets | $titles"
echo "busiest: the largest load of each round, without what moved"
volumes busiest | table paper-compress-fig8-busiest 1 "machines, epoch; busiest | $titles"
echo "moved: thousand parameters"
volumes moved | table paper-compress-fig8-moved 1 "machines; moved | $titles"
echo "the net, with 16 machines: percent of the weights that are pruned, of these training samples with the right class, of the units that"
echo "a sample changes; of these, percent that Algorithm 3 foresees, and of what it foresees those that are changed"
awk -F '\t' -v last="$epochs" '
    $1 !~ /^16 / { next }
    $2 == "net" { net = sprintf("| %s, epoch %d | %s | %s | %s |", $1, $3, $4, $5, $6); epoch = $3 }
    $2 == "guess" && $4 == "printed" && (epoch == 1 || epoch == last) {
        print net ($6 + $7 ? sprintf(" %s | %s |", $6, $7) : " not asked | not asked |")
    }' "$work/lines.tsv" |
    table paper-compress-fig8-net 1 "epoch | pruned, % | right, % | units changed, % | foreseen, % | of the foreseen, %"
