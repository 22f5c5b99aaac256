#!/usr/bin/env bash
# Training on a device, which the processor plays here: linear models, factorization machines (field-aware, too), matrix factorization
# and nets learn as they do on the processor, the same bytes in each run, over checkpoints too, and with less memory of the device than
# the rows take; what a device cannot is refused; `auto` takes none that is emulated.
. "$(dirname "$0")/lib.sh"

library=$tools/../tests/drps-emulated-device.so
[[ -e $library ]] || skip "no emulated device: this build has no compiler for C++"
index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --json; }
on_device() { train "$@" --device cuda --device-library "$library"; }

"$tools/drps-gen" ctr --samples 1500 --rows 2000 --fields 9 --interactions 2 -o clicks.svm --quiet
"$tools/drps-gen" matrix --ratings 2000 --users 200 --items 60 -o ratings.txt --quiet

# alike PLAN OPTIONS...: the device comes to the same losses, to four digits, and to the same bytes in each run.
alike() {
    local plan=$1 device
    shift
    train "$plan" "$@" -o cpu.model >cpu.json
    on_device "$plan" "$@" -o device.model >device.json
    near "$(all_values train_loss <device.json)" "$(all_values train_loss <cpu.json)" 1e-4 ||
        fail "$plan $*: losses $(all_values train_loss <device.json | xargs) are not $(all_values train_loss <cpu.json | xargs)"
    near "$(all_values test_loss <device.json)" "$(all_values test_loss <cpu.json)" 1e-4 || fail "$plan $*: test losses differ"
    device=$(value content <device.json)
    [[ $(on_device "$plan" "$@" -o again.model | value content) = "$device" ]] || fail "$plan $*: another run has other bytes"
    [[ $(value device_emulated <device.json) = true ]] || fail "the run does not say that the device is emulated"
    "$tools/drps-stat" device.model --verify >/dev/null || fail "$plan $*: the model does not verify"
}

# enough PLAN: a device that has what the run says that it needs, and little more, can do it; one that has less is refused.
enough() {
    local need
    need=$({ "$tools/drps-train" "$1" -o none --device cuda --device-library "$library" --device-memory 1K 2>&1 || true; } |
        sed -n 's/.*the device has 1.0 KiB of memory for the run, which needs \([0-9.]*\) KiB at least.*/\1/p')
    [[ -n $need ]] || fail "$1: no word of what the run needs of the device"
    need=$(awk -v k="$need" 'BEGIN { printf "%d", (k + 0.1) * 1024 }')
    DRPS_EMULATED_MEMORY=$need on_device "$1" --epochs 1 --no-keep --device-memory "$need" -o enough.model >/dev/null ||
        fail "$1: the run says that it needs $need bytes, and cannot do with them"
}

# shellcheck disable=SC2046 # an option and its value
for algo in lor fm; do
    index clicks.svm --algo $algo --batch-size 100 --test-fraction 0.1 -o $algo.plan $([[ $algo = lor ]] || echo --factors 8)
done
"$tools/drps-gen" ctr --samples 300 --rows 200 --fields 7 --format libffm -o fields.ffm --quiet
index fields.ffm --algo ffm --factors 3 --batch-size 50 --test-fraction 0.1 -o ffm.plan
index ratings.txt --algo lmf --factors 5 --batch-size 100 --test-fraction 0.1 -o lmf.plan
alike lor.plan --epochs 2
alike lor.plan --epochs 2 --optimizer ftrl --l1 0.1 --l2 0.1
alike lor.plan --epochs 2 --optimizer sgd --l2 0.01 --batch-mean --lr 1 --lr-decay sqrt
alike fm.plan --epochs 2
alike fm.plan --epochs 2 --optimizer adam --l1 0.001 --l2 0.001
alike lmf.plan --epochs 2
alike ffm.plan --epochs 2
alike ffm.plan --epochs 2 --optimizer adam

# ---- Nets: all layers that a device has, some of them twice the input of one; classes; dropout ----

cat >all.net <<'END'
x = embedding 4
w = linear
g = bag 4
p = fm x
d = dots x x
h = join x g
h = full 6 h
r = relu h
s = sigmoid h
t = tanh r
q = sum s t t
c = cross q q
e = join c d
k = full 1 e
score = sum w p k
END
index fields.ffm --algo net --net all.net --batch-size 50 --test-fraction 0.1 -o net.plan
alike net.plan --epochs 2 --l2 0.001
alike net.plan --epochs 2 --optimizer adam
awk 'BEGIN {srand(3); split("ash beech elm", name, " "); for (i = 0; i < 300; i++) {
    c = int(rand() * 3) + 1; printf "%s", name[c]; for (f = 0; f < 4; f++) printf " %d:1:%.2f", f, rand() + (f == c); printf "\n"}}' >trees.ffm
printf 'x = numbers 4\nh = full 5 x\nh = tanh h\nscore = full classes h\n' >classes.net
index trees.ffm --algo net --net classes.net --batch-size 50 --test-fraction 0.1 -o classes.plan
alike classes.plan --epochs 2
printf 'x = image 2 1 2\nh = full 4 x\nh = relu h\nscore = full classes h\n' >pixels.net
index trees.ffm --algo net --net pixels.net --batch-size 50 --test-fraction 0.1 -o pixels.plan
alike pixels.plan --epochs 2
printf 'x = embedding 2\nn = numbers 3\nh = join x n\nscore = full classes h\n' >mixed.net
index trees.ffm --algo net --net mixed.net --batch-size 50 --test-fraction 0.1 -o mixed.plan
alike mixed.plan --epochs 2
printf 'x = embedding 4\nh = full 8 x\nh = dropout 0.5 h\nscore = full 1 h\n' >dropout.net
index fields.ffm --algo net --net dropout.net --batch-size 50 -o dropout.plan
content=$(on_device dropout.plan --epochs 2 -o one.model | value content)
[[ $(on_device dropout.plan --epochs 2 -o two.model | value content) = "$content" ]] || fail "dropout: another run has other bytes"
for i in 1 2 3 4 5 6 7 8 9; do echo "l$i = linear"; done >nine.net
printf 's = sum l1 l2 l3 l4 l5 l6 l7 l8\nscore = sum s l9\n' >>nine.net
index fields.ffm --algo net --net nine.net --batch-size 50 -o nine.plan
fails 2 '9 layers read features, and the device trains nets of at most 8' "$tools/drps-train" nine.plan -o none --device cuda --device-library "$library"

# ---- Sequences: tokens of which every second one is the one before it ----

awk 'BEGIN { srand(5); for (i = 0; i < 80; i++) { for (k = 0; k < 2 + int(rand() * 5); k++) { w = "w" int(rand() * 7); printf "%s %s ", w, w }; print "" } }' >text.txt
printf 'x = bag 6\ng = lstm 8 x\nh = lstm 5 g\nscore = full classes h\n' >lstm.net
index text.txt --algo net --net lstm.net --format tokens --sequence lines --test-fraction 0.1 --batch-size 60 -o lines.plan
alike lines.plan --epochs 2
index text.txt --algo net --net lstm.net --format tokens --sequence 10 --test-fraction 0.1 --batch-size 50 -o tens.plan
alike tens.plan --epochs 2 --optimizer adam
enough lines.plan

# ---- Images, whose numbers are known by their place: a net like LeNet ----

bytes() { printf '%b' "$(printf '\\x%02x' "$@")"; }
# images NAME SAMPLES SEED: 10 x 10 pixels; of label 0 a bar stands in noise, of 1 one lies, of 2 two cross
images() {
    awk -v n="$2" -v seed="$3" 'BEGIN { srand(seed); for (s = 0; s < n; s++) {
        label = s % 3; a = 1 + int(rand() * 8); b = 1 + int(rand() * 8); printf "%d", label
        for (y = 0; y < 10; y++) for (x = 0; x < 10; x++)
            printf " %d", (label != 1 && x == a) || (label && y == b) ? 150 + int(rand() * 100) : rand() < 0.2 ? int(rand() * 100) : 0
        print "" } }' >numbers.txt
    # shellcheck disable=SC2046 # numbers
    bytes 0 0 8 3 0 0 0 "$2" 0 0 0 10 0 0 0 10 $(cut -d ' ' -f 2- numbers.txt) >"$1-images-idx3-ubyte"
    # shellcheck disable=SC2046
    bytes 0 0 8 1 0 0 0 "$2" $(cut -d ' ' -f 1 numbers.txt) >"$1-labels-idx1-ubyte"
}
images train 120 1
images test 45 2
cat >bars.net <<'END'
x = image 1 10 10
h = conv 6 3 1 1 x
h = relu h
h = pool 2 2 h
h = conv 8 3 1 0 h
h = relu h
h = pool 2 1 h
h = full 12 h
h = relu h
score = full classes h
END
index train-images-idx3-ubyte --test test-images-idx3-ubyte --algo net --net bars.net --batch-size 20 -o bars.plan
alike bars.plan --epochs 2
alike bars.plan --epochs 2 --optimizer adam --no-keep
enough bars.plan

# ---- Checkpoints: a run that goes on has the bytes of one that was not stopped, and may change to the processor ----

content=$(on_device fm.plan --epochs 3 -o whole.model | value content)
on_device fm.plan --epochs 1 --checkpoint-every 3b --keep-checkpoints -o part.model >/dev/null
[[ $(on_device fm.plan --epochs 3 --resume -o part.model | value content) = "$content" ]] || fail "resumed: other bytes"
on_device fm.plan --epochs 1 --keep-checkpoints -o other.model >/dev/null
near "$(train fm.plan --epochs 3 --resume -o other.model | all_values train_loss | tail -1)" \
    "$(train fm.plan --epochs 3 -o cpu.model | all_values train_loss | tail -1)" 1e-4 || fail "resumed by the processor: another loss"
[[ $(on_device fm.plan --epochs 3 --no-keep -o whole.model | value content) = "$content" ]] || fail "--no-keep: other bytes"

# ---- Rows that do not fit the memory of the device come and go: the model is the same to the last bit ----

"$tools/drps-gen" ctr --samples 1200 --rows 60000 --zipf 0.8 --fields 9 --interactions 2 -o wide.svm --quiet
index wide.svm --algo fm --factors 8 --batch-size 40 --test-fraction 0.1 -o wide.plan
content=$(on_device wide.plan --epochs 2 -o whole.model | value content)
for memory in 190K 240K; do
    on_device wide.plan --epochs 2 --device-memory $memory -o tiered.model >tiered.json
    [[ $(value store <tiered.json) = tiered ]] || fail "--device-memory $memory: store $(value store <tiered.json)"
    [[ $(value content <tiered.json) = "$content" ]] || fail "--device-memory $memory: other bytes"
    "$tools/drps-stat" tiered.model >stat.txt
    grep -qE '^  [1-9][0-9.]* [KM]iB moved there, [1-9][0-9.]* [KM]iB back, in [1-9][0-9]* windows; training waited for rows [0-9.]+ % of the time$' stat.txt ||
        fail "drps-stat does not say what moved: $(cat stat.txt)"
done
"$tools/drps-train" wide.plan --epochs 1 --device cuda --device-library "$library" --device-memory 190K --checkpoint-every 11b --keep-checkpoints \
    -o part.model --force --quiet
[[ $(on_device wide.plan --epochs 2 --resume --device-memory 190K -o part.model | value content) = "$content" ]] || fail "tiers, resumed: other bytes"
"$tools/drps-train" wide.plan --force --device cuda --device-library "$library" --device-memory 190K -o told.model >out.txt 2>err.txt
grep -qE 'moved     in [0-9]+ windows .* of rows to the device' out.txt || fail "the report: $(cat out.txt)"
"$tools/drps-stat" whole.model >stat.txt
! grep -q '^device: ' stat.txt || fail "drps-stat says that rows moved that were all on the device"

# ---- What is told and refused ----

cuda() { fails "$1" "$2" "$tools/drps-train" "${@:3}" -o none --device cuda --device-library "$library"; }
cuda 2 'a device does not go with several threads' fm.plan --threads 2
cuda 2 'a device does not go with a store of blocks' fm.plan --store rocksdb
cuda 2 "'foo' is not one of: auto, resident, relay" fm.plan --store foo
cuda 2 'a device does not go with local steps' fm.plan --local-steps
cuda 2 'no kernels for optimizer lbfgs' lor.plan --optimizer lbfgs
cuda 1 'the device has 100.0 KiB of memory for the run, which needs' fm.plan --device-memory 100K
fails 1 'kernels cannot be loaded: .*none.so' "$tools/drps-train" fm.plan -o none --device cuda --device-library ./none.so
fails 2 "'gpu' is not one of: cpu, cuda, auto" "$tools/drps-train" fm.plan -o none --device gpu
absent none
plain=$(train fm.plan -o cpu.model | value content)
"$tools/drps-train" fm.plan -o auto.model --force --device auto --device-library "$library" >out.txt 2>err.txt
grep -q 'the processor computes, and no device: the device is an emulated one' err.txt || fail "auto: $(cat err.txt)"
grep -q "content   $plain" out.txt || fail "auto took the emulated device"
# A device that passes for a real one is taken, unless it cannot do what the run asks for: then nothing of it is left.
export DRPS_TEST_EMULATED_DEVICE=$library
passed_off() { train "$@" -o auto.model --device auto --device-library "$tools/../tests/drps-passed-off-device.so" 2>err.txt; }
[[ $(passed_off fm.plan | value device_name) = "an emulated device" ]] || fail "auto takes no device: $(cat err.txt)"
passed_off fm.plan --device-memory 100K >train.json || fail "auto with too little memory of the device: $(cat err.txt)"
[[ $(value content <train.json) = "$plain" ]] || fail "auto computed on a device with too little memory"
grep -q "\"device_name\": null" train.json || fail "a device that did not compute is named: $(cat train.json)"
passed_off lor.plan --optimizer lbfgs >train.json || fail "auto with lbfgs: $(cat err.txt)"
grep -q "\"device_name\": null" train.json || fail "a device that did not compute is named: $(cat train.json)"
# Without cuBLAS a device cannot train nets: `auto` sees it before it begins.
export DRPS_EMULATED_CUBLAS=none
cuda 2 'nets need cuBLAS: the emulated device has none' bars.plan
"$tools/drps-train" bars.plan --epochs 1 -o auto.model --force --device auto --device-library "$tools/../tests/drps-passed-off-device.so" >out.txt 2>err.txt ||
    fail "auto of a net without cuBLAS: $(cat err.txt)"
grep -q 'the processor computes, and no device: .*nets need cuBLAS' err.txt || fail "auto does not say why: $(cat err.txt)"
[[ $(passed_off fm.plan | value device_name) = "an emulated device" ]] || fail "auto takes no device that lacks cuBLAS alone: $(cat err.txt)"
unset DRPS_EMULATED_CUBLAS
fails 2 'libm.so.6 has no kernels for drps' "$tools/drps-train" fm.plan -o none --device cuda --device-library libm.so.6
"$tools/drps-train" fm.plan -o told.model --force --device cuda --device-library "$library" >out.txt 2>err.txt
grep -q 'an emulated device computes: an emulation for tests' err.txt || fail "the device is not told: $(cat err.txt)"
grep -q 'device    an emulated device: emulated, for tests, by the processor' out.txt || fail "the report: $(cat out.txt)"
