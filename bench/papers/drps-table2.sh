#!/usr/bin/env bash
# "DRPS", Table 2: convergence time with one part of the system upon the other: indexing, partitioning, then instead of bsp asp, ssp (its bound
# tuned from 0 to infinity) or wsp; five machines. The gains of all, the last line over the first: 41, 46, 30 and 22 %.
# "its": rows one by one, then blocks by topk, homes by hash, then by the paper's greedy partition; each use of a block is two requests; wsp as it
# is printed. "ours": from its first line on, blocks by auto, homes by auto with samples placed in their round, store relay with a quarter of the
# rows in memory; drps's wsp.
# An epoch of bsp on equal machines takes what computing, the disk and the link take, priced by counts: computing and the disk as
# drps-index --calibrate measures them here, a link of 1 Gbit/s by its busiest. Its time is multiplied by epochs and simulated waiting
# (drps-parallel.sh: times with a tail).
#   bench/papers/drps-table2.sh [--quick] [DATA]
# Needs jq. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/drps-parallel.sh"
timing=$(quickly straggler tail)
rows_kept=$(quickly 300 2000) # by the paper, more than a thousand take longer than training

minutes() { # SET: the paper's, of the six lines
    case $1 in
    matrix) echo 1468 1268 1125 1135 979 864 ;;
    movielens) echo 93 82 75 78 62 50 ;;
    classification) echo 260 232 214 232 212 182 ;;
    avazu) echo 273 238 227 236 219 212 ;;
    esac
}

# seconds SET PLAN COUNTS: an epoch of bsp on equal machines. COUNTS: jq that gives requests, read and written bytes of all machines, and whether
# the disk works beside computing. All plans of a set are priced by what was measured when the first was made.
seconds() {
    jq --argjson m $machines --slurpfile first "$work/$1-first.json" '$first[0].speeds as $s | '"$3"' as [$requests, $read, $written, $beside] |
        (.samples / $m * $s.sample_ns * 1e-9) as $compute |
        ((($requests / 2) * ($s.read_request_ns + $s.write_request_ns) * 1e-9 + $read / $s.read_bytes_per_s + $written / $s.write_bytes_per_s) / $m) as $disk |
        .link_least_seconds + if $beside then [$compute, $disk] | max else $compute + $disk end' "$work/$1-$2.json"
}
# As the paper has it: each use of a block is read and written, nothing stays in memory. Without an index each row is a block.
one_by_one='([.ranks[].row_uses] | add) as $n | [2 * $n, $n * .row_bytes, $n * .row_bytes, false]'
by_blocks='[2 * .block_uses, .block_use_rows * .row_bytes, .block_use_rows * .row_bytes, false]'
by_windows='(.rows * .row_bytes / 4) as $quarter | ([.forecast[] | select(.store == "relay" and .feasible and .memory_bytes >= .9 * $quarter)] |
    min_by(.memory_bytes) | [.ios, .read_bytes, .written_bytes, true])'

for set in $sets; do
    plan "$set" first --partition hash --calibrate "$work"
    plan "$set" index --blocks topk --prune-to "$rows_kept" --partition hash
    plan "$set" both --blocks topk --prune-to "$rows_kept" --partition greedy
    plan "$set" ours --blocks auto --partition auto
    results "$set" "$timing" >"$work/$set.lines"
    time_of() { awk -v mode="$1" '$1 == mode { print $2 == "-" ? "nan" : $2 }' "$work/$set.lines"; }
    bsp=$(time_of bsp) best=$(best_bound <"$work/$set.lines")
    its=("$(seconds "$set" first "$one_by_one")" "$(seconds "$set" index "$by_blocks")" "$(seconds "$set" both "$by_blocks")")
    ours=$(seconds "$set" ours "$by_windows")
    bound=$(awk '{ split($1, m, ":"); print m[1] == "bsp" ? 0 : m[1] == "asp" ? "inf" : m[2] }' <<<"$best")
    # shellcheck disable=SC2046 # words
    set -- $(minutes "$set")
    line() { # NAME PAPER-MINUTES PAPER-FIRST ITS OURS, both of the first's seconds and bsp's time
        awk -v head="| $(title "$set"), $1 | $2" -v paper="$(awk "BEGIN { print $2 / $3 }")" -v its="$4" -v ours="$5" -v first="${its[0]}" 'function share(x) { return x == "" || x ~ /nan/ ? "-" : sprintf("%.3f", x / first) }
            BEGIN { printf "%s | %.2f | %s | %s |\n", head, paper, share(its), share(ours) }'
    }
    times() { awk "BEGIN { a = \"$2\"; print a ~ /nan/ ? \"nan\" : $1 * ${2/nan/0} / $bsp }"; }
    line "DRPS" "$1" "$1" "${its[0]}" "${its[0]}"
    line "+ indexing" "$2" "$1" "${its[1]}" ""
    line "+ partitioning" "$3" "$1" "${its[2]}" "$ours"
    line "+ both, asp" "$4" "$1" "$(times "${its[2]}" "$(time_of asp)")" "$(times "$ours" "$(time_of asp)")"
    line "+ both, ssp (best bound: $bound)" "$5" "$1" "$(times "${its[2]}" "$(awk '{ print $2 }' <<<"$best")")" "$(times "$ours" "$(awk '{ print $2 }' <<<"$best")")"
    line "+ both, wsp" "$6" "$1" "$(times "${its[2]}" "$(time_of wsp-literal)")" "$(times "$ours" "$(time_of wsp)")"
done | table paper-drps-table2 1 "set, with | paper: minutes | paper: of the first | its method: of the first | ours: of the first"
