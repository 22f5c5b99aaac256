#!/usr/bin/env bash
# Nets over images and other numbers: the dictionary has one feature, and rows are wide; numbers that are known by their place (idx, csv
# of numbers) and entries with fields (libffm text) come to one model, as do stores, ranks, plans made of plans and a run that is
# resumed; channels; prediction; images of another shape are refused.
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
bytes 0 0 8 3 0 0 0 1 0 0 0 2 0 0 0 2 9 9 9 9 >small-images-idx3-ubyte
bytes 0 0 8 1 0 0 0 1 1 >small-labels-idx1-ubyte
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
grep -qE '^  table +net +9 rows, from row 0 on' < <("$tools/drps-stat" plan) || fail "9 rows of 256 floats hold 2,210 parameters"
grep -qE '^  table +wv +1 row, from row 9 on' < <("$tools/drps-stat" plan) || fail "the entries are of one feature"
"$tools/drps-index" train-images-idx3-ubyte --algo net --net net.txt -o shown --force >shown.txt 2>&1
grep -q 'a net of 2,210 parameters, over numbers of 144 fields' shown.txt || fail "drps-index does not say how large the net is: $(cat shown.txt)"
# In text the last fields are never there, as they are of dark pixels: the net says how many numbers there are.
printf 'x = numbers 144\nh = full 30 x\nh = relu h\nscore = full classes h\n' >numbers.net
index train-images-idx3-ubyte --algo net --net numbers.net -o of-idx
index train.ffm --algo net --net numbers.net -o of-text
a=$(content of-idx) b=$(content of-text)
[[ -n $a && $a = "$b" ]] || fail "idx gives model $a, libffm text $b"
grep -q '"numbers": true' < <("$tools/drps-stat" of-idx --json) || fail "numbers of idx are entries"
! grep -q '"numbers"' < <("$tools/drps-stat" of-text --json) || fail "entries of text are numbers by place"
"$tools/drps-stat" of-idx --verify >/dev/null || fail "the plan of numbers does not verify"
# bytes of what the batches have
size() { stat -c %s "$1/data.rec"; }
((3 * $(size of-idx) < $(size of-text))) || fail "numbers by place take $(size of-idx) bytes, entries $(size of-text)"
index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net net.txt -o check
"$tools/drps-stat" check --check >check.txt 2>&1
! grep -q 'in training, too\|same in every\|alone decides' check.txt || fail "images that differ are taken for copies: $(cat check.txt)"
index train-images-idx3-ubyte --test train-images-idx3-ubyte --algo net --net net.txt -o check
"$tools/drps-stat" check --check >check.txt 2>&1
grep -q '900 of 900 test samples (100.0 %) are in training, too' check.txt || fail "copies of images are not found: $(cat check.txt)"
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
"$tools/drps-stat" ranks --verify >/dev/null || fail "the plan for two ranks does not verify"
ranks=$(content ranks --local 2)
[[ -n $ranks && $(content ranks --local 2 --store relay) = "$ranks" ]] || fail "two ranks: two models"
index --from-plan ranks --workers 1 -o taken
"$tools/drps-stat" taken --verify >/dev/null || fail "the plan made of a plan does not verify"
index train.ffm --test test.ffm --algo net --net net.txt --batch-size 20 -o of-ffm
[[ $(content of-ffm) = "$want" ]] || fail "another model of entries with fields"
index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net net.txt --batch-size 20 --blocks greedy -o blocks
"$tools/drps-stat" blocks --verify >/dev/null || fail "the plan with blocks does not verify"
[[ $(content blocks) = "$want" ]] || fail "another model with other blocks"
index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net net.txt --batch-size 20 --memory 64M -o little
[[ $(content little) = "$want" ]] || fail "another model of a plan made with little memory"
# All samples of the earlier plan are there again, beside as many new ones.
index train-images-idx3-ubyte --base plan --replay 1 -o more
"$tools/drps-stat" more --verify >/dev/null || fail "the plan with a base does not verify"
index train.ffm --base of-ffm --replay 1 -o more-ffm
[[ $(content more) = "$(content more-ffm)" ]] || fail "another model with a base of entries"
fails 1 'samples of 2 x 2 numbers, and the net reads .image 1 12 12' "$tools/drps-index" small-images-idx3-ubyte --base plan -o none
echo "ok one model"

# ---- It learns, and predicts ----

train plan -o model --epochs 12 --lr 0.03 >train.json
above "$(accuracy train.json)" 0.95 || fail "accuracy $(accuracy train.json)"
"$tools/drps-predict" model test-images-idx3-ubyte -o scores.txt --metrics --json --quiet >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <train.json | tail -1)" 1e-5 || fail "prediction has another loss"
"$tools/drps-predict" model test.ffm --format libffm -o text.txt --metrics --json --quiet >text.json
near "$(value test_loss <predict.json)" "$(value test_loss <text.json)" 1e-6 || fail "text has another loss"
echo "ok it learns: accuracy $(accuracy train.json)"

# ---- Columns of a table ----

# table NAME FIRST LAST: a csv file of NAME.ffm's numbers, columns from number FIRST to LAST (downwards where FIRST is larger)
table() {
    awk -v a="$2" -v b="$3" 'BEGIN { step = a < b ? 1 : -1; printf "label"; for (k = a; k != b + step; k += step) printf ",n%d", k; print "" } {
        split("", x); for (k = 2; k <= NF; k++) { split($k, e, ":"); x[e[1]] = e[3] }
        printf "%d", $1; for (k = a; k != b + step; k += step) printf ",%s", k in x ? x[k] : k % 2 ? 0 : ""; print "" }' "$1.ffm"
}
table train 0 143 >train.csv
table test 0 143 >test.csv
index train.csv --test test.csv --algo net --net net.txt --batch-size 20 -o columns --columns '*:number' --scale none
"$tools/drps-stat" columns --verify >/dev/null || fail "the plan of columns does not verify"
grep -q '"numbers": true' < <("$tools/drps-stat" columns --json) || fail "columns of numbers are entries"
[[ $(content columns) = "$want" ]] || fail "columns give another model"
"$tools/drps-train" columns -o columns.model --epochs 4 --lr 0.03 --quiet
"$tools/drps-predict" columns.model test.csv -o columns.txt --quiet
table test 143 0 >other.csv
"$tools/drps-predict" columns.model other.csv -o other.txt --quiet
cmp -s columns.txt other.txt || fail "columns in another order have other scores"
awk -F, 'NR == 1 { split($0, name); next } { printf "{\"label\": %s", $1; for (k = 0; k < 90; k++) printf ", \"more%d\": 7", k
    for (k = 2; k <= NF; k++) if ($k != "") printf ", \"%s\": %s", name[k], $k; print "}" }' test.csv >more.jsonl
"$tools/drps-predict" columns.model more.jsonl --format jsonl --label label --columns '*:number' -o more.txt --quiet
cmp -s columns.txt more.txt || fail "columns that the model does not know take the places of others"
{ sed -n 1p train.csv | sed 's/$/,kind/' && sed -n '2,$ s/$/,a/p' train.csv; } >kind.csv
index kind.csv --algo net --net net.txt --columns '*:number,kind:category' --scale none --batch-size 20 -o kind
! grep -q '"numbers"' < <("$tools/drps-stat" kind --json) || fail "a category is a number"
echo "ok columns"

# ---- Channels ----

# Three images of 12 x 12 in a row are the channels of one; labels are those of the first. Channels come first, or last.
images 300 3 >numbers.txt
sed -n 1,100p numbers.txt | cut -d ' ' -f 1 >labels.txt
for c in 0 1 2; do sed -n "$((100 * c + 1)),$((100 * c + 100))p" numbers.txt | cut -d ' ' -f 2- >channel-$c.txt; done
# shellcheck disable=SC2046
bytes 0 0 8 4 0 0 0 100 0 0 0 3 0 0 0 12 0 0 0 12 $(paste -d ' ' channel-0.txt channel-1.txt channel-2.txt) >first-images-idx4-ubyte
# shellcheck disable=SC2046
bytes 0 0 8 4 0 0 0 100 0 0 0 12 0 0 0 12 0 0 0 3 $(paste -d ' ' channel-0.txt channel-1.txt channel-2.txt |
    awk '{ for (k = 1; k <= 144; k++) printf "%d %d %d ", $k, $(k + 144), $(k + 288) }') >last-images-idx4-ubyte
# shellcheck disable=SC2046
bytes 0 0 8 1 0 0 0 100 $(cat labels.txt) | tee first-labels-idx1-ubyte >last-labels-idx1-ubyte
paste -d ' ' labels.txt channel-0.txt channel-1.txt channel-2.txt |
    awk '{ printf "%d", $1; for (k = 2; k <= NF; k++) if ($k) printf " %d:%d:%.17g", k - 2, k - 1, $k / 255; print "" }' >colours.ffm
sed 's/1 12 12/3 12 12/' net.txt >three.txt
sed 's/1 12 12/channels 12 12/' net.txt >any.txt
index first-images-idx4-ubyte --algo net --net three.txt --batch-size 20 -o first
index last-images-idx4-ubyte --algo net --net three.txt --batch-size 20 -o last
index colours.ffm --algo net --net three.txt --batch-size 20 -o colours
cmp first/data.rec last/data.rec || fail "channels first and last are other samples"
three=$(content first)
[[ -n $three && $(content last) = "$three" && $(content colours) = "$three" ]] || fail "three channels: other models"
for data in first-images-idx4-ubyte last-images-idx4-ubyte colours.ffm; do
    index $data --algo net --net any.txt --batch-size 20 -o any
    [[ $(content any) = "$three" ]] || fail "$data: channels that the data has give another model"
done
"$tools/drps-train" any -o any.model --epochs 4 --lr 0.03 --quiet
"$tools/drps-predict" any.model first-images-idx4-ubyte --format idx -o first.txt --quiet
"$tools/drps-predict" any.model last-images-idx4-ubyte --format idx -o last.txt --quiet
cmp -s first.txt last.txt || fail "channels first and last have other scores"
index train-images-idx3-ubyte --algo net --net any.txt --batch-size 20 --test test-images-idx3-ubyte -o one
[[ $(content one) = "$want" ]] || fail "one channel gives another model"
fails 1 'samples of 12 x 12 = 144 numbers, and the model reads those of 432' "$tools/drps-predict" any.model test-images-idx3-ubyte --format idx -o none
# AlexNet has as many channels as the data. More numbers than fields could have are no matter.
grouped() { sed ':a;s/\B[0-9]\{3\}\>/,&/;ta' <<<"$1"; }
for channels in 1 3; do
    { bytes 0 0 8 4 0 0 0 2 0 0 0 $channels 0 0 0 224 0 0 0 224 && head -c $((2 * channels * 224 * 224)) /dev/urandom; } >large-images-idx4-ubyte
    bytes 0 0 8 1 0 0 0 2 0 1 >large-labels-idx1-ubyte
    "$tools/drps-index" large-images-idx4-ubyte --algo alexnet -o large --force --no-forecast >large.txt 2>&1
    "$tools/drps-stat" large --verify >/dev/null || fail "the plan of AlexNet does not verify"
    # what the first layer has, and all others with one score
    want_net=$((1 + 96 * (121 * channels + 1) + 256 * 2401 + 384 * 2305 + 384 * 3457 + 256 * 3457 + 4096 * 9217 + 4096 * 4097 + 4097))
    grep -q "a net of $(grouped $want_net) parameters, over numbers of $(grouped $((channels * 50176))) fields" large.txt ||
        fail "AlexNet of $channels channels: $(cat large.txt)"
done
echo "ok channels"

# ---- Images that do not fit ----

refused() { # STATUS PATTERN INDEX-OPTIONS...
    fails "$1" "$2" "$tools/drps-index" "${@:3}" --algo net -o none
    absent none
}
sed 's/1 12 12/1 11 13/' net.txt >less.txt
refused 1 'train-images-idx3-ubyte: byte 8: samples of 12 x 12 numbers, and the net reads .image 1 11 13.; write' train-images-idx3-ubyte --net less.txt
sed 's/1 12 12/1 6 24/' net.txt >flat.txt # as many numbers
refused 1 'samples of 12 x 12 numbers, and the net reads .image 1 6 24.' train-images-idx3-ubyte --net flat.txt
sed 's/1 12 12/1 13 12/' net.txt >larger.txt
refused 2 'larger.txt: line 1: image 1 13 12 reads 156 numbers, and the data has 144 fields' train.csv --net larger.txt --columns '*:number'
refused 1 'small-images-idx3-ubyte: byte 8: samples of 2 x 2 numbers, and the net reads .image 1 12 12' train-images-idx3-ubyte \
    --test small-images-idx3-ubyte --net net.txt
fails 1 'samples of 2 x 2 numbers, and the net reads .image channels 12 12' "$tools/drps-predict" model small-images-idx3-ubyte -o none
refused 1 'small-images-idx3-ubyte: byte 8: samples of 2 x 2 = 4 numbers, and the model reads those of 144' train-images-idx3-ubyte \
    --test small-images-idx3-ubyte --net numbers.net
bytes 0 0 8 2 0 0 0 1 0 64 0 1 >large-images-idx2-ubyte
refused 1 'samples of 4194305 = 4194305 numbers, and there may be 4194304' large-images-idx2-ubyte --net numbers.net
echo "ok images that do not fit"
