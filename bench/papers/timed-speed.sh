# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this uses, and sets
# Seconds of an iteration of "Timed Dataflow" on seven hosts inside this machine (bench/namespaces.sh), with and without filters. Source
# it after timed.sh.
#
# The paper's workers compute for as long as 13.6 M clicks, or 4 M ratings, take, and have links of 1 Gbit/s; here batches are far
# smaller, and hosts share this machine's cores. So links are slower (`rate`, 100 Mbit/s): messages wait for them, not for
# processors. And computing is emulated (drps-train --emulate): a worker's batch takes so long that without filters, under BSP,
# communication and computation are in the paper's ratio. What links carry is real.
hosts=$ranks rate=${DRPS_BENCH_RATE:-100} memory=1024 # of bench/namespaces.sh, as is the next
burst=16kb            # less than a message: an idle link is no faster
epochs=$(quickly 1 3) # of 100 iterations, of AlexNet 20, whose parameters take long
. "$(dirname "${BASH_SOURCE[0]}")/../namespaces.sh"

# The paper's communication, to a second of computation: without TDF under BSP; with it under BSP and SSP8. And its speed-ups under
# BSP, SSP4 and SSP8. It has none for a second set of LR.
paper_ratios() { case $1 in clicks) echo 3.0 0.76 0.11 ;; ratings) echo 2.1 0.47 0.03 ;; alexnet) echo 8.1 2.79 0.15 ;; esac; }
timed_models=()
for model in "${models[@]}"; do [[ -z $(paper_ratios "$model") ]] || timed_models+=("$model"); done
models=("${timed_models[@]}")
paper_speedups() { # a line each
    case $1 in
    clicks) printf '%s\n' "2.27 ± 0.362" "2.71 ± 0.180" "3.22 ± 0.393" ;;
    ratings) printf '%s\n' "2.13 ± 0.727" "2.63 ± 0.531" "2.85 ± 0.511" ;;
    alexnet) printf '%s\n' "2.45 ± 0.461" "3.34 ± 0.277" "4.06 ± 0.637" ;;
    esac
}

# filters_of WHO SYNC: options of each way, as far as this build has them, a word a line. "theirs": the paper's, with the thresholds of
# its text; "ours": bench/filters.sh says what they save and lose.
filters_of() {
    local phi=3e-4 psi=1e-4 bits=16bit # a row of one value has no 8 bits
    case $model in
    ratings) phi=9.5e-3 psi=2e-4 bits=8bit ;;
    alexnet) phi=2.7e-2 bits=8bit ;;
    esac
    case $1 in
    theirs) printf '%s\n' --push-values 16bit --push-filter "d=0.1,phi=$(per_batch $phi)" ;;
    ours) printf '%s\n' --push-values 8bit --push-top 5% ;;
    esac
    if [[ $2 != bsp ]]; then
        ! known drps-train --pull-cached || printf '%s\n' --pull-values 16bit --pull-cached
    elif known drps-train --pull-filter; then
        case $1 in
        theirs) printf '%s\n' --pull-values 16bit --pull-filter "d=0.1,eps=1e-6,psi=$psi" ;;
        ours) printf '%s\n' --pull-values $bits --pull-filter d=0.1,psi=1e-2 ;;
        esac
    fi
}

# seconds SYNC SECONDS OPTIONS...: of an iteration, the median epoch's; computing takes SECONDS at least. Fails where this build
# has not the options, or not under SYNC.
seconds() {
    local r status failed="" refused="" how rates
    mapfile -t how < <(how_of "$1")
    mapfile -t rates < <(rate_of "$model" "$1")
    [[ $1 = bsp ]] || rates[-1]=$(awk "BEGIN { print ${rates[-1]} / 4 }") # where a worker is late by chance, training must not diverge
    pids=()
    for ((r = 0; r < hosts; r++)); do
        timeout 600 bash -c "$join_cgroup" "${groups[r]}" nsenter --net="/run/netns/$space-$r" "$tools/drps-train" "$work/$model.plan" \
            -o "$work/host-$r/model" --force --insecure --peers "$work/peers-insecure" --rank "$r" --store resident \
            "${rates[@]}" --epochs "$epochs" --emulate "homogeneous:$2" "${how[@]}" "${@:3}" --timeout 60 --quiet --json \
            >"$work/out-$r" 2>"$work/err-$r" &
        pids+=($!)
    done
    for ((r = 0; r < hosts; r++)); do
        status=0
        wait "${pids[r]}" || status=$?
        case $status in
        0) ;;
        2) refused=$r ;; # others then end with 1
        *) failed=$r ;;
        esac
    done
    pids=()
    [[ -z $refused ]] || return 1
    [[ -z $failed ]] || fail "$model, $1: rank $failed: $(cat "$work/err-$failed")"
    jq .epochs[].seconds "$work/out-0" | median | awk -v n="$iterations" '{ print $1 / n }'
}

# speed_plan MODEL: its plan, and in `computing` the seconds that a batch is to take
speed_plan() {
    local ratio
    model=$1 iterations=100
    [[ $model != alexnet ]] || iterations=20
    timed_plan "$model"
    read -r ratio _ < <(paper_ratios "$model")
    computing=$(seconds bsp 0.000001 --no-overlap | awk -v ratio="$ratio" '{ print $1 / ratio }')
}
