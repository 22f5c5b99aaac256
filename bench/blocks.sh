#!/usr/bin/env bash
# Block builders compared: what an epoch's reads come to by the cost model, and what training measures.
#   bench/blocks.sh cost      every builder, costs of a solid-state disk (40 us, 1200 MB/s) and of one that seeks
#                             (8 ms, 150 MB/s): blocks, seconds to build, modelled time of an epoch's reads
#   bench/blocks.sh io        requests, bytes and seconds of a training epoch with rows in 1/8 of the model's memory
#   bench/blocks.sh prune     index and training time against rows kept by pruning (the paper's Fig. 7), I/Os of each
#                             builder beside it (its Fig. 8, column 3); docs/blocks.png
#   bench/blocks.sh large     auto on 5 M and 50 M rows: seconds, memory, cost against the baselines
# Options, each with a value:
#   --sets "ctr uniform ml1m ratings frappe ipinyou criteo imdb 20news"   ctr, uniform and ratings are generated
#   --builders "none id random frequency pattern topk greedy auto"        topk: 1000 rows kept, k = 50
#   --store file|rocksdb|leveldb (io, prune: file), --share N (io, prune: rows in 1/8), --samples N (ctr, uniform: 400K)
#   --iops N, --mbps N (io: a disk throttled to so many requests and MB a second in each direction, for which blocks are
#                       built; needs root and blkio of cgroup v1), --batch N, --factors N, --block-size SIZE (of all sets), --seconds N (io: stop a run after so long: 600)
#   --data DIR (../shared/data), --png FILE (docs/blocks.png)
# In `cost`, "Eq. 1" is the paper's: every block of every batch is one request; "in runs" reads a batch's blocks sorted,
# through gaps of a request's worth of bytes. Percentages are of one row a block, and of pages by id read in runs.
usage() { sed -n '2,/^usage()/{/^usage()/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
case ${1:-} in
cost | io | prune | large) command=$1 ;;
-h | --help) usage && exit 0 ;;
*) usage >&2 && exit 2 ;;
esac
shift
declare -A option=()
while (($#)); do
    case ${1#--} in
    sets | builders | store | share | samples | data | png | iops | mbps | batch | factors | block-size | seconds) ;;
    *) usage >&2 && exit 2 ;;
    esac
    (($# > 1)) || { echo "$1: the value is missing" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
. "$(dirname "$0")/lib.sh"
data=${option[data]:-$root/../shared/data}
store=${option[store]:-file}
share=${option[share]:-8}
samples=${option[samples]:-400K}
read -ra sets <<<"${option[sets]:-ctr uniform ml1m ratings frappe ipinyou criteo imdb 20news}"
read -ra builders <<<"${option[builders]:-none id random frequency pattern topk greedy auto}"
ssd=(--seek-us 40 --transfer-mbs 1200)
throttled=()
seconds=${option[seconds]:-600}
hdd=(--seek-us 8000 --transfer-mbs 150)

note() { echo "$(date +%T) $*" >&2; }

# ---- Data ----

generate() { # SET OPTION...: sets `text`
    text=$work/$1.txt
    [[ -e $text ]] && return
    "$tools/drps-gen" "${@:2}" --seed 1 -o "$text.new" --force --quiet
    mv "$text.new" "$text"
}
unpack() { # SET GLOB: sets `text`; 1 when the set is not there
    local packed
    text=$work/$1.txt
    [[ -e $text ]] && return
    packed=$(compgen -G "$data/$2" | head -1) || { note "no $2 in $data: left out" && return 1; }
    xz -dc "$packed" >"$text"
}
# Rows of 68 bytes, as in the paper's factor models: 8 factors, a weight, and AdaGrad's state come to 72.
load() { # SET: sets `text` and `how`, options of drps-index; 1 when the set is not there
    how=(--algo fm --factors 8 --batch-size 1000)
    case $1 in
    ctr) generate ctr ctr --samples "$samples" --fields 39 --rows 2M --zipf 1.05 ;;
    uniform) generate uniform ctr --samples "$samples" --fields 39 --rows 200K --zipf 0 ;;
    ratings) generate ratings matrix --users 60K --items 20K --ratings 3M && how=(--algo lmf --factors 8 --batch-size 1000) ;;
    ml1m) unpack ml1m 'ml-1m/ratings*.xz' && how=(--algo lmf --factors 8 --batch-size 100) ;;
    frappe) unpack frappe 'frappe/*test*.xz' && how=(--algo fm --factors 8 --batch-size 100) ;;
    ipinyou) unpack ipinyou 'ipinyou/train*.xz' && how=(--algo fm --factors 8 --batch-size 100) ;;
    criteo) unpack criteo 'criteo-sample/criteo.train*.xz' && how=(--algo fm --factors 8 --batch-size 100) ;;
    imdb) unpack imdb 'imdb/imdb.train*.xz' && how=(--algo fm --factors 8 --batch-size 100) ;;
    20news) unpack 20news '20news/*train*.xz' && how=(--algo fm --factors 8 --task regression --batch-size 100) ;;
    *) echo "bench: no set named $1" >&2 && exit 2 ;;
    esac
    [[ -z ${option[batch]:-} ]] || how+=(--batch-size "${option[batch]}")
    [[ -z ${option[factors]:-} ]] || how+=(--factors "${option[factors]}")
    [[ -z ${option[block-size]:-} ]] || how+=(--block-size "${option[block-size]}")
}

# ---- Plans ----

# build SET BUILDER OPTION...: $work/plan, and its summary in $work/index.json; 1 when the builder refuses
build() {
    local extra=()
    [[ $2 = topk || $2 = pairwise ]] && extra=(--prune-to 1000)
    "$tools/drps-index" "$text" "${how[@]}" --blocks "$2" "${extra[@]}" "${@:3}" -o "$work/plan" --force --quiet --json \
        >"$work/index.json" 2>"$work/index.err" || { note "$1 $2: $(tail -1 "$work/index.err")" && return 1; }
}

# Modelled seconds of an epoch's reads, from a summary: as blocks (Eq. 1), in runs, one row a block, scanning.
modelled='def s(requests; rows): requests * .seek_ns / 1e9 + rows * .row_bytes / .transfer_bps;
    {eq1: s(.block_uses; .block_use_rows), runs: s(.runs; .run_rows), one: s(.row_uses; .row_uses),
     scan: s(.batches + .test_batches; (.batches + .test_batches) * .rows), blocks, build: .phase_seconds.block}'

cost() {
    local set builder disk id
    for disk in ssd hdd; do
        local -n costs=$disk
        echo "${costs[*]}"
        echo
        echo "| set | builder | blocks | built in s | Eq. 1, s | of one row a block | in runs, s | of id pages in runs | of scans |"
        echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        for set in "${sets[@]}"; do
            load "$set" || continue
            build "$set" id "${costs[@]}" && id=$(jq "$modelled | .runs" "$work/index.json")
            for builder in "${builders[@]}"; do
                note "$disk $set $builder"
                build "$set" "$builder" "${costs[@]}" || continue
                jq -r --arg set "$set" --arg builder "$builder" --argjson id "$id" "$modelled"'
                    | def r(d): . * pow(10; d) | round / pow(10; d);
                    "| \($set) | \($builder) | \(.blocks) | \(.build | r(2)) | \(.eq1 | r(3)) | \(100 * .eq1 / .one | r(1)) % | \(.runs | r(3)) | \(100 * .runs / $id | r(1)) % | \(100 * .runs / .scan | r(1)) % |"' \
                    "$work/index.json"
            done
        done
        echo
    done
}

# ---- Training ----

# train STORE OPTION...: $work/train.json; 1 when it refuses. The pool gets 1/share of the rows, or what the largest step needs.
train() {
    local memory
    fit "$(jq --argjson share "$share" '.rows * .row_bytes / $share | floor' "$work/index.json")" "$work/plan" --store "$1" "${@:2}" || return 1
    "${throttled[@]}" timeout --foreground -s INT -k 60 "$seconds" "$tools/drps-train" "$work/plan" -o "$work/model" --force --store "$1" --epochs 2 --quiet --json \
        --memory "$memory" "${@:2}" >"$work/train.json" 2>"$work/train.err" ||
        { note "$1: $(tail -1 "$work/train.err")" && return 1; }
}

io() {
    local set builder
    local costs=("${ssd[@]}")
    if [[ -n ${option[iops]:-} ]]; then
        throttle "${option[iops]}" "${option[mbps]:-150}"
        costs=(--seek-us $((1000000 / option[iops])) --transfer-mbs "${option[mbps]:-150}")
        echo "${costs[*]}, and a disk throttled to that"
        echo
    fi
    echo "| set | builder | blocks | pool | blocks moved | requests | MB moved | seconds | requests: of none's | of id's | seconds: of none's | of id's |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for set in "${sets[@]}"; do
        load "$set" || continue
        : >"$work/none.epoch" # what others are compared with: name none and id first
        : >"$work/id.epoch"
        for builder in "${builders[@]}"; do
            note "$set $builder"
            build "$set" "$builder" "${costs[@]}" && train "$store" || continue
            jq -c '.epochs[1]' "$work/train.json" >"$work/$builder.epoch"
            jq -r --arg set "$set" --arg builder "$builder" --argjson n "$(jq .blocks "$work/index.json")" \
                --slurpfile none "$work/none.epoch" --slurpfile id "$work/id.epoch" '
                def of(a; b): if (b // 0) > 0 then "\(1000 * a / b | round / 10) %" else "-" end;
                .blocks.pool_bytes as $pool | .epochs[1] |
                "| \($set) | \($builder) | \($n) | \($pool / 104857.6 | round / 10) MiB | \(.reads + .writes) | \(.requests) " +
                "| \(.moved_bytes / 1e6 | round) | \(.seconds * 100 | round / 100) " +
                "| \(of(.requests; $none[0].requests)) | \(of(.requests; $id[0].requests)) " +
                "| \(of(.seconds; $none[0].seconds)) | \(of(.seconds; $id[0].seconds)) |"' "$work/train.json"
        done
    done
}

# ---- The paper's figures ----

prune() {
    local set f builder
    : >"$work/prune.tsv"
    : >"$work/ios.tsv"
    for set in "${sets[@]}"; do
        load "$set" || continue
        for f in 250 500 1000 2000 4000; do
            for builder in topk pairwise; do
                note "$set $builder --prune-to $f"
                "$tools/drps-index" "$text" "${how[@]}" --blocks $builder --prune-to "$f" "${ssd[@]}" -o "$work/plan" --force \
                    --quiet --json >"$work/index.json" && train "$store" || continue
                jq -r --arg set "$set" --arg b $builder --argjson f "$f" --slurpfile t "$work/train.json" \
                    '"\($set) \($b) \($f) \(.phase_seconds.block) \($t[0].epochs[1].seconds)"' "$work/index.json" >>"$work/prune.tsv"
            done
        done
        for builder in "${builders[@]}"; do
            build "$set" "$builder" "${ssd[@]}" && train "$store" || continue
            jq -r --arg set "$set" --arg b "$builder" '"\($set) \($b) \(.epochs[1] | .reads + .writes)"' "$work/train.json" >>"$work/ios.tsv"
        done
    done
    column -t "$work/prune.tsv"
    sort -u "$work/ios.tsv" | column -t
    plot
}

plot() {
    command -v gnuplot >/dev/null || { note "no gnuplot: no figure" && return; }
    local png=${option[png]:-$root/docs/blocks.png} set n=${#sets[@]}
    {
        echo "set terminal pngcairo noenhanced size $((420 * n)),760; set output '$png'; set multiplot layout 2,$n"
        echo "set style data histograms; set style histogram rowstacked; set style fill solid .6; set boxwidth .7; set yrange [0:]; set xtics rotate by -60; set key top left"
        for set in "${sets[@]}"; do
            awk -v s="$set" '$1 == s {print $2 ":" $3, $4, $5}' "$work/prune.tsv" >"$work/p-$set.tsv"
            echo "set title '$set: seconds against rows kept by pruning'; plot '$work/p-$set.tsv' using 2:xtic(1) title 'index', '' using 3 title 'epoch'"
        done
        for set in "${sets[@]}"; do
            awk -v s="$set" '$1 == s && !seen[$2]++ {print $2, $3}' "$work/ios.tsv" >"$work/i-$set.tsv"
            echo "set title '$set: disk I/Os an epoch, rows in 1/$share'; plot '$work/i-$set.tsv' using 2:xtic(1) notitle"
        done
        echo "unset multiplot"
    } | gnuplot
    note "$png"
}

# ---- Large data ----

large() {
    local rows samples name builder
    builders=(none id pattern auto)
    echo "| rows | builder | blocks | blocks built in s | index s | peak MB | Eq. 1, of one row a block | in runs, of id pages |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in 10M:4M 100M:20M; do
        rows=${name%:*} samples=${name#*:}
        how=(--algo fm --factors 8 --batch-size 1000)
        generate "large-$rows" ctr --samples "$samples" --fields 39 --rows "$rows" --zipf 1.05
        local id=0
        for builder in id none pattern auto; do
            note "$rows $builder"
            build "large-$rows" "$builder" "${ssd[@]}" || continue
            [[ $builder = id ]] && id=$(jq "$modelled | .runs" "$work/index.json")
            jq -r --arg b "$builder" --argjson id "$id" '. as $i | '"$modelled"'
                | "| \($i.rows) | \($b) | \(.blocks) | \(.build | round) | \($i.seconds | round) | \($i.peak_rss_bytes / 1e6 | round) | \(100 * .eq1 / .one | round) % | \(100 * .runs / $id | round) % |"' \
                "$work/index.json"
        done
        rm -f "$work/large-$rows.txt"
    done
}

echo "$(git -C "$root" rev-parse --short HEAD), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
echo
$command | tables "blocks-$command" 2
