#!/usr/bin/env bash
# drps-index on several machines, each with data of its own, or a share of the same: the plan of one machine, which trains
# to the same model; mistakes, interruption, killed ranks and full disks: all end, the one to blame is named, and nothing is left.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 12K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
split -n l/3 -d data.svm part.

# ---- One machine, several processes ----

if ! "$tools/drps-index" data.svm --algo lor --local 2 -o plan --quiet 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "two ranks: $(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
rm -r plan

local_same() { # NAME OPTIONS...
    local name=$1
    shift
    "$tools/drps-index" "$@" --samples dealt --memory 256M --test-fraction 0.1 --workers 3 -o one --quiet
    "$tools/drps-index" "$@" --samples dealt --memory 256M --test-fraction 0.1 --local 3 -o plan >said.txt 2>err.txt || fail "$name: $(cat err.txt)"
    same_plan one plan || fail "$name: three processes make another plan than one"
    grep -qE "made by  3 machines, which sent [0-9.]+ .*B to each other" said.txt || fail "$name: says $(cat said.txt)"
    "$tools/drps-stat" plan --verify >said-stat.txt || fail "$name: the plan is not whole"
    rm -r one plan
    echo "ok $name"
}
awk 'BEGIN {srand(5); print "site,price,click"; for (i = 0; i < 5000; i++) printf "s%d,%.2f,%d\n", rand() * 300, rand() * 90, rand() < .3}' >data.csv
awk 'BEGIN {srand(6); for (i = 0; i < 6000; i++) printf "u%d\ti%d\t%d\n", rand() * 500, rand() * 300, 1 + rand() * 5}' >ratings.tsv
five_classes
xz -k part.01
local_same clicks data.svm --algo fm --factors 4
local_same "a compressed file" part.00 part.01.xz part.02 --algo lor --partition range
local_same csv data.csv --algo lor --label click
local_same "hashed columns" data.csv --algo lor --label click --hash-bits 8
local_same ratings ratings.tsv --algo lmf --factors 4
awk '{print $1 "\t" $2 "\t" $3 % 2}' ratings.tsv >two.tsv
local_same classes train.svm --algo mlr
local_same "balanced classes" train.svm --algo mlr --class-weights balanced
local_same "labels of ratings" two.tsv --algo svm --format ratings
local_same "little memory" data.svm --algo lor --blocks none

for i in 1 2 3; do # each rank has a file, and a port, of its own
    "$tools/drps-index" data.svm --algo lor --local 3 -o plan --quiet --metrics-file run.prom --metrics-port "$(ports 1 | sed 's/.*://')" || fail "numbers to watch of three ranks"
    [[ -s run.rank-0.prom && -s run.rank-2.prom && ! -e run.prom ]] || fail "numbers to watch: $(ls)"
    rm -r plan
done
echo "ok numbers to watch"

# ---- Several machines, each with its own data ----

start() { # N OPTIONS...: ranks 1 to N - 1 in the background, in folders of their own; their ids are in pids
    local n=$1 r
    shift
    pids=()
    for ((r = 1; r < n; r++)); do
        mkdir -p "machine-$r"
        "$tools/drps-index" part.0$r --peers peers.txt --peer-rank $r -o "machine-$r/plan" --timeout 60 "$@" >"said-$r.txt" 2>"rank-$r.txt" &
        pids+=($!)
    done
}
empty() { [[ -z $(ls -A "machine-$1") ]] || fail "rank $1 left behind: $(ls "machine-$1")"; }
first() { "$tools/drps-index" part.00 --peers peers.txt --peer-rank 0 --timeout 60 "$@"; }

ports 3 >peers.txt
start 3 --algo lor --memory 256M
first --algo lor --memory 256M -o plan --json >whole.json
for pid in "${pids[@]}"; do wait "$pid" || fail "a rank ended with $?: $(cat rank-*.txt)"; done
"$tools/drps-index" part.00 part.01 part.02 --algo lor --workers 3 --samples kept --memory 256M -o one --quiet
for r in 1 2; do
    grep -q "^rank $r of 3: plan machine-$r/plan/rank-$r" "said-$r.txt" || fail "rank $r says: $(cat "said-$r.txt")"
    mv "machine-$r/plan/rank-$r" plan/
    diff <(grep -v '"command"\|"checksum"' one/plan.json) <(grep -v '"command"\|"checksum"' "machine-$r/plan/plan.json") || fail "rank $r has another plan.json"
    rm -r "machine-$r/plan"
done
same_plan one plan || fail "three machines make another plan than one"
[[ $(all_values sent_bytes <whole.json | wc -l) = 3 ]] || fail "not told what was sent: $(cat whole.json)"
"$tools/drps-train" one --local 3 -o model-one --quiet
"$tools/drps-train" plan --local 3 -o model --quiet
cmp model-one/names.rec model/names.rec
"$tools/drps-predict" model-one data.svm -o a.txt --quiet
"$tools/drps-predict" model data.svm -o b.txt --quiet
cmp a.txt b.txt || fail "another model"
rm -r plan one model model-one
echo "ok own data"

# On one disk, started as a launcher does, all with the same files.
ports 3 >peers.txt
launched() { env PMI_RANK=$1 PMI_SIZE=3 "$tools/drps-index" data.svm --algo lor --shared --samples dealt --memory 256M --peers peers.txt -o plan --timeout 60 --quiet; }
launched 1 &
launched 2 &
launched 0 || fail "started by a launcher: $?"
wait
"$tools/drps-index" data.svm --algo lor --workers 3 --samples dealt --memory 256M -o one --quiet
same_plan one plan || fail "shares of the same files give another plan"
rm -r plan one
echo "ok shares"

# ---- Mistakes ----

here() { "$tools/drps-index" "$@" -o never --local 2; }
fails 1 "cannot open nowhere" here nowhere --algo lor
[[ $(grep -c . err.txt) = 1 ]] || fail "said more than once: $(cat err.txt)"
fails 2 "standard input cannot be read in shares" here - --algo lor
fails 2 "--local runs all ranks" here data.svm --algo lor --peers peers.txt
fails 2 "order grid: several machines" here ratings.tsv --algo lmf --order grid
fails 2 "blocks other than" here data.svm --algo lor --blocks auto
fails 2 "residual slots" here data.svm --algo lor --residuals all
fails 2 "5 workers and 2 machines" here data.svm --algo lor --workers 5
sed '9000s/:/;/' data.svm >bad.svm
fails 1 "bad.svm:9000:" here bad.svm --algo lor
mkdir -p never-2
fails 1 "exists" "$tools/drps-index" data.svm --algo lor --local 2 -o never-2
absent never
ports 2 >peers.txt
start 2 --algo lor --seed 5
fails 2 "rank 1 was started with other options" first --algo lor -o never
wait "${pids[0]}" && fail "rank 1 did not notice other options"
absent never
empty 1
ports 2 >peers.txt
start 2 --algo lor --hash-bits 8
fails 2 "rank 1 was started with other options" first --algo lor --hash-bits 9 -o never
wait "${pids[0]}" && fail "rank 1 did not notice other hashing"
ports 2 >peers.txt
"$tools/drps-index" data.svm --algo lor --shared --peers peers.txt --peer-rank 1 -o machine-1/plan --timeout 60 2>rank-1.txt &
fails 2 "rank 1 has other test files than rank 0" "$tools/drps-index" data.svm --test part.00 --algo lor --shared --peers peers.txt --peer-rank 0 -o never --timeout 60
wait $! && fail "rank 1 did not notice other test files"
absent never
empty 1
echo "ok mistakes"

# ---- Ends of all kinds, while ranks read ----

"$tools/drps-gen" ctr --samples 300K --fields 20 --rows 100K --seed 1 -o long.svm --quiet
sum() { all_values "$1" <whole.json | awk '{ sum += $1 } END { print sum }'; }
for how in kept dealt; do
    "$tools/drps-index" long.svm --algo lor --local 3 --samples $how --memory 256M -o plan --json --quiet >whole.json
    near "$(sum sent_forecast_bytes)" "$(sum sent_bytes)" 0.05 || fail "$how: sent another number of bytes than forecast: $(grep sent_ whole.json)"
    rm -r plan
done
echo "ok forecast of what is sent"

reading() { # until every rank reads; the processes must live on
    local pid folder tries=0
    for folder in never.partial machine-1/plan.rank-1.partial machine-2/plan.rank-2.partial; do
        until [[ -e $folder/scratch/train-31 ]]; do
            for pid in "$@"; do kill -0 "$pid" || fail "ended early: $(cat err.txt rank-*.txt)"; done
            ((++tries < 20000)) || fail "$folder never appeared"
            pause
        done
    done
}
ends() { # SIGNAL RANK: rank RANK gets the signal; the others say so and exit with 1
    local signal=$1 victim=$2 all says=(err.txt rank-1.txt rank-2.txt) r status
    ports 3 >peers.txt
    cp long.svm part.01
    cp long.svm part.02
    start 3 --algo lor --silence 1 --quiet
    "$tools/drps-index" long.svm --algo lor --peers peers.txt --peer-rank 0 --timeout 60 -o never --silence 1 --quiet 2>err.txt &
    all=($! "${pids[@]}")
    reading "${all[@]}"
    kill -"$signal" "${all[victim]}"
    for r in 0 1 2; do
        status=0 && wait "${all[r]}" 2>/dev/null || status=$?
        if ((r == victim)); then
            [[ $signal = KILL || $status = 130 ]] || fail "rank $r ended with $status after $signal: $(cat "${says[r]}")"
            continue
        fi
        [[ $status = 1 ]] || fail "rank $r ended with $status after $signal for rank $victim: $(cat "${says[r]}")"
        grep -qE "rank $victim \\(.*$([[ $signal = KILL ]] && echo 'dead or cut off' || echo 'gave up: .*interrupted')" "${says[r]}" ||
            fail "rank $r does not name rank $victim after $signal: $(cat "${says[r]}")"
    done
    [[ ! -e never ]] || fail "a plan although rank $victim got $signal"
    [[ $signal = KILL ]] || { absent never && empty 1 && empty 2; } || fail "$signal for rank $victim: left behind"
    rm -rf never.partial machine-1 machine-2 # what a killed rank could not tidy up
    echo "ok $signal for rank $victim"
}
ends INT 1
ends KILL 0
ends KILL 2

# A rank that waits for another, which waits for its input: Ctrl-C ends it at once.
mkfifo slow.svm
exec 9<>slow.svm # a writer that writes nothing
ports 2 >peers.txt
"$tools/drps-index" slow.svm --algo lor --peers peers.txt --peer-rank 1 --timeout 60 -o slow --quiet 2>rank-1.txt &
reader=$!
"$tools/drps-index" part.00 --algo lor --peers peers.txt --peer-rank 0 --timeout 60 -o never --quiet 2>err.txt &
waiting=$!
tries=0
until [[ -e never.partial/scratch/from-0 ]]; do # it has read, and opens streams
    kill -0 "$waiting" && kill -0 "$reader" || fail "ended early: $(cat err.txt rank-1.txt)"
    ((++tries < 6000)) || fail "rank 0 opened no streams"
    pause
done
kill -INT "$waiting"
status=0 && wait "$waiting" || status=$?
[[ $status = 130 ]] || fail "Ctrl-C for a rank that waits: it ended with $status: $(cat err.txt)"
exec 9>&-
wait "$reader" && fail "a plan although a rank was interrupted"
grep -q "rank 0 .*gave up: .*interrupted" rank-1.txt || fail "rank 1 says: $(cat rank-1.txt)"
absent never
absent slow
echo "ok Ctrl-C for a rank that waits"

# A disk too small for a rank's scratch files.
mkdir -p machine-2
if mount -t tmpfs -o size=1m tmpfs machine-2 2>/dev/null; then
    trap 'umount -l machine-2 2>/dev/null || true; rm -rf "$work"' EXIT
    ports 3 >peers.txt
    start 3 --algo lor --quiet
    fails 1 "rank 2.*[nN]o space" "$tools/drps-index" long.svm --algo lor --peers peers.txt --peer-rank 0 --timeout 60 -o never
    wait "${pids[1]}" && fail "rank 2 did not notice that its disk is full"
    grep -q "[nN]o space" rank-2.txt || fail "rank 2 says: $(cat rank-2.txt)"
    wait "${pids[0]}" && fail "rank 1 did not notice that rank 2 failed"
    absent never
    empty 1
    empty 2
    echo "ok full disk"
else
    echo "not tried: a full disk, which needs root"
fi

# ---- Memory ----

"$tools/drps-gen" ctr --samples 150K --fields 39 --rows 3M --zipf 1.02 --seed 2 -o wide.svm --quiet
in_cgroup $((64 * 2 * 11 / 10 << 20)) "$tools/drps-index" wide.svm --algo lor --local 2 --memory 64M -o plan --quiet ||
    fail "two ranks of 64 MiB each do not fit 128 MiB and a tenth"
echo "ok memory"
