#!/usr/bin/env bash
# Nets over images and other numbers: the dictionary has one feature, and rows are wide; idx and libffm text come to one model, as do
# stores, ranks and a run that is resumed; prediction; images of another size are refused.
. "$(dirname "$0")/lib.sh"

# images SAMPLES SEED: a line an image of 12 x 12, its label first, 0 to 2: a bar that stands, one that lies, or two that cross,
# anywhere in noise. The last row and column are dark.
images() {
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (s = 0; s < n; s++) {
        label = s % 3; a = 1 + int(rand() * 9); b = 1 + int(rand() * 9)
        printf "%d", label
        for (y = 0; y < 12; y++) for (x = 0; x < 12; x++) {
            bar = (label != 1 && x == a) || (label != 0 && y == b)
            printf " %d", x == 11 || y == 11 ? 0 : bar ? 150 + int(rand() * 100) : rand() < 0.2 ? int(rand() * 100) : 0
        }
        print "" } }'
}

# bytes NUMBER...: as they are
bytes() { printf '%b' "$(printf '\\x%02x' "$@")"; }

# make NAME SAMPLES SEED: NAME-images-idx3-ubyte, its labels, and NAME.ffm of the same numbers
make() {
    images "$2" "$3" >numbers.txt
    # shellcheck disable=SC2046  # numbers
    bytes 0 0 8 3 0 0 $(($2 / 256)) $(($2 % 256)) 0 0 0 12 0 0 0 12 $(cut -d ' ' -f 2- numbers.txt) >"$1-images-idx3-ubyte"
    # shellcheck disable=SC2046
    bytes 0 0 8 1 0 0 $(($2 / 256)) $(($2 % 256)) $(cut -d ' ' -f 1 numbers.txt) >"$1-labels-idx1-ubyte"
    awk '{ printf "%d", $1; for (k = 2; k <= NF; k++) if ($k) printf " %d:%d:%.17g", k - 2, k - 1, $k / 255; print "" }' numbers.txt >"$1.ffm"
}

index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --json; }
content() { train "$@" -o model --epochs 4 --lr 0.03 --checkpoint-every never | value content; }
accuracy() { all_values test_accuracy <"$1" | tail -1; }
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

make train 900 1
make test 300 2
[[ $(wc -c <train-images-idx3-ubyte) = $((16 + 900 * 144)) ]] || fail "the images have another size"
cat >net.txt <<'END'
x = image 1 12 12
h = conv 8 3 1 1 x
h = relu h
h = pool 2 2 h
h = conv 12 3 2 0 h
h = relu h
h = full 24 h
h = relu h
h = dropout 0.2 h
score = full classes h
END

# ---- The plan ----

index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net net.txt --batch-size 20 -o plan
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
# 3 + (9 + 1) * 8 + (72 + 1) * 12 + (48 + 1) * 24 + (24 + 1) * 3 parameters
"$tools/drps-stat" plan | grep -qE '^  table +net +9 rows, from row 0 on' || fail "9 rows of 256 floats hold 2,210 parameters"
"$tools/drps-stat" plan | grep -qE '^  table +wv +1 rows, from row 9 on' || fail "the entries are of one feature"
"$tools/drps-index" train-images-idx3-ubyte --algo net --net net.txt -o shown --force >shown.txt 2>&1
grep -q 'a net of 2,210 parameters, over numbers of 144 fields' shown.txt || fail "drps-index does not say how large the net is: $(cat shown.txt)"
# In text the last fields are never there, as they are of dark pixels: the net says how many numbers there are.
printf 'x = numbers 144\nh = full 30 x\nh = relu h\nscore = full classes h\n' >numbers.txt
index train-images-idx3-ubyte --algo net --net numbers.txt -o of-idx
index train.ffm --algo net --net numbers.txt -o of-text
a=$(content of-idx) b=$(content of-text)
[[ -n $a && $a = "$b" ]] || fail "idx gives model $a, libffm text $b"
echo "ok the plan"

# ---- One model ----

want=$(content plan --store resident)
[[ -n $want ]] || fail "no model"
for store in relay file; do
    [[ $(content plan --store $store --memory 40M) = "$want" ]] || fail "$store: another model"
done
[[ $(content plan --one-by-one) = "$want" ]] || fail "another model one by one"
two=$(content plan --threads 2)
[[ -n $two && $(content plan --threads 2 --store relay) = "$two" ]] || fail "two threads: two models"
"$tools/drps-train" plan -o resumed --epochs 1 --lr 0.03 --quiet --keep-checkpoints
[[ $(train plan -o resumed --epochs 4 --lr 0.03 --resume | value content) = "$want" ]] || fail "another model after a checkpoint"
index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net net.txt --batch-size 10 --workers 2 -o ranks
ranks=$(content ranks --local 2)
[[ -n $ranks && $(content ranks --local 2 --store relay) = "$ranks" ]] || fail "two ranks: two models"
echo "ok one model"

# ---- It learns, and predicts ----

train plan -o model --epochs 12 --lr 0.03 >train.json
above "$(accuracy train.json)" 0.95 || fail "accuracy $(accuracy train.json)"
"$tools/drps-predict" model test-images-idx3-ubyte -o scores.txt --metrics --json --quiet >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <train.json | tail -1)" 1e-5 || fail "prediction has another loss"
"$tools/drps-predict" model test.ffm --format libffm -o text.txt --metrics --json --quiet >text.json
near "$(value test_loss <predict.json)" "$(value test_loss <text.json)" 1e-6 || fail "text has another loss"
echo "ok it learns: accuracy $(accuracy train.json)"

# ---- Images that do not fit ----

refused() { # STATUS PATTERN INDEX-OPTIONS...
    fails "$1" "$2" "$tools/drps-index" "${@:3}" --algo net -o none
    absent none
}
sed 's/1 12 12/1 11 13/' net.txt >less.txt
refused 2 'less.txt: line 1: image 1 11 13 reads 143 numbers, and a sample has 144; write' train-images-idx3-ubyte --net less.txt
sed 's/1 12 12/1 13 12/' net.txt >larger.txt
refused 2 'larger.txt: line 1: image 1 13 12 reads 156 numbers, and the data has 144 fields' train-images-idx3-ubyte --net larger.txt
bytes 0 0 8 3 0 0 0 1 0 0 0 2 0 0 0 2 9 9 9 9 >small-images-idx3-ubyte
bytes 0 0 8 1 0 0 0 1 1 >small-labels-idx1-ubyte
refused 1 'small-images-idx3-ubyte: byte 8: samples of 2 x 2 = 4 numbers, and the model reads those of 144' train-images-idx3-ubyte \
    --test small-images-idx3-ubyte --net net.txt
fails 1 'samples of 2 x 2 = 4 numbers, and the model reads those of 144' "$tools/drps-predict" model small-images-idx3-ubyte -o none
{ bytes 0 0 8 3 0 0 0 1 0 0 1 0 0 0 1 0 && head -c 65536 /dev/zero; } >large-images-idx3-ubyte
cp small-labels-idx1-ubyte large-labels-idx1-ubyte
refused 1 'samples of 256 x 256 = 65536 numbers, each of which would be a field, and there are at most 65535' large-images-idx3-ubyte --net net.txt
echo "ok images that do not fit"
