#!/usr/bin/env bash
# Numbers to watch: drps-index and drps-train write them to a file and serve them at a port, each rank its own; docs/metrics.md has
# all of them; what cannot be written or served is refused before work starts; and models are the same with them.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" matrix --users 2K --items 500 --ratings 40K --seed 3 -o data.tsv --quiet
# number FILE NAME [LABELS]: its value for rank 0
number() { awk -v name="$2{rank=\"0\"${3:+,$3}}" '$1 == name {print $2}' "$1"; }
# get HOST PORT: what is served at /metrics there, without the head of HTTP
get() {
    { exec 4<>"/dev/tcp/$1/$2"; } 2>/dev/null || return 1
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&4
    sed '1,/^\r$/d' <&4
    exec 4<&-
}

# drps-index
"$tools/drps-index" data.tsv --algo lmf --factors 4 --test-fraction 0.1 -o plan --memory 64M --metrics-file index.prom --quiet
[[ $(number index.prom drps_index_input_bytes_total) = $(stat -c %s data.tsv) ]] || fail "input bytes: $(cat index.prom)"
[[ $(number index.prom drps_index_input_size_bytes) = $(stat -c %s data.tsv) ]] || fail "input size: $(cat index.prom)"
[[ $(number index.prom drps_index_lines_total) = $(wc -l <data.tsv) ]] || fail "lines: $(cat index.prom)"
[[ $(number index.prom drps_index_samples_total) = $(wc -l <data.tsv) ]] || fail "samples: $(cat index.prom)"
[[ $(number index.prom drps_memory_limit_bytes) = $((64 << 20)) ]] || fail "memory: $(cat index.prom)"
[[ ! -e plan/metrics.prom ]] || fail "the plan has a file of metrics"
echo "ok drps-index"

# drps-train with each store: what the report says of a run, its numbers say, too
stores=(resident relay)
for store in file rocksdb leveldb; do
    "$tools/drps-train" plan -o try --store $store --memory 256M --quiet 2>err.txt && stores+=("$store")
    rm -rf try
done
for store in "${stores[@]}"; do
    memory=40M
    [[ $store = *db ]] && memory=256M # more than their least
    "$tools/drps-train" plan -o "$store" --store "$store" --memory $memory --epochs 3 --json --quiet >report.json
    "$tools/drps-train" plan -o watched --force --store "$store" --memory $memory --epochs 3 --json --quiet --metrics-file train.prom >watched.json
    [[ $(value content <report.json) = $(value content <watched.json) ]] || fail "$store: another model when it is watched"
    trained=$(($("$tools/drps-stat" plan --json | value samples) * 3))
    [[ $(number train.prom drps_train_samples_total) = "$trained" ]] || fail "$store: samples: $(cat train.prom)"
    [[ $(number train.prom drps_train_steps_left) = 0 ]] || fail "$store: steps are left: $(cat train.prom)"
    [[ $(number train.prom drps_train_phase 'phase="end"') = 1 ]] || fail "$store: it has not ended: $(cat train.prom)"
    [[ $(number train.prom drps_train_store "store=\"$store\"") = 1 ]] || fail "$store: store: $(cat train.prom)"
    for op in read write; do
        name=${op/write/written}_bytes
        [[ $(number train.prom drps_store_bytes_total "op=\"$op\"") = $(sed -n '/^  "io": {/,/^  }/p' watched.json | all_values "$name") ]] ||
            fail "$store: $name: $(cat train.prom watched.json)"
    done
    near "$(number train.prom drps_train_test_loss)" "$(all_values test_loss <watched.json | tail -1)" 1e-6 || fail "$store: test loss"
    [[ ! -e watched/metrics.prom ]] || fail "the model has a file of metrics"
    cp train.prom "$store.prom"
done
echo "ok drps-train: ${stores[*]}"

# Every rank: files and ports of its own
read -r address < <(ports 1)
host=${address%:*} port=${address#*:}
"$tools/drps-index" data.tsv --algo lmf --factors 4 --test-fraction 0.1 --workers 2 --order shuffled --partition range -o ranks --quiet
for transport in zmq inproc; do
    "$tools/drps-train" ranks -o model --force --local 2 --transport $transport --epochs 2 --memory 128M --quiet --metrics-file $transport.prom ||
        skip "this build has no $transport"
    for rank in 0 1; do
        file=$transport.rank-$rank.prom
        grep -q "^drps_train_ranks{rank=\"$rank\"} 2\$" $file || fail "$file: $(cat $file)"
        grep -qE "^drps_net_sent_bytes_total{rank=\"$rank\",peer=\"$((1 - rank))\"} [1-9]" $file || fail "$file: $(cat $file)"
    done
    sum=$(cat $transport.rank-?.prom | awk '/^drps_train_samples_total/ {sum += $2} END {print sum}')
    [[ $sum = $(($("$tools/drps-stat" ranks --json | value samples) * 2)) ]] || fail "$transport: $sum samples"
done
echo "ok ranks"

# While a job runs: the folder that it works in, and a port
for plan in plan ranks; do
    local=() dirs=(live.partial)
    [[ $plan = ranks ]] && local=(--local 2) dirs=(live.partial live.rank-1.partial)
    "$tools/drps-train" $plan -o live "${local[@]}" --epochs 100000 --memory 128M --quiet --metrics-port "$host:$port" &
    job=$!
    for dir in "${dirs[@]}"; do
        until grep -q '^drps_train_epoch{rank="[01]"} [1-9]' "$dir/metrics.prom" 2>/dev/null; do kill -0 $job || fail "the job ended"; pause; done
    done
    for ((r = 0; r < ${#dirs[@]}; r++)); do
        if ! get "$host" $((port + r)) >port.txt; then
            grep -q microhttpd port.txt && break
            fail "nobody listens at $host:$((port + r))"
        fi
        grep -qE "^drps_train_samples_total{rank=\"$r\"} [0-9]" port.txt || fail "$host:$((port + r)): $(cat port.txt)"
    done
    if ((${#local[@]} == 0)); then # another job cannot have the port
        fails 75 "metrics cannot be served at port $port of $host: Address already in use" \
            "$tools/drps-train" $plan -o other --quiet --metrics-port "$host:$port"
        absent other
    fi
    kill -INT $job
    wait $job || [[ $? = 130 ]] || fail "the job ended with $?"
    [[ ! -e live/metrics.prom ]] || fail "the model has a file of metrics"
    for dir in "${dirs[@]}"; do [[ ! -e $dir ]] || fail "$dir is left"; done
    rm -rf live live.checkpoint
done
echo "ok a port and the folder"

# Mistakes, before work starts
fails 1 "none/x.prom cannot be written: No such file" "$tools/drps-train" plan -o other --quiet --metrics-file none/x.prom
fails 1 "data.tsv is there, and no file of metrics" "$tools/drps-train" plan -o other --quiet --metrics-file data.tsv
fails 1 "data.tsv is there, and no file of metrics" "$tools/drps-index" data.tsv --algo lmf -o other --quiet --metrics-file data.tsv
fails 2 "give PORT or ADDRESS:PORT" "$tools/drps-train" plan -o other --metrics-port :9100
fails 2 "metrics-port" "$tools/drps-train" plan -o other --metrics-port 70000
fails 2 "localhost is no address" "$tools/drps-train" plan -o other --quiet --metrics-port localhost:9100
absent other
head -1 data.tsv | grep -q '^[0-9]' || fail "data.tsv was overwritten"
echo "ok mistakes"

# docs/metrics.md: every name with its kind, and what each means as the tools say it
table() { sed -nE 's/^\| `([a-z_]+)` \| (counter|gauge|histogram) \| .* \| (.*) \|$/\1 \2 \3/p' "$source/docs/metrics.md" | LC_ALL=C sort -u; }
printed() {
    cat ./*.prom port.txt | awk '/^# HELP / {name = $3; sub(/^# HELP [^ ]* /, ""); help = $0} /^# TYPE / {print $3, $4, help}' | LC_ALL=C sort -u
}
diff <(table) <(printed) || fail "docs/metrics.md differs from what is printed"
echo "ok $(table | wc -l) numbers in docs/metrics.md"

if command -v promtool >/dev/null; then
    for file in index.prom resident.prom relay.prom zmq.rank-0.prom; do
        promtool check metrics <$file >lint.txt 2>&1 || fail "promtool says of $file: $(cat lint.txt)"
        [[ ! -s lint.txt ]] || fail "promtool says of $file: $(cat lint.txt)"
    done
    echo "ok promtool"
else
    echo "SKIPPED: promtool is not installed: nobody else reads the files"
fi
