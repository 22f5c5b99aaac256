#!/usr/bin/env bash
# drps and what users would pick instead, side by side on the same data: alternating runs, medians, and the ratio of each
# pair of runs. Absolute figures hold for the machine only; claim ratios.
#   bench/peers.sh --peers DIR [--data DATA] [--only CASES] [RUNS]
# DIR   folder with the peers' programs; what is missing there is listed and skipped: vw (Vowpal Wabbit), xlearn_train,
#       liblinear-train with liblinear-predict, difacto, mf-train (LIBMF), ffm-train (libffm, out of core only)
# DATA  folder with real data sets: ml-1m/ratings.tsv.xz is used
# CASES some of "lr text fm lmf load ml1m ooc" (default: all); RUNS of each (default 3)
# Environment, besides lib.sh's: DRPS_BENCH_SAMPLES (default 2000000) and DRPS_BENCH_RATINGS (default 10000000), of which a
# tenth is held out; DRPS_BENCH_LIMIT, seconds that a run out of core may take (default 600; peers: a fifth of it).
# Needs GNU time; `ooc` needs root and a memory cgroup.
export LC_ALL=C
peers='' data='' only='lr text fm lmf load ml1m ooc' runs=3
while (($#)); do
    case $1 in
    --peers) peers=$(realpath "$2") && shift 2 ;;
    --data) data=$(realpath "$2") && shift 2 ;;
    --only) only=$2 && shift 2 ;;
    [1-9]*) runs=$1 && shift ;;
    *)
        sed -n '2,/^export/{/^#/p}' "$0" >&2
        exit 2
        ;;
    esac
done
[[ -d $peers ]] || { echo "bench: --peers DIR: the folder with the peers' programs" >&2; exit 2; }
. "$(dirname "$0")/lib.sh"
tools=$(realpath "$tools")
clock=$(type -P time) || { echo "bench: install time (GNU)" >&2; exit 1; }
export USER=${USER:-bench} # xLearn crashes without
samples=${DRPS_BENCH_SAMPLES:-2000000}
ratings=${DRPS_BENCH_RATINGS:-10000000}
limit_s=${DRPS_BENCH_LIMIT:-600}
cd "${work:?}" || exit

# Settings: the peers' are those their users would begin with, drps's are its own usual ones.
lr_options=(--lr 0.07 --eps 1) # xlearn's accumulators start at 1, too
fm_options=(--lr 0.03)
lmf_options=(--lr 0.05 --l2 0.05)
xlearn_lr=(-s 0 -r 0.1)
xlearn_fm=(-s 1 -k 8 -r 0.05)

# --- Running and printing ---

wants() { [[ " $only " = *" $1 "* ]]; }
has() { [[ -x $peers/$1 ]]; }
calc() { awk "BEGIN {printf \"%.6g\", $*}"; }
max() { (($1 > $2)) && echo "$1" || echo "$2"; }

# on CORES: 1 pins what follows to one core
around=()
on() { if [[ $1 = 1 ]]; then around=(taskset -c 0); else around=(); fi; }

# timed LOG COMMAND...: standard output to LOG, errors to LOG.err; sets wall (s), rss (MiB), shown (the command) and log
timed() {
    local from status=0
    log=$1
    shift
    shown=${*//"$work/"/}
    shown=${shown//"$peers/"/}
    shown=${shown//"$tools/"/}
    rm -f rss
    from=$EPOCHREALTIME
    "${around[@]}" "$clock" -f %M -o "$work/rss" "$@" >"$log" 2>"$log.err" </dev/null || status=$?
    wall=$(calc "$EPOCHREALTIME - $from")
    rss=$(tail -n 1 rss 2>/dev/null || true)
    if [[ $rss =~ ^[0-9]+$ ]]; then rss=$((rss / 1024)); else rss=-; fi
    return $status
}

# line NAME SECONDS WORK UNIT MEMORY LOSS COMMAND
line() {
    local loss=$6
    [[ $loss = - ]] || loss=$(printf %.4f "$loss")
    printf '  %-10s %10.3f s %9.2f M %s/s %7s MiB   loss %-8s  %s\n' "$1" "$2" "$(calc "$3 / $2 / 1e6")" "$4" "$5" "$loss" "$7"
}

# compare TITLE BAR WORK UNIT PEER "PEER-FUNCTION ARGUMENTS" "DRPS-FUNCTION ARGUMENTS": each function sets seconds, memory,
# loss and command. BAR is the least ratio of seconds wanted, or -.
compare() {
    local title=$1 bar=$2 work_units=$3 unit=$4 peer=$5 peer_run=$6 drps_run=$7 i
    local p_command d_command p_loss d_loss p_memory d_memory ratio verdict p d
    rm -f p.s d.s ratios
    echo
    echo "$title"
    for ((i = 0; i < runs; i++)); do
        if ! $peer_run; then
            echo "  $peer: failed: $(tail -n 1 "$log.err")"
            return 0
        fi
        p=$seconds p_memory=$memory p_loss=$loss p_command=$command
        if ! $drps_run; then
            line "$peer" "$p" "$work_units" "$unit" "$p_memory" "$p_loss" "$p_command"
            echo "  drps: failed: ${failure:-$(tail -n 1 "$log.err")}"
            return 0
        fi
        d=$seconds d_memory=$memory d_loss=$loss d_command=$command
        echo "$p" >>p.s
        echo "$d" >>d.s
        calc "$p / $d" >>ratios
        echo >>ratios
    done
    p=$(median <p.s) d=$(median <d.s) ratio=$(median <ratios)
    last_drps=$d
    line "$peer" "$p" "$work_units" "$unit" "$p_memory" "$p_loss" "$p_command"
    line drps "$d" "$work_units" "$unit" "$d_memory" "$d_loss" "$d_command"
    record "peers|$peer: $title|peer" "$(printf %.4g "$p")" s
    record "peers|$peer: $title|drps" "$(printf %.4g "$d")" s
    record "peers|$peer: $title|drps is faster" "$(awk "BEGIN {printf \"%.2f\", $ratio}")" times
    [[ $p_loss = - || $d_loss = - ]] || record "peers|$peer: $title|loss: drps minus peer" "$(awk "BEGIN {printf \"%+.4f\", $d_loss - $p_loss}")"
    verdict="no bar"
    if [[ $bar != - ]]; then
        verdict="bar $bar: $(awk "BEGIN {print ($ratio >= $bar) ? \"reached\" : \"MISSED\"}")"
    fi
    if [[ $p_loss != - && $d_loss != - ]]; then
        verdict+="; loss $(awk "BEGIN {printf \"%+.4f\", $d_loss - $p_loss; if ($d_loss > $p_loss + 0.001) printf \" WORSE\"}")"
    fi
    printf '  drps is %.2f times as fast (%.2f to %.2f); %s\n' "$ratio" "$(sort -n ratios | head -n 1)" \
        "$(sort -n ratios | tail -n 1)" "$verdict"
}

# --- drps ---

drps_index() { # OUT ALGO OPTIONS... : plan-OUT of a.* or b.*
    local out=$1 algo=$2 set=a batch=(--batch-size 1000)
    shift 2
    [[ $algo != lmf ]] || set=b batch=() # the default, of 100 ratings
    timed drps.log "$tools/drps-index" "$set.train" --test "$set.test" --algo "$algo" "${batch[@]}" "$@" -o "plan-$out" \
        --force --quiet
}

drps_train() { # PLAN CORES EPOCHS OPTIONS...
    local plan=$1 cores=$2 epochs=$3
    shift 3
    timed drps.log "$tools/drps-train" "plan-$plan" -o model --force --epochs "$epochs" --threads "$cores" "$@" --quiet --json
}

drps_index_time() { # CORES OUT ALGO OPTIONS...
    on "$1"
    shift
    drps_index "$@" || return
    seconds=$wall memory=$rss loss=- command=$shown
}

drps_epoch() { # CORES PLAN EPOCHS OPTIONS...: its own clock; the epochs after the first count
    local cores=$1 plan=$2 epochs=$3
    shift 3
    on "$cores"
    drps_train "$plan" "$cores" "$epochs" "$@" || return
    seconds=$(jq '.epochs[(if length > 1 then 1 else 0 end):][].seconds' drps.log | median)
    memory=$rss command=$shown
    loss=$(jq '[.epochs[] | .test_rmse // .test_loss] | min' drps.log)
}

drps_text() { # CORES EPOCHS: the one command from text to model
    on "$1"
    rm -rf model.plan # would be used again
    timed drps.log "$tools/drps-train" a.train --test a.test --algo lor --batch-size 1000 -o model --force --epochs "$2" \
        --threads "$1" "${lr_options[@]}" --quiet --json || return
    memory=$rss command=$shown
}

drps_to_target() { # CORES PLAN EPOCHS OPTIONS...: the time of its epochs until its RMSE is the target
    drps_epoch "$@" || return
    seconds=$(jq --argjson target "$target" '[.epochs[].test_rmse] | map(. <= $target) | index(true)' drps.log)
    failure="best RMSE $loss of $3 epochs, wanted $target"
    [[ $seconds != null ]] || return
    loss=$(jq ".epochs[$seconds].test_rmse" drps.log)
    seconds=$(jq "[.epochs[:$seconds + 1][].seconds] | add" drps.log)
}

drps_from_text() { # CORES: text to model, one epoch
    drps_text "$1" 1 || return
    seconds=$wall loss=$(jq '.epochs[0].test_loss' drps.log)
}

drps_to_loss() { # CORES: text to a loss within 0.002 of LIBLINEAR's
    local target later
    target=$(calc "$loss + 0.002") # of the peer's run just before
    drps_text "$1" 8 || return
    failure=''
    later=$(jq --argjson target "$target" '(.epochs | map(.test_loss <= $target) | index(true)) as $i |
        if $i == null then null else ([.epochs[$i + 1:][].seconds] | add // 0) end' drps.log)
    if [[ $later = null ]]; then
        failure="best loss $(jq '[.epochs[].test_loss] | min' drps.log) of 8 epochs, wanted $target"
        return 1
    fi
    seconds=$(calc "$wall - $later")
    loss=$(jq --argjson target "$target" '[.epochs[].test_loss | select(. <= $target)][0]' drps.log)
}

# --- Peers ---

vw=$peers/vw
vw_loss() { "$vw" -t -i "$1" --loss_function logistic -d a.test.vw 2>&1 | awk '/^average loss/ {print $4}'; }

vw_text() { # CORES
    on "$1"
    timed vw.log "$vw" -d a.train.vw --loss_function logistic -b 23 -f vw.model || return
    seconds=$wall memory=$rss command=$shown loss=$(vw_loss vw.model)
}

vw_cache() { # CORES: the difference between one pass and three; the loss is that after one
    local one
    on "$1"
    [[ -e a.vwc ]] || timed vw.log "$vw" -d a.train.vw --loss_function logistic -b 23 --cache_file a.vwc -k || return
    timed vw.log "$vw" -d a.train.vw --loss_function logistic -b 23 --cache_file a.vwc --holdout_off -f vw.model || return
    one=$wall
    timed vw.log "$vw" -d a.train.vw --loss_function logistic -b 23 --cache_file a.vwc --holdout_off --passes 3 || return
    seconds=$(calc "($wall - $one) / 2") memory=$rss command=$shown loss=$(vw_loss vw.model)
}

xlearn() { # CORES EPOCHS OPTIONS...
    local cores=$1 epochs=$2
    shift 2
    on "$cores"
    timed xlearn.log "$peers/xlearn_train" a.train "$@" -e "$epochs" --dis-es -nthread "$cores" -v a.test -m xlearn.model \
        -l xlearn-log || return
    sed -i 's/\x1b\[[0-9;]*m//g' xlearn.log
    memory=$rss command=$shown
}

xlearn_epoch() { # as xlearn; its own clock; the epochs after the first count
    local table
    xlearn "$@" || return
    table=$(awk '/%/ && NF >= 6 {sub(/.*\]/, ""); print $3, $NF}' xlearn.log)
    seconds=$(awk 'NR > 1 {print $2}' <<<"$table" | median)
    loss=$(awk '{print $1}' <<<"$table" | sort -n | head -n 1)
}

xlearn_text() { # CORES: text to its binary files, its own clock
    rm -f a.train.bin a.test.bin
    xlearn "$1" 1 "${xlearn_lr[@]}" || return
    seconds=$(awk '/reading problem:/ {print $(NF - 1)}' xlearn.log) loss=-
}

liblinear() { # CORES
    on "$1"
    timed liblinear.log "$peers/liblinear-train" -s 7 -c 0.05 -e 0.1 -q a.train liblinear.model || return
    seconds=$wall memory=$rss command=$shown
    "$peers/liblinear-predict" -b 1 -q a.test liblinear.model liblinear.out >/dev/null || return
    loss=$(awk 'FNR == 1 {file++}
        file == 1 && FNR == 1 {one = ($2 > 0) ? 2 : 3; next}
        file == 1 {p[FNR - 1] = $one; next}
        {q = ($1 > 0) ? p[FNR] : 1 - p[FNR]; sum -= log(q < 1e-15 ? 1e-15 : q)}
        END {print sum / FNR}' liblinear.out a.test)
}

difacto() { # OPTIONS...: the difference between one epoch and two; it uses the cores it likes
    local one
    around=()
    timed difacto.log "$peers/difacto" data_in=a.train data_val=a.test learner=sgd data_format=libsvm batch_size=10000 "$@" \
        l1=0.1 l2=0 lr=0.05 max_num_epochs=1 || return
    one=$wall
    timed difacto.log "$peers/difacto" data_in=a.train data_val=a.test learner=sgd data_format=libsvm batch_size=10000 "$@" \
        l1=0.1 l2=0 lr=0.05 max_num_epochs=2 || return
    seconds=$(calc "$wall - $one") memory=$rss command=$shown
    loss=$(sed -n 's/.*Validation: loss = \([0-9.e+]*\).*/\1/p' difacto.log difacto.log.err |
        awk -v n="$held_out" '{v = $1 / n; if (!best || v < best) best = v} END {print best}')
}

libmf() { # CORES SET REGULARISATION FEW MANY: the difference between FEW iterations and MANY; sets libmf_load too
    local few
    on "$1"
    timed libmf.log "$peers/mf-train" -f 0 -k 16 -r "$3" -l2 0.05 -s "$1" -t "$4" -p "$2.test" "$2.train" libmf.model || return
    few=$wall
    timed libmf.log "$peers/mf-train" -f 0 -k 16 -r "$3" -l2 0.05 -s "$1" -t "$5" -p "$2.test" "$2.train" libmf.model || return
    seconds=$(calc "($wall - $few) / ($5 - $4)") memory=$rss command=$shown
    libmf_load=$(calc "$few - $4 * $seconds")
    loss=$(awk '$1 ~ /^[0-9]+$/ {if (!best || $3 < best) best = $3} END {print best}' libmf.log)
}

# libmf_best CORES SET RATE FEW MANY: the time of its iterations until its RMSE is least, which drps_to_target goes to
libmf_best() {
    libmf "$@" || return
    target=$loss
    seconds=$(awk -v each="$seconds" '$1 ~ /^[0-9]+$/ {n++; if (!best || $3 < best) {best = $3; at = n}} END {print at * each}' libmf.log)
}

libmf_load_time() {
    libmf "$@" || return
    seconds=$libmf_load loss=-
}

# --- Data ---

held_out=$((samples / 10))
train=$((samples - held_out))
ctr_data() {
    [[ -e a.train ]] || "$tools/drps-gen" ctr --samples "$samples" --test-samples "$held_out" --fields 39 --rows 5M --zipf 1.05 \
        --seed 1 -o a.train --test-output a.test --quiet
    nnz=$((train * 39))
}
vw_data() {
    local part
    for part in train test; do
        [[ -e a.$part.vw ]] || awk '{gsub(/:1 /, " "); sub(/:1$/, ""); i = index($0, " ")
            print(($1 > 0 ? "1 |" : "-1 |") substr($0, i))}' "a.$part" >"a.$part.vw"
    done
}
ratings_data() {
    [[ -e b.train ]] || "$tools/drps-gen" matrix --users 100K --items 20K --ratings "$ratings" --factors 16 --noise 0.6 --seed 1 \
        -o b.train --test-samples $((ratings / 10)) --test-output b.test --quiet
}

# --- Cases ---

case_lr() {
    ctr_data
    drps_index lor lor || return
    local one two
    if has vw; then
        vw_data
        compare "LR, one pass from text, 1 core" 2.5 $nnz nnz "VW" "vw_text 1" "drps_from_text 1"
        compare "LR, one pass from text, 2 cores" 2 $nnz nnz "VW" "vw_text 2" "drps_from_text 2"
        compare "LR, an epoch from VW's cache / the plan, 1 core" 5 $nnz nnz "VW" "vw_cache 1" \
            "drps_epoch 1 lor 3 ${lr_options[*]}"
        compare "LR, an epoch from VW's cache / the plan, 2 cores" 6 $nnz nnz "VW" "vw_cache 2" \
            "drps_epoch 2 lor 3 ${lr_options[*]}"
    fi
    if has xlearn_train; then
        last_drps=''
        compare "LR, an epoch, 1 thread" 3 $nnz nnz "xLearn" "xlearn_epoch 1 3 ${xlearn_lr[*]}" \
            "drps_epoch 1 lor 3 ${lr_options[*]}"
        one=$last_drps
        compare "LR, an epoch, 2 threads" 3 $nnz nnz "xLearn" "xlearn_epoch 2 3 ${xlearn_lr[*]}" \
            "drps_epoch 2 lor 3 ${lr_options[*]}"
        two=$last_drps
        two_over_one "$one" "$two"
    fi
    if has difacto; then
        compare "LR, an epoch, difacto from text / the plan, 2 threads" 15 $nnz nnz "difacto" "difacto V_dim=0" \
            "drps_epoch 2 lor 3 ${lr_options[*]}"
    fi
    if has liblinear-train && has liblinear-predict; then
        compare "LR, from text to within 0.002 of LIBLINEAR's loss, 1 thread" 10 $nnz nnz "LIBLINEAR" "liblinear 1" \
            "drps_to_loss 1"
        compare "LR, from text to within 0.002 of LIBLINEAR's loss, 2 threads" 15 $nnz nnz "LIBLINEAR" "liblinear 2" \
            "drps_to_loss 2"
    fi
}

two_over_one() { # SECONDS-1T SECONDS-2T
    [[ -z $1 || -z $2 ]] || printf '  drps with 2 threads is %.2f times as fast as with 1; bar 1.6\n' "$(calc "$1 / $2")"
}

case_text() {
    has xlearn_train || return 0
    ctr_data
    compare "Text to xLearn's binary files / text to plan (train + test), 1 core" 4 $((samples * 39)) nnz "xLearn" "xlearn_text 1" \
        "drps_index_time 1 lor lor"
    compare "Text to xLearn's binary files / text to plan (train + test), 2 cores" 8 $((samples * 39)) nnz "xLearn" "xlearn_text 2" \
        "drps_index_time 2 lor lor"
}

case_fm() {
    has xlearn_train || has difacto || return 0
    ctr_data
    drps_index fm fm --factors 8 || return
    local one
    if has xlearn_train; then
        last_drps=''
        compare "FM k=8, an epoch, 1 thread" 4 $nnz nnz "xLearn" "xlearn_epoch 1 2 ${xlearn_fm[*]}" \
            "drps_epoch 1 fm 2 ${fm_options[*]}"
        one=$last_drps
        compare "FM k=8, an epoch, 2 threads" 4 $nnz nnz "xLearn" "xlearn_epoch 2 2 ${xlearn_fm[*]}" \
            "drps_epoch 2 fm 2 ${fm_options[*]}"
        two_over_one "$one" "$last_drps"
    fi
    if has difacto; then
        compare "FM k=8, an epoch, difacto from text / the plan, 2 threads" 15 $nnz nnz "difacto" \
            "difacto V_dim=8 V_threshold=10" "drps_epoch 2 fm 2 ${fm_options[*]}"
    fi
}

case_lmf() {
    has mf-train || return 0
    ratings_data
    local count=$((ratings - ratings / 10))
    drps_index usual lmf --factors 16 || return
    compare "MF k=16, by default, an epoch, 1 thread (loss: RMSE)" 2 $count ratings "LIBMF" "libmf 1 b 0.1 2 12" \
        "drps_epoch 1 usual 12 ${lmf_options[*]}"
    compare "MF k=16, by default, an epoch, 2 threads (loss: RMSE)" 2 $count ratings "LIBMF" "libmf 2 b 0.1 2 12" \
        "drps_epoch 2 usual 12 ${lmf_options[*]}"
    local to
    to="$(numfmt --to=si "$ratings") ratings, rank 16, iterations to LIBMF's least RMSE of 30"
    compare "$to, 1 thread (loss: RMSE)" 2 $count ratings "LIBMF" "libmf_best 1 b 0.2 2 30" \
        "drps_to_target 1 usual 12 ${lmf_options[*]}"
    compare "$to, 2 threads (loss: RMSE)" 2 $count ratings "LIBMF" "libmf_best 2 b 0.2 2 30" \
        "drps_to_target 2 usual 12 ${lmf_options[*]}"
    # sub-cells that fit caches and share no row, as the blocks of LIBMF
    drps_index lmf lmf --factors 16 --order grid --grid 16,16 --lanes 4 --batch-size 1000 || return
    compare "MF k=16, an epoch, 1 thread (loss: RMSE)" 2 $count ratings "LIBMF" "libmf 1 b 0.1 2 12" \
        "drps_epoch 1 lmf 12 ${lmf_options[*]}"
    compare "MF k=16, an epoch, 2 threads (loss: RMSE)" 2 $count ratings "LIBMF" "libmf 2 b 0.1 2 12" \
        "drps_epoch 2 lmf 12 ${lmf_options[*]}"
}

case_load() {
    has mf-train || return 0
    ratings_data
    compare "MF k=16, loading the text / text to plan, 1 core" 4 "$ratings" ratings "LIBMF" "libmf_load_time 1 b 0.1 2 12" \
        "drps_index_time 1 lmf lmf --factors 16"
    compare "MF k=16, loading the text / text to plan, 2 cores" 6 "$ratings" ratings "LIBMF" "libmf_load_time 2 b 0.1 2 12" \
        "drps_index_time 2 lmf lmf --factors 16"
}

case_ml1m() {
    has mf-train || return 0
    local file=$data/ml-1m/ratings.tsv.xz
    [[ -n $data && -e $file ]] || { echo && echo "ml-1m: skipped, no --data folder with ml-1m/ratings.tsv.xz" && return 0; }
    xz -dc "$file" | awk 'BEGIN {srand(1)} {print > (rand() < 0.1 ? "m.test" : "m.train")}'
    "$tools/drps-index" m.train --test m.test --algo lmf --factors 16 -o plan-m --force --quiet
    compare "ml-1m, rank 16, an epoch of 30, 1 thread (loss: best RMSE; bar 0.856, aim 0.848)" - "$(wc -l <m.train)" ratings \
        "LIBMF" "libmf 1 m 0.05 10 30" "drps_epoch 1 m 30 ${lmf_options[*]}"
    compare "ml-1m, rank 16, an epoch of 30, 2 threads (loss: best RMSE; bar 0.856, aim 0.848)" - "$(wc -l <m.train)" ratings \
        "LIBMF" "libmf 2 m 0.05 10 30" "drps_epoch 2 m 30 ${lmf_options[*]}"
    local to="ml-1m, rank 16, iterations to LIBMF's least RMSE of 60"
    compare "$to, 1 thread (loss: RMSE)" 2 "$(wc -l <m.train)" ratings "LIBMF" "libmf_best 1 m 0.1 10 60" \
        "drps_to_target 1 m 30 ${lmf_options[*]}"
    compare "$to, 2 threads (loss: RMSE)" 2 "$(wc -l <m.train)" ratings "LIBMF" "libmf_best 2 m 0.1 10 60" \
        "drps_to_target 2 m 30 ${lmf_options[*]}"
}

# What became of a run in a cgroup: STATUS LOG SECONDS-ALLOWED
outcome() {
    case $1 in
    0) printf 'finished in %.1f s, peak %s MiB\n' "$wall" "$rss" ;;
    124) echo "no epoch in $3 s" ;;
    137) printf 'killed after %.1f s\n' "$wall" ;;
    *) echo "failed (status $1): $(tail -n 1 "$2.err")" ;;
    esac
}

mib() { echo "$((($1 + 524288) >> 20)) MiB"; }

# ooc_drps BYTES: FM in a cgroup; prints what happened; 0 if it trained
ooc_drps() {
    local status=0 plan=ooc
    # Windows are cut when indexing, for this memory; indexing itself needs 64 MiB.
    around=()
    drps_index ooc fm --factors 8 --memory "$(max "$1" 67108864)" || plan=fm
    around=(in_cgroup $(($1 * 11 / 10)) timeout "$limit_s")
    drps_train $plan 2 1 "${fm_options[@]}" --store auto --memory "$1" || status=$?
    around=()
    if ((status)); then
        echo "  drps, $(mib "$1"): $(outcome $status drps.log "$limit_s")"
        return 1
    fi
    seconds=$(jq '.epochs[0].seconds' drps.log) memory=$rss command=$shown store=$(jq -r .store drps.log)
    loss=$(jq '.epochs[0].test_loss' drps.log)
    line "drps" "$seconds" "$nnz" nnz "$rss" "$loss" "$shown"
    [[ $store != resident ]] || store+=" (all rows fit: not out of core)"
    echo "    store $store, waited $(jq '.epochs[0].stall_share * 100 | floor' drps.log) % for rows," \
        "loss in memory $(printf %.4f "$loss_in_memory") (losses equal: $(awk "BEGIN {print ($loss == $loss_in_memory) ? \"yes\" : \"no\"}"))"
}

# ooc_peer BYTES NAME COMMAND...: prints what becomes of a peer in the same cgroup
ooc_peer() {
    local bytes=$1 name=$2 status=0 allowed=$((limit_s / 5))
    shift 2
    around=(in_cgroup $((bytes * 11 / 10)) timeout "$allowed")
    timed ooc.log "$@" || status=$?
    around=()
    echo "  $name: $(outcome $status ooc.log $allowed)   $shown"
}

ooc_peers() { # BYTES
    local rank
    if has xlearn_train; then
        ooc_peer "$1" "xLearn FM, data on disk" "$peers/xlearn_train" a.train "${xlearn_fm[@]}" -e 1 --dis-es --disk -block 50 \
            -nthread 2 -m xlearn.model -l xlearn-log
    fi
    if has difacto; then
        ooc_peer "$1" "difacto FM" "$peers/difacto" data_in=a.train learner=sgd data_format=libsvm batch_size=10000 V_dim=8 \
            V_threshold=0 l1=0.1 l2=0 lr=0.05 max_num_epochs=1
    fi
    if has ffm-train; then
        ooc_peer "$1" "libffm (FFM, a larger model)" "$peers/ffm-train" -k 4 -t 1 -s 2 a.train.ffm ffm.model
    fi
    if has mf-train; then
        rank=$((state / 4 / 120000 / 8 * 8 + 8))
        ooc_peer "$1" "LIBMF, factors of as many bytes, data on disk" "$peers/mf-train" -f 0 -k $rank -s 2 -t 1 --disk b.train \
            libmf.model
    fi
    if has vw; then
        ooc_peer "$1" "VW LR (a smaller model)" "$vw" -d a.train.vw --loss_function logistic -b 23 -f vw.model
    fi
    if has liblinear-train; then
        ooc_peer "$1" "LIBLINEAR LR (a smaller model)" "$peers/liblinear-train" -s 7 -c 0.05 -e 0.1 -q a.train liblinear.model
    fi
}

# refusal: what drps-train says it needs when given too little; sets own (bytes besides rows) and least (bytes in all)
refusal() {
    drps_train fm 2 1 "${fm_options[@]}" --memory 1M && own=0 least=0 && return
    read -r own least < <(awk '
        function bytes(number, unit) {return number * 1024 ^ index("KMGT", substr(unit, 1, 1))}
        match($0, /at least [0-9.]+ [KMGT]iB is needed \(.*\)/) {
            text = substr($0, RSTART, RLENGTH)
            split(text, word, " ")
            list = text
            sub(/^[^(]*\(/, "", list)
            sub(/\)$/, "", list)
            n = split(list, part, ", ")
            for (i = 1; i <= n; i++) {
                m = split(part[i], w, " ")
                if (part[i] !~ /rows [0-9.]+ .iB$/) own += bytes(w[m - 1], w[m])
            }
            printf "%d %d\n", own, bytes(word[3] + 0.1, word[4])
        }' drps.log.err)
}

# ooc_share SHARE: FM with that share of the rows; sets granted (--memory) and attempt (in words); 1 if it never trained
ooc_share() {
    granted=$((state * $1 / 100)) attempt="$1 % of the rows' bytes for the whole process"
    ooc_drps "$granted" && return
    # What the program itself needs may be more than the share of so small a model: add it.
    granted=$((granted + own)) attempt="$1 % of the rows' bytes and $(mib "$own") of the program's own"
    ooc_drps "$granted" && return
    granted=$least attempt="the least it takes: $(((least - own) * 100 / state)) % of the rows' bytes and $(mib "$own") of its own"
    ooc_drps "$granted"
}

case_ooc() {
    local share own least granted attempt
    echo
    [[ -w /sys/fs/cgroup ]] || { echo "out of core: skipped, no cgroup can be made" && return 0; }
    ctr_data
    if has vw; then vw_data; fi
    if has mf-train; then ratings_data; fi
    if has ffm-train; then
        "$tools/drps-gen" ctr --samples "$train" --fields 39 --rows 5M --zipf 1.05 --seed 1 --format libffm -o a.train.ffm --force --quiet
    fi
    on 2
    drps_index fm fm --factors 8 || return
    drps_train fm 2 1 "${fm_options[@]}" --store resident || return
    state=$(jq '.rows * .row_bytes' drps.log)
    loss_in_memory=$(jq '.epochs[0].test_loss' drps.log)
    refusal
    echo "FM k=8 out of core, 2 threads: rows with optimizer state $(mib "$state"); every cgroup is --memory and 10 % more"
    for share in 50 25 10; do
        echo
        echo "$share % of the rows"
        if ooc_share "$share"; then
            echo "    --memory is $attempt"
            if [[ $share = 50 && $store != resident* ]] && has xlearn_train; then ooc_against_unlimited; fi
        fi
        ooc_peers "$granted"
    done
}

# drps with half of the rows (as ooc_share left it) against xLearn with all the memory it wants
ooc_against_unlimited() {
    local i d=$seconds
    rm -f ratios
    for ((i = 0; i < runs; i++)); do
        if ((i > 0)); then
            awk "BEGIN {exit !($d < 60)}" || break # pairs only while they are quick
            ooc_drps "$granted" || break
            d=$seconds
        fi
        xlearn_epoch 2 2 "${xlearn_fm[@]}" || break
        calc "$seconds / $d" >>ratios
        echo >>ratios
    done
    [[ -s ratios ]] || return 0
    line "xLearn" "$seconds" "$nnz" nnz "$memory" "$loss" "$command (no limit)"
    printf '  drps with %s is %.3f times as fast as xLearn FM without limit; bar 1\n' "$attempt" "$(median <ratios)"
}

echo "$(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
    "$("$tools/drps-train" --version | head -n 1), $runs runs, $samples samples, $ratings ratings"
for name in vw xlearn_train liblinear-train liblinear-predict difacto mf-train ffm-train; do
    has $name || echo "skipped, not in the folder: $name"
done
for name in lr text fm lmf load ml1m ooc; do
    if wants $name; then case_$name || echo "case $name: FAILED: $(tail -n 1 drps.log.err)"; fi
done
echo
echo "load at the end $(cut -d ' ' -f 1-3 /proc/loadavg)"
