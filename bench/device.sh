#!/usr/bin/env bash
# Training on a GPU, in less than ten minutes: what share of its memory's bandwidth each kernel reaches, the speed of training beside
# the processor's, and that of a model of 8 times the device's memory beside the same with all rows there. Exit status 77: no device.
# Tables: model, kernel, calls, microseconds, MB that must move, GB/s, share of the bandwidth (bench_device); model, what computes,
# samples a second of the epochs after the first, median; loss of the last epoch; model, share of the rows that the device has room for,
# samples a second, of all rows there, share of the time that training waited, MB to the device and back in all; the same with room for an
# eighth of the rows there and a part of them in memory, with MB read from disk and written there.
# DRPS_BENCH_SAMPLES (default 4M; 1M of nets, DRPS_BENCH_NET_SAMPLES), DRPS_BENCH_BATCH (default 16384), DRPS_BENCH_DATA (real sets, default ../shared/data;
# LeNet is left out where MNIST is missing), DRPS_BENCH_IMAGES (of MNIST, default 10000), DRPS_BENCH_KERNEL_SIZE (what bench_device takes behind its library),
# DRPS_DEVICE_LIBRARY: the kernels, another file than that installed.
#   bench/device.sh [EPOCHS]
. "$(dirname "$0")/lib.sh"
epochs=${1:-4}
batch=${DRPS_BENCH_BATCH:-16384}
library=(${DRPS_DEVICE_LIBRARY:+--device-library "$DRPS_DEVICE_LIBRARY"})
samples='[.epochs[1:][].samples_per_s] | sort | .[length / 2 | floor] | round'

status=0
# shellcheck disable=SC2086 # several numbers
"$tools/bench_device" "${DRPS_DEVICE_LIBRARY:-}" ${DRPS_BENCH_KERNEL_SIZE:-} >"$work/kernels.csv" || status=$?
[[ $status = 0 ]] || exit $status
cat "$work/kernels.csv"
while IFS=, read -r model kernel _ us _ speed share; do
    [[ $model = model ]] || record "device|$model, $kernel|microseconds, GB/s, share of the bandwidth" "$us, $speed, $share"
done <"$work/kernels.csv"

train() { # NAME PLAN OPTIONS...: $work/NAME.json
    local name=$1 plan=$2
    shift 2
    "$tools/drps-train" "$plan" -o "$work/model" --force --epochs "$epochs" --checkpoint-every never --quiet --json "$@" >"$work/$name.json"
}

echo "model,what,samples_per_s,train_loss"
text=$(ctr_text) fields=$work/fields.ffm digits=$work/digits mnist=${DRPS_BENCH_DATA:-$root/../shared/data}/mnist/train
[[ -e $fields ]] || "$tools/drps-gen" ctr --format libffm --samples "${DRPS_BENCH_NET_SAMPLES:-1M}" --fields 39 --rows 1M --seed 1 -o "$fields" --quiet
models=( # name | data | options of drps-index | of drps-train
    "lor|$text|--algo lor --batch-size $batch"
    "fm 8|$text|--algo fm --factors 8 --batch-size $batch"
    "fm 8 adam|$text|--algo fm --factors 8 --batch-size $batch|--optimizer adam"
    "deepfm 16|$fields|--algo deepfm --factors 16 --batch-size $batch"
)
if [[ -e $mnist-images-idx3-ubyte.xz ]]; then
    "$root/bench/images.py" enlarge 1 "${DRPS_BENCH_IMAGES:-10000}" "$mnist-images-idx3-ubyte.xz" "$mnist-labels-idx1-ubyte.xz" "$digits"
    models+=("lenet|$digits-images-idx3-ubyte|--algo lenet --batch-size 100")
else
    echo "bench: there is no $mnist-images-idx3-ubyte.xz: lenet is left out" >&2
fi
models+=("fm 16|$text|--algo fm --factors 16 --batch-size $batch") # the last: it is trained again below
for case in "${models[@]}"; do
    IFS='|' read -r model input compile learn <<<"$case"
    plan=$work/device-$(tr -cs 'a-z0-9\n' - <<<"$compile")
    # shellcheck disable=SC2086 # options
    [[ -e $plan ]] || "$tools/drps-index" "$input" $compile -o "$plan" --quiet >/dev/null
    for what in cpu "cpu, $(nproc) threads" cuda; do
        # shellcheck disable=SC2206 # options
        options=(--device "${what%%,*}" $learn)
        [[ $what != *threads ]] || options+=(--threads "$(nproc)")
        [[ $what != cuda ]] || options+=("${library[@]}")
        train run "$plan" "${options[@]}"
        speed=$(jq "$samples" "$work/run.json")
        echo "$model,$what,$speed,$(jq '.epochs[-1].train_loss' "$work/run.json")"
        record "device|$model|samples a second, $what" "$speed"
        [[ $what != cuda ]] || all=$speed content=$(jq -r .content "$work/run.json")
    done
done

# needs OPTIONS...: the bytes that a run with too little memory says it needs
needs() {
    { train none "$plan" --device cuda "${library[@]}" "$@" 2>&1 || true; } | sed -nE 's/.*(needs|at least) ([0-9.]+) ([KMG])iB (at least|is needed).*/\2 \3/p' |
        awk '{split("K 1024 M 1048576 G 1073741824", f); m = $2 == "K" ? f[2] : $2 == "M" ? f[4] : f[6]; printf "%d", $1 * m}'
}

# The last model again, with room for a part of its rows. What a run takes beside rows, one with too little memory says.
least=$(needs --device-memory 1K)
rows=$(jq '.rows * .row_bytes' "$work/run.json")
echo "model,share,samples_per_s,of_all_rows_there,waited,MB_in,MB_out"
for share in 8 4 2; do
    train tiers "$plan" --device cuda "${library[@]}" --device-memory $((least + rows / share))
    [[ $(jq -r .content "$work/tiers.json") = "$content" ]] || { echo "bench: with less memory of the device the model differs" >&2; exit 1; }
    line=$(jq -r "($samples) as \$speed | [.tiers.bytes / $rows, \$speed, \$speed / $all, .tiers.waited_share, .tiers.in_bytes / 1e6, .tiers.out_bytes / 1e6] | map(. * 100 | round / 100) | map(tostring) | join(\",\")" "$work/tiers.json")
    echo "$model,$line"
    record "device|$model, room for 1 of $share|share, samples a second, of all rows there, waited, MB in, MB out" "$line"
done

device=$((least + rows / 8)) memory=$(needs --device-memory $((least + rows / 8)) --store relay --memory 1M)
echo "model,share_in_memory,samples_per_s,of_all_rows_there,waited,MB_in,MB_out,MB_read,MB_written"
for share in 4 2; do
    train disk "$plan" --device cuda "${library[@]}" --device-memory $device --store relay --memory $((memory + rows / share))
    [[ $(jq -r .content "$work/disk.json") = "$content" ]] || { echo "bench: with rows on disk the model differs" >&2; exit 1; }
    line=$(jq -r "($samples) as \$speed | [.tiers.memory_bytes / $rows, \$speed, \$speed / $all, .tiers.waited_share, .tiers.in_bytes / 1e6, .tiers.out_bytes / 1e6, .io.read_bytes / 1e6, .io.written_bytes / 1e6] | map(. * 100 | round / 100) | map(tostring) | join(\",\")" "$work/disk.json")
    echo "$model,$line"
    record "device|$model, room for 1 of 8 there and 1 of $share in memory|share in memory, samples a second, of all rows there, waited, MB in, MB out, MB read, MB written" "$line"
done
