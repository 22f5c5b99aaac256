#!/usr/bin/env bash
# The relay store measured: in rounds of runs side by side, medians of them, as tables and rows (rows.sh). A run whose model
# differs from that of the resident store ends the script.
#   bench/relay.sh ratio     rows in 1/12 of the model's memory against resident, the plan in RAM and from disk
#   bench/relay.sh engines   against blocks in a file, blocks and one row a key in RocksDB and LevelDB at the same --memory (or the least
#                            that they accept, if that is more)
#   bench/relay.sh curve     throughput, bytes moved at 1/4 to 1/64, measured and forecast, and the time to write the model; docs/relay.png
#   bench/relay.sh ratings   matrix factorisation in grid order, and held-out RMSE against shuffled order
#   bench/relay.sh slow      MB/s on a disk throttled to 200 requests and 150 MB a second
#   bench/relay.sh huge      a model of 40 GB in 2 GiB: an epoch (--epochs 2: the second, in which rows come back)
# Options, each with a value (counts are decimal, --memory is binary):
#   --scratch DIR   where the scratch folder is made, and removed at the end (default /tmp)
#   --samples N, --rows N   CTR-like data: default 4M samples (slow: 1M) over 10M ids, about half of which occur
#   --models "fm:16 lor:0"  algorithm and rank (curve, slow: fm:16); --order shuffled|micro of curve (shuffled)
#   --epochs N (3; huge: 1), --rounds N (3), --share N (12: rows in 1/12), --shares "4 8 16 32 64" of curve, --batch N (1000)
#   --seconds N     engines, slow: stop a run after so long (60; slow: 120)
#   --sets "64:300K:60K:30M 2000:30K:10K:2M"  ratings: rank, users, items, ratings (50 or more a row, as the usual sets have);
#   --grid U,I (as drps-index chooses)
#   --iops N (200), --mbps N (150), --extra "OPTIONS"  slow: a second row with these options of drps-train
#   --users N (2700K), --items N (10K), --ratings N (8M), --factors N (2000), --memory SIZE (2G), --grid U,I (as drps-index chooses),
#   --optimizer sgd|adagrad|ftrl  huge: 1, 2 or 3 floats a parameter (adagrad)
#   --export yes|no|auto  huge; auto: yes if the disk has room for it, else the run ends with the epoch
#   --png FILE (docs/relay.png)
# Needs root (memory cgroups; slow: blkio of cgroup v1), jq; curve: gnuplot.
usage() { sed -n '2,/^usage()/{/^usage()/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
case ${1:-} in
ratio | engines | curve | ratings | slow | huge) command=$1 ;;
-h | --help) usage && exit 0 ;;
*) usage >&2 && exit 2 ;;
esac
shift
declare -A option=()
while (($#)); do
    case ${1#--} in
    scratch | samples | rows | models | order | epochs | rounds | share | shares | batch | seconds | sets | grid | iops | mbps | extra | \
        users | items | ratings | factors | memory | export | png | optimizer) ;;
    *) usage >&2 && exit 2 ;;
    esac
    (($# > 1)) || { echo "$1: the value is missing" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
export TMPDIR=${option[scratch]:-/tmp}
. "$(dirname "$0")/lib.sh"
epochs=${option[epochs]:-3}
rounds=${option[rounds]:-3}
batch=${option[batch]:-1000}
mkdir -p "$work/runs"

name_of() { model_name "${1%:*}" "${1#*:}"; } # algorithm:rank
store_name() { # STORE single|"": as tables name it
    case $1 in
    relay) echo relay ;;
    file) echo "blocks in a file" ;;
    rocksdb) echo "RocksDB, $([[ $2 = single ]] && echo "one row a key" || echo blocks)" ;;
    leveldb) echo "LevelDB, one row a key" ;;
    esac
}
die() { echo "bench: $*" >&2 && exit 1; }
note() { echo "$(date +%T) $*" >&2; }
count() { numfmt --from=si "$1"; }
seconds() { awk '{printf "%.1f s", $1}'; }
hundredths() { awk '{printf "%.2f s", $1}'; }
mib() { awk -v b="$1" 'BEGIN {printf "%.1f MiB", b / 1048576}'; }
machine() {
    echo "$(git -C "$root" rev-parse --short HEAD), $(nproc) processors, kernel $(uname -r), $(stat -f -c %T "$work"), load $(cut -d' ' -f1 /proc/loadavg)"
    echo
}

# ---- Data and plans ----

# compile NAME TEXT OPTION...: the folder $work/NAME and its summary $work/NAME.index, unless they are there. Windows are
# cut for all rows: those of a smaller memory are drps-train's own, so that every --memory is used.
compile() {
    local name=$1 text=$2
    shift 2
    [[ -e $work/$name.index ]] && return
    "$tools/drps-index" "$text" -o "$work/$name" --force --quiet --json "$@" >"$work/index.new"
    mv "$work/index.new" "$work/$name.index"
}

ctr() { # SAMPLES FORMAT: the text of CTR-like data
    local text=$work/ctr-$1-${option[rows]:-10M}.$2
    if [[ ! -e $text ]]; then
        "$tools/drps-gen" ctr --format "$2" --samples "$1" --fields 39 --rows "${option[rows]:-10M}" --zipf 1.05 --seed 1 -o "$text.new" --force --quiet
        mv "$text.new" "$text"
    fi
    echo "$text"
}

ctr_plan() { # MODEL (algorithm:rank) SAMPLES [OPTION...]: sets `plan`
    local rank=() algo=${1%:*} text format=libsvm
    case $algo in wide-deep | deepfm | dlrm | dcn) format=libffm ;; esac # they look at fields
    text=$(ctr "$2" $format)
    [[ ${1#*:} = 0 ]] || rank=(--factors "${1#*:}")
    plan=$1-$2${3:+-${*:4}}
    compile "$plan" "$text" --algo "$algo" "${rank[@]}" --batch-size "$batch" --test-fraction 0.02 --memory 4G "${calibrate[@]}" "${@:3}"
}
calibrate=() # "--calibrate DIR": the limit of models of less than 64 MiB is known, too

ratings_text() { # USERS ITEMS RATINGS
    local text=$work/ratings-$1-$2-$3.tsv
    if [[ ! -e $text ]]; then
        "$tools/drps-gen" matrix --users "$1" --items "$2" --ratings "$3" --factors 8 --seed 1 -o "$text.new" --force --quiet
        mv "$text.new" "$text"
    fi
    echo "$text"
}

# ---- Runs ----

# train OUT LIMIT OPTION...: a run's JSON in $work/runs/OUT, in a memory cgroup of LIMIT bytes (0: in none). `before` is a
# command before drps-train. Returns 1 when drps-train refuses or fails, its messages in OUT.err.
before=()
train() {
    local out=$work/runs/$1 limit=$2 status=0
    shift 2
    local run=("${before[@]}" "$tools/drps-train" -o "$work/model" --force --quiet --json "$@")
    if ((limit)); then
        in_cgroup "$limit" "${run[@]}" >"$out" 2>"$out.err" || status=$?
    else
        "${run[@]}" >"$out" 2>"$out.err" || status=$?
    fi
    rm -rf "$work/model" "$work/model.partial"
    case $status in
    0 | 124 | 130) jq -e .store "$out" >"$work/runs/is" 2>&1 ;; # 124, 130: stopped when its time was over
    *) return 1 ;;
    esac
}

# must OUT LIMIT OPTION...: train, or end.
must() { train "$@" || die "drps-train failed: $(cat "$work/runs/$1.err")"; }

same() { # OUT REFERENCE: they are the same model, or end
    local a b
    a=$(jq -r .content "$work/runs/$1")
    b=$(jq -r .content "$work/runs/$2")
    [[ $a = "$b" ]] || die "$1: content $a, but $2: $b"
}

# OUT: bytes that the run's parts take together.
need() { jq '[.memory.parts[].bytes] | add' "$work/runs/$1"; }
least() { # PLAN STORE: the least --memory that is accepted, and 1 MiB, as some stores then ask for a little more
    { "$tools/drps-train" "$work/$1" -o "$work/model" --force --quiet --store "$2" --memory 1 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) \([KMG]iB\) is needed.*/\1 \2/p' |
        awk '{u["KiB"] = 1024; u["MiB"] = 1048576; u["GiB"] = 1073741824; printf "%d\n", $1 * u[$2] + 1048576}'
}

# fit PLAN PARTS: sets `memory`, the --memory at which relay's rows in memory take 1 / PARTS of the model's bytes,
# little less, or at most 1 % more, and `pool`, what they take. By runs of one epoch: windows, and so the pool, grow in steps. 1: none is so small.
fit() {
    local plan=$1 parts=$2 try at got floor want slope row low=0 high=0 step=0
    must fit.resident 0 "$work/$plan" --store resident
    row=$(jq .row_bytes "$work/runs/fit.resident")
    want=$(jq ".rows * .row_bytes / $parts | floor" "$work/runs/fit.resident")
    floor=$(least "$plan" relay)
    slope=$(((row + 36) * 1250 / row)) # bytes of --memory, in thousandths, for one more of rows
    at=$((floor + want * slope / 1000))
    memory=0 pool=0
    for try in 1 2 3 4 5 6 7; do
        train fit 0 "$work/$plan" --store relay --memory "$at" || break
        same fit fit.resident
        got=$(jq .windows.pool_bytes "$work/runs/fit")
        note "$plan, 1/$parts: --memory $(mib "$at") holds $(mib "$got") of $(mib "$want") wanted (try $try)"
        if ((got * 100 <= want * 101)); then
            ((got > pool)) && memory=$at pool=$got
            ((at > low)) && low=$at
        else
            high=$at
        fi
        ((got * 100 <= want * 101 && got * 100 >= want * 92)) && break
        ((at == floor && got > want)) && break
        step=$(((want * 98 / 100 - got) * slope / 1000 + step / 2)) # more and more where a step is wide
        at=$((at + step))
        ((low && high)) && ((at <= low || at >= high)) && at=$(((low + high) / 2)) && step=0
        ((at < floor)) && at=$floor
    done
    ((memory))
}

# The plan's files in the page cache, or not there.
warm() { cat "$work/$1"/* >/dev/null; }
cold() {
    local file
    for file in "$work/$1"/*; do
        sync -d "$file"
        dd if="$file" iflag=nocache count=0 status=none
    done
}

# ---- Figures ----

# each VARIANT FILTER: the filter's value in every round. mid: their median. paired A B FILTER: median of A / B by round.
each() {
    local i
    for ((i = 1; i <= rounds; i++)); do jq "$rates $2" "$work/runs/$1.$i"; done
}
mid() { each "$1" "$2" | median; }
paired() { paste <(each "$1" "$3") <(each "$2" "$3") | awk '{print $1 / $2}' | median; }
range() { each "$1" "$2" | sort -n | awk '{v[NR] = $1} END {printf "%s to %s", v[1], v[NR]}'; }
rates='def mean: add / length; def rate: length / (map(1 / .samples_per_s) | add);
    def later: if (.epochs | length) > 1 then .epochs[1:] else .epochs end;'
held() { # OUT: memory that holds rows, and its share
    jq -r '(.rows * .row_bytes) as $all | (if .windows then .windows.pool_bytes elif .blocks then .blocks.pool_bytes else $all end)
        | "\(. / 1048576 * 100 | round / 100) MiB (\(. / $all * 1000 | round / 10) %)"' "$work/runs/$1"
}
thousands() { awk '{printf "%.0f K", $1 / 1000}'; }
percent() { awk '{printf "%.1f %%", 100 * $1}'; }
gb() { awk '{printf "%.2f", $1 / 1e9}'; }
# VARIANT MEMBER FORM: of the least time of an epoch by disk and arithmetic; "-" where the disk was not measured.
limit() {
    if [[ $(jq '.limit_seconds != null' "$work/runs/$1.1") = true ]]; then mid "$1" ".limit_seconds.$2" | "$3"; else echo "-"; fi
}
moved='(later | map(.read_bytes) | mean)'
stored='(later | map(.written_bytes) | mean)'

# ---- ratio ----

ratio() {
    local samples=${option[samples]:-4M} share=${option[share]:-12} model plan memory pool full i v order
    echo "### Relay in 1/$share of the model's memory, against resident"
    machine
    echo "| model | run | --memory | rows in memory | samples/s, later epochs | all epochs | of resident, in RAM | from disk | GB read, written an epoch | from disk in all | waiting | peak resident set | whole run |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for model in ${option[models]:-fm:16 lor:0}; do
        ctr_plan "$model" "$samples"
        fit "$plan" "$share" || die "$model: 1/$share is less than relay can do"
        must reference 0 "$work/$plan" --store resident --epochs "$epochs" --no-keep
        full=$(need reference)
        for ((i = 1; i <= rounds; i++)); do
            order="resident-ram relay-ram resident-disk relay-disk"
            ((i % 2)) || order="relay-disk resident-disk relay-ram resident-ram"
            for v in $order; do
                note "$model, round $i: $v"
                if [[ $v = *-ram ]]; then warm "$plan"; else cold "$plan"; fi
                case $v in
                relay-*) must "$v.$i" $((memory * 11 / 10)) "$work/$plan" --store relay --epochs "$epochs" --memory "$memory" ;;
                resident-ram) must "$v.$i" 0 "$work/$plan" --store resident --epochs "$epochs" ;;
                *) must "$v.$i" $((full * 11 / 10)) "$work/$plan" --store resident --epochs "$epochs" --memory "$full" --no-keep ;;
                esac
                same "$v.$i" reference
            done
        done
        for v in resident-ram relay-ram resident-disk relay-disk; do
            echo "| $(name_of "$model") | ${v%-*}, plan $([[ $v = *-ram ]] && echo "in RAM" || echo "from disk") | $([[ $v = resident-ram ]] && echo "no limit" || mib "$(jq .memory.limit_bytes "$work/runs/$v.1")") |" \
                "$(held "$v.1") |" \
                "$(mid "$v" 'later | rate' | thousands) ($(range "$v" 'later | rate / 1000 | round')) |" \
                "$(mid "$v" '.epochs | rate' | thousands) |" \
                "$(paired "$v" resident-ram 'later | rate' | percent) | $(paired "$v" resident-disk 'later | rate' | percent) |" \
                "$(mid "$v" "$moved" | gb), $(mid "$v" "$stored" | gb) | $(mid "$v" .process_read_bytes | gb) |" \
                "$(mid "$v" 'later | map(.stall_share) | mean' | percent) | $(mib "$(mid "$v" .peak_rss_bytes)") | $(mid "$v" .seconds | awk '{printf "%.1f s", $1}') |"
        done
    done
}

# ---- engines ----

# Samples a second of a run that may have been stopped, evaluation and writing the model left out.
speed() { # OUT PLAN
    jq --argjson p "$(cat "$work/$2.index")" '((.epochs | length) * $p.samples + .steps * $p.batch_size)
        / (.phase_seconds | .plan + .wait_store + .gather + .compute + .step)' "$work/runs/$1"
}

engines() {
    local samples=${option[samples]:-4M} seconds=${option[seconds]:-60} model plan blocks single memory pool n v store least_of reference
    echo "### Relay against block stores at the same --memory, or the least they accept, stopped after $seconds s"
    machine
    echo "| model | store | --memory | rows in memory | samples/s | relay is faster | done | GB read, written | waiting | model |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for model in ${option[models]:-fm:16 lor:0}; do
        ctr_plan "$model" "$samples"
        blocks=$plan
        fit "$plan" "${option[share]:-12}" || memory=0
        ctr_plan "$model" "$samples" --blocks none
        single=$plan
        # Blocks often need more than relay wants; one row a key still more, which only those runs get.
        least_of=$(least "$blocks" rocksdb)
        ((least_of > memory)) && memory=$least_of
        must reference-blocks 0 "$work/$blocks" --store resident --epochs "$epochs"
        must reference-single 0 "$work/$single" --store resident --epochs "$epochs"
        n=0
        for v in "relay $blocks" "file $blocks" "rocksdb $blocks" "rocksdb $single" "leveldb $single"; do
            read -r store plan <<<"$v"
            least_of=$(least "$plan" "$store")
            ((least_of > memory)) && memory=$least_of
            warm "$plan"
            note "$model: $v"
            before=(timeout --foreground -s INT -k 300 "$seconds")
            if ! train "engine.$n" $((memory * 11 / 10)) "$work/$plan" --store "$store" --memory "$memory" --epochs "$epochs"; then
                echo "| $(name_of "$model") | $v | $(mib "$memory") | failed: $(tail -1 "$work/runs/engine.$n.err") |"
                before=()
                continue
            fi
            before=()
            reference=reference-blocks
            [[ $plan = "$single" ]] && reference=reference-single
            [[ $(jq .interrupted "$work/runs/engine.$n") = true ]] || same "engine.$n" "$reference"
            echo "| $(name_of "$model") | $(store_name "$store" "$([[ $plan = "$single" ]] && echo single)") | $(mib "$memory") |" \
                "$(held "engine.$n") |" \
                "$(speed "engine.$n" "$plan" | thousands) |" \
                "$(awk -v a="$(speed engine.0 "$blocks")" -v b="$(speed "engine.$n" "$plan")" 'BEGIN {printf "%.1f", a / b}') |" \
                "$(jq -r --argjson p "$(cat "$work/$plan.index")" --argjson e "$epochs" '((.epochs | length) + .steps / ($p.batches + $p.test_batches)) as $d | "\($d * 100 | round / 100) of \($e) epochs"' "$work/runs/engine.$n") |" \
                "$(jq .io.read_bytes "$work/runs/engine.$n" | gb), $(jq .io.written_bytes "$work/runs/engine.$n" | gb) |" \
                "$(jq '.stalls.seconds / (.phase_seconds | .plan + .wait_store + .gather + .compute + .step + .evaluate)' "$work/runs/engine.$n" | percent) |" \
                "$(jq -r 'if .interrupted then "stopped" else "as resident" end' "$work/runs/engine.$n") |"
            n=$((n + 1))
        done
    done
}

# ---- curve ----

curve() {
    local samples=${option[samples]:-4M} model=${option[models]:-fm:16} order=${option[order]:-shuffled} plan memory pool i parts
    local png=${option[png]:-$([[ $model-$order = fm:16-shuffled ]] && echo "$root/docs/relay.png" || echo "$work/curve.png")}
    local memories=() all=()
    calibrate=(--calibrate "$work")
    if [[ $order = shuffled ]]; then ctr_plan "$model" "$samples"; else ctr_plan "$model" "$samples" --order "$order"; fi
    must reference 0 "$work/$plan" --store resident --epochs "$epochs"
    for parts in ${option[shares]:-4 8 16 32 64}; do
        if fit "$plan" "$parts"; then
            all+=("$parts")
            memories+=("$memory")
        else
            note "$model: 1/$parts is less than relay can do"
        fi
    done
    warm "$plan"
    for ((i = 1; i <= rounds; i++)); do
        note "round $i"
        must "resident.$i" 0 "$work/$plan" --store resident --epochs "$epochs"
        for at in "${!all[@]}"; do
            must "relay-${all[at]}.$i" $((memories[at] * 11 / 10)) "$work/$plan" --store relay --epochs "$epochs" --memory "${memories[at]}"
            same "relay-${all[at]}.$i" reference
        done
    done
    echo "### Relay by the share of the model in memory: $model, $samples samples, in $order order, an epoch after the first"
    machine
    echo "| rows in memory | --memory | windows, runs, chunk | samples/s | of resident | of the limit | limit: disk, arithmetic | GB read: forecast, measured | GB written: forecast, measured | waiting | writing the model |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    echo "| all | no limit | | $(mid resident 'later | rate' | thousands) | | | | | | | $(mid resident .phase_seconds.export | seconds) |"
    : >"$work/curve.tsv"
    for at in "${!all[@]}"; do
        v=relay-${all[at]}
        echo "| 1/$(jq '.rows * .row_bytes / .windows.pool_bytes * 10 | round / 10' "$work/runs/$v.1") | $(mib "${memories[at]}") |" \
            "$(jq -r '.windows | "\(.windows), \(.runs), \(.chunk_bytes / 1024) KiB"' "$work/runs/$v.1") |" \
            "$(mid "$v" 'later | rate' | thousands) | $(paired "$v" resident 'later | rate' | percent) |" \
            "$(limit "$v" reached percent) | $(limit "$v" disk hundredths), $(limit "$v" compute hundredths) |" \
            "$(mid "$v" .forecast.read_bytes | gb), $(mid "$v" "$moved" | gb) | $(mid "$v" .forecast.written_bytes | gb), $(mid "$v" "$stored" | gb) |" \
            "$(mid "$v" 'later | map(.stall_share) | mean' | percent) | $(mid "$v" .phase_seconds.export | seconds) |"
        echo "$(jq '.rows * .row_bytes / .windows.pool_bytes' "$work/runs/$v.1") $(paired "$v" resident 'later | rate')" \
            "$(mid "$v" "$moved") $(mid "$v" "$stored") $(mid "$v" .forecast.read_bytes) $(mid "$v" .forecast.written_bytes)" >>"$work/curve.tsv"
    done
    gnuplot <<PLOT
set terminal pngcairo size 1200,500 font 'sans,10'
set output '$png'
set multiplot layout 1,2
set grid; set logscale x 2; set xlabel 'model / memory for rows'; set key top left
set ylabel 'throughput, % of resident'; set yrange [0:*]
plot '$work/curve.tsv' using 1:(100 * \$2) with linespoints lw 2 pt 7 title 'relay'
set ylabel 'GB an epoch'
plot '$work/curve.tsv' using 1:(\$3 / 1e9) with linespoints lw 2 pt 7 title 'read', \
    '' using 1:(\$4 / 1e9) with linespoints lw 2 pt 5 title 'written', \
    '' using 1:((\$5 + \$6) / 2e9) with lines dt 2 lw 2 title 'forecast of each'
unset multiplot
PLOT
}

# ---- ratings ----

grid_of() { jq -r '"\(.grid_users) x \(.grid_items)"' "$work/$1/plan.json"; } # PLAN

ratings() {
    local share=${option[share]:-12} set rank users items n text memory pool i v
    echo "### Ratings: matrix factorisation, rows in 1/$share of the model's memory"
    machine
    echo "| model | users, items, ratings | run | grid | --memory | rows in memory | samples/s, later epochs | of resident, in RAM | GB read, written an epoch | waiting | RMSE after $epochs epochs |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for set in ${option[sets]:-64:300K:60K:30M 2000:30K:10K:2M}; do
        IFS=: read -r rank users items n <<<"$set"
        text=$(ratings_text "$users" "$items" "$n")
        compile "grid-$set" "$text" --algo lmf --factors "$rank" --batch-size "$batch" --test-fraction 0.1 --memory 4G \
            --order grid ${option[grid]:+--grid "${option[grid]}"}
        compile "shuffled-$set" "$text" --algo lmf --factors "$rank" --batch-size "$batch" --test-fraction 0.1 --memory 4G
        fit "grid-$set" "$share" || die "rank $rank: 1/$share is less than relay can do"
        warm "grid-$set"
        for ((i = 1; i <= rounds; i++)); do
            note "rank $rank, round $i"
            must "resident.$i" 0 "$work/grid-$set" --store resident --epochs "$epochs" --l2 0.05
            must "relay.$i" $((memory * 11 / 10)) "$work/grid-$set" --store relay --epochs "$epochs" --l2 0.05 --memory "$memory"
            same "relay.$i" resident.1
        done
        must shuffled.1 0 "$work/shuffled-$set" --store resident --epochs "$epochs" --l2 0.05
        for v in resident relay; do
            echo "| MF, rank $rank | $users x $items, $n ratings | $v, grid | $(grid_of "grid-$set") | $([[ $v = relay ]] && mib "$memory" || echo "no limit") | $([[ $v = relay ]] && mib "$pool" || mib "$(jq '.rows * .row_bytes' "$work/runs/resident.1")") |" \
                "$(mid "$v" 'later | rate' | thousands) ($(range "$v" 'later | rate / 1000 | round')) | $(paired "$v" resident 'later | rate' | percent) |" \
                "$(mid "$v" "$moved" | gb), $(mid "$v" "$stored" | gb) | $(mid "$v" 'later | map(.stall_share) | mean' | percent) |" \
                "$(jq '.epochs[-1].test_rmse * 1e4 | round / 1e4' "$work/runs/$v.1") |"
        done
        echo "| MF, rank $rank | $users x $items, $n ratings | resident, shuffled | | no limit | | $(jq "$rates later | rate" "$work/runs/shuffled.1" | thousands) | | | |" \
            "$(jq '.epochs[-1].test_rmse * 1e4 | round / 1e4' "$work/runs/shuffled.1") |"
    done
}

# ---- slow ----

slow() {
    local samples=${option[samples]:-1M} model=${option[models]:-fm:16} iops=${option[iops]:-200} mbps=${option[mbps]:-150}
    local seconds=${option[seconds]:-120} plan memory pool i v extra name
    ctr_plan "$model" "$samples"
    fit "$plan" "${option[share]:-12}" || die "$model: 1/${option[share]:-12} is less than relay can do"
    must reference 0 "$work/$plan" --store resident --epochs "$epochs"
    throttle "$iops" "$mbps"
    echo "### Relay on a disk of $iops requests and $mbps MB a second, read and written each: $model, $samples samples, rows in $(mib "$pool") (1/${option[share]:-12}), at most $seconds s"
    machine
    echo "| run | chunk, windows, runs | samples/s | MB/s read | MB/s written | of $mbps MB/s | requests/s read, written | waiting | model |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    warm "$plan"
    for v in "" ${option[extra]:+extra}; do
        extra=() name=default
        [[ -z $v ]] || { read -ra extra <<<"${option[extra]}" && name=${option[extra]}; }
        for ((i = 1; i <= rounds; i++)); do
            note "slow, round $i: $name"
            before=("${throttled[@]}" timeout --foreground -s INT -k 600 "$seconds")
            must "slow$v.$i" $((memory * 11 / 10)) "$work/$plan" --store relay --epochs "$epochs" --memory "$memory" "${extra[@]}"
            before=()
            [[ $(jq .interrupted "$work/runs/slow$v.$i") = true ]] || same "slow$v.$i" reference
            speed "slow$v.$i" "$plan" >"$work/runs/speed$v.$i"
        done
        echo "| $name | $(jq -r '.windows | "\(.chunk_bytes / 1024) KiB, \(.windows), \(.runs)"' "$work/runs/slow$v.1") |" \
            "$(mid "speed$v" . | thousands) | $(mid "slow$v" "$stream read_mbs" | awk '{printf "%.1f", $1}') |" \
            "$(mid "slow$v" "$stream written_mbs" | awk '{printf "%.1f", $1}') |" \
            "$(mid "slow$v" "$stream ([read_mbs, written_mbs] | max) / $mbps" | percent) |" \
            "$(mid "slow$v" "$stream reads | round"), $(mid "slow$v" "$stream writes | round") |" \
            "$(mid "slow$v" "$stream .stalls.seconds / trained" | percent) |" \
            "$(jq -r 'if .interrupted then "stopped" else "as resident" end' "$work/runs/slow$v.1") |"
    done
}
# The figures are those of the last whole epoch, as the first one reads few rows, and include what is merged.
stream='def trained: .phase_seconds | .plan + .wait_store + .gather + .compute + .step + .evaluate;
    def last: .epochs[-1] // error("no epoch ended: give it more --seconds");
    def read_mbs: last | (.read_bytes + .plan_read_bytes) / .seconds / 1e6;
    def written_mbs: last | .written_bytes / .seconds / 1e6;
    def reads: last | .reads / .seconds;
    def writes: last | .writes / .seconds;'

# ---- huge ----

# Train until the last epoch's line is there, then end the process: no export. Leaves what was measured in $work/runs/huge.
until_epoch() { # LIMIT LAST OPTION...
    local limit=$1 last=$2 log=$work/runs/huge.log pid peak=0 now trainer
    shift 2
    (trap - EXIT && in_cgroup "$limit" "$tools/drps-train" -o "$work/model" --force "$@") >"$log" 2>"$log.err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -q "^ *$last " "$log"; do
        trainer=$(pgrep -P $pid -x drps-train || true)
        now=$([[ -z $trainer ]] || awk '/VmHWM/ {print $2 * 1024}' "/proc/$trainer/status" 2>/dev/null || true)
        peak=${now:-$peak}
        sleep 0.2
    done
    grep -q "^ *$last " "$log" || die "drps-train failed: $(cat "$log.err")"
    kill -KILL "$(pgrep -P $pid -x drps-train)"
    wait $pid 2>/dev/null || true
    rm -rf "$work/model.partial"
    awk -v peak="$peak" -v last="$last" '{u["KiB"] = 1024; u["MiB"] = 1048576; u["GiB"] = 1073741824}
        $1 == last {printf "{\"seconds\": %s, \"rate\": %s, \"read\": %.0f, \"written\": %.0f, \"stalled\": %s, \"peak\": %s}\n",
            $4, $3, $5 * u[$6], $7 * u[$8], $9 / 100, peak}' "$log" >"$work/runs/huge"
}

huge() {
    local users=${option[users]:-2700K} items=${option[items]:-10K} n=${option[ratings]:-8M} rank=${option[factors]:-2000}
    local last=${option[epochs]:-1} memory=${option[memory]:-2G} export=${option[export]:-auto} optimizer=${option[optimizer]:-adagrad}
    local bytes row rows stream_bytes total free text states
    bytes=$(numfmt --from=iec "$memory")
    case $optimizer in sgd) states=0 ;; adagrad) states=1 ;; ftrl) states=2 ;; *) die "--optimizer $optimizer" ;; esac
    row=$(((rank + 1) * 4 * (1 + states)))
    text=$(ratings_text "$users" "$items" "$n")
    note "index"
    in_cgroup $((bytes * 11 / 10)) "$tools/drps-index" "$text" -o "$work/huge" --force --quiet --json --algo lmf --factors "$rank" \
        --order grid ${option[grid]:+--grid "${option[grid]}"} --memory "$bytes" --batch-size "$batch" >"$work/huge.index"
    rm "$text"
    rows=$(jq .rows "$work/huge.index")
    # The stream file has room for all rows and a quarter more; parameters are put in order and then written as a model.
    stream_bytes=$((rows * row * 5 / 4))
    total=$((stream_bytes + 2 * rows * (rank + 1) * 4))
    free=$(df -B1 --output=avail "$work" | tail -1)
    note "$rows rows, $(gb <<<$((rows * row))) GB; with export $(gb <<<"$total") GB of disk, $(gb <<<"$free") GB are free"
    ((stream_bytes && stream_bytes < free)) || die "no room for $(gb <<<"$stream_bytes") GB"
    [[ $export != auto ]] || export=$( ((total + total / 20 < free)) && echo yes || echo no)
    cold huge
    if [[ $export = yes ]]; then
        must run $((bytes * 11 / 10)) "$work/huge" --store relay --memory "$bytes" --epochs "$last" --optimizer "$optimizer"
        jq '.epochs[-1] as $e | {seconds: $e.seconds, rate: $e.samples_per_s, read: $e.read_bytes, written: $e.written_bytes,
            stalled: $e.stall_share, peak: .peak_rss_bytes, export: .phase_seconds.export, whole: .seconds}' "$work/runs/run" >"$work/runs/huge"
    else
        until_epoch $((bytes * 11 / 10)) "$last" "$work/huge" --store relay --memory "$bytes" --epochs "$last" --optimizer "$optimizer"
    fi
    echo "### A model of $(gb <<<$((rows * row))) GB in $memory: matrix factorisation of rank $rank, $optimizer, $rows users and items, $n ratings, grid of $(grid_of huge), epoch $last"
    machine
    echo "| model | drps-index | an epoch | samples/s | GB read, written | MB/s | waiting | peak resident set | writing the model |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    jq -r --arg memory "$(gb <<<$((rows * row))) GB in ${memory}iB" --argjson x "$(jq .seconds "$work/huge.index")" '"| \($memory) | \($x | round) s | \(.seconds | round) s | \(.rate | round) | \(.read / 1e7 | round / 100), \(.written / 1e7 | round / 100) | \((.read + .written) / .seconds / 1e6 | round) | \(.stalled * 1000 | round / 10) % | \(.peak / 1048576 | round) MiB | \(if .export then "\(.export | round) s" else "not done: no room on this disk" end) |"' "$work/runs/huge"
}

labels=1 # cells of a line that name it
case $command in
ratio | engines) labels=2 ;;
ratings) labels=3 ;;
esac
topic=relay-$command
if [[ $command = curve ]]; then # one for each model and order, but those that are usual
    [[ ${option[models]:-fm:16} = fm:16 ]] || topic+=-$(tr : - <<<"${option[models]}")
    [[ ${option[order]:-shuffled} = shuffled ]] || topic+=-${option[order]}
fi
case $command-${option[models]:-} in
ratio-wide-deep:* | ratio-deepfm:* | ratio-dlrm:* | ratio-dcn:*) topic+=-$(tr ' :' '--' <<<"${option[models]}") ;;
esac
"$command" | tables "$topic" $labels
