#!/usr/bin/env bash
# drps-recommend on real ratings: the items that drps-predict scores highest, of models of every kind of plan; folding a user in;
# what users do wrong; and a model larger than the memory that it has.
. "$(dirname "$0")/lib.sh"
data=$source/../shared/data/ml-1m
best() { "$tools/drps-recommend" "$@" --quiet; }

# ---- Generated ratings: mistakes, interruption ----

"$tools/drps-gen" matrix --users 300 --items 120 --ratings 9K --seed 3 -o small.tsv --quiet
"$tools/drps-index" small.tsv --algo lmf --factors 8 -o small-plan --quiet
"$tools/drps-train" small-plan -o small --epochs 3 --l2 0.02 --quiet
users=$(cut -f1 small.tsv | sort -u | wc -l)
best small >all.txt
[[ $(wc -l <all.txt) = $((users * 10)) ]] || fail "$(wc -l <all.txt) lines for $users users"
best small -n 3 -o three.txt --threads 3 --products own
cmp three.txt <(awk '$2 <= 3' all.txt) || fail "the best 3 are not the first of the best 10"
best small --json -o all.json >summary.json
[[ $(value queries <summary.json) = "$users" && $(wc -l <all.json) = "$users" ]] || fail "--json: $(cat summary.json)"
[[ $(grep -o '"score": ' all.json | wc -l) = $((users * 10)) ]] || fail "--json has other items"
someone=$(head -1 all.txt | cut -f1)
cmp <(best small --user "$someone") <(head -10 all.txt) || fail "--user $someone gives others"
cmp <(cut -f1 small.tsv | head -50 | best small --users -) <(awk 'NR == FNR {wanted[$1] = 1; next} $1 in wanted' <(head -50 small.tsv) all.txt) ||
    fail "--users - gives others"
best small --seen small.tsv -o unseen.txt
awk -F'\t' 'NR == FNR {seen[$1, $2] = 1; next} ($1, $3) in seen {exit 1}' small.tsv unseen.txt || fail "--seen: an item that was rated"
(echo item,stars,user && awk -v OFS=, '{print $2, $3, $1}' small.tsv) >small.csv
cmp <(best small --seen small.csv --format csv) unseen.txt || fail "--seen in csv: other items"
"$tools/drps-predict" small small.tsv -o scores.tsv.txt --quiet && "$tools/drps-predict" small small.csv --format csv --label stars -o scores.csv.txt --quiet
cmp scores.tsv.txt scores.csv.txt || fail "drps-predict scores ratings in csv otherwise"
awk '{printf "{\"user\": \"%s\", \"item\": %s, \"stars\": %s}\n", $1, $2, $3}' small.tsv >small.jsonl
cmp <(best small --fold-in small.jsonl --format jsonl --label stars) <(best small --fold-in small.tsv) || fail "--fold-in as jsonl: other items"
fails 2 "the columns of ids.csv are not the users and items of small: name the columns, or the format ratings" bash -c \
    "(echo id,item && echo 1,2) >ids.csv; $tools/drps-recommend small --seen ids.csv --format csv"
cut -f2 small.tsv | sort -u | head -20 >twenty.txt
best small --candidates twenty.txt -n 100 >candidates.txt
cmp <(cut -f3 candidates.txt | sort -u) twenty.txt || fail "--candidates: other items"
! best small --exclude twenty.txt -n 100 | cut -f3 | grep -qxFf twenty.txt || fail "--exclude: an item of the list"
item=$(head -1 twenty.txt)
[[ $(best small --similar "$item" -n 7 | awk -F'\t' -v i="$item" '$1 == i && $3 != i && $4 <= 1' | wc -l) = 7 ]] || fail "--similar $item"
: >empty.tsv
"$tools/drps-recommend" small --test empty.tsv -o never.tsv >out.txt 2>err.txt
grep -q 'empty.tsv has no held-out ratings' err.txt || fail "an empty test file: $(cat err.txt)"
[[ $(best small --all-similar -n 2 | wc -l) = $((2 * $(cut -f2 small.tsv | sort -u | wc -l))) ]] || fail "--all-similar"

fails 2 "no model" "$tools/drps-recommend"
fails 1 "nowhere: No such file or directory" "$tools/drps-recommend" nowhere
fails 2 "is a model of algorithm lor; recommending needs users and items" bash -c \
    "printf '1 1:1\n0 2:1\n' >two.svm && $tools/drps-index two.svm --algo lor -o lor-plan -q && $tools/drps-train lor-plan -o lor -q && $tools/drps-recommend lor"
fails 1 "exists" "$tools/drps-recommend" small -o three.txt
best small -n 1 -o three.txt --force && [[ $(wc -l <three.txt) = "$users" ]] || fail "--force does not replace"
fails 2 "is the input" "$tools/drps-recommend" small --seen small.tsv -o small.tsv --force
fails 2 "lies in the folder" "$tools/drps-recommend" small -o small/best.txt
fails 1 "has no user 'nobody'.*--on-unknown" "$tools/drps-recommend" small --user nobody
: >nobody.txt
for list in --users --candidates; do
    "$tools/drps-recommend" small $list nobody.txt -n 2 >nothing.txt 2>warned.txt
    [[ ! -s nothing.txt ]] && grep -q 'nobody.txt names nothing that the model has' warned.txt || fail "$list: $(cat nothing.txt warned.txt)"
done
fails 1 "twenty-one.txt:21: small has no item 'none'" bash -c "(cat twenty.txt; echo none) >twenty-one.txt; $tools/drps-recommend small --candidates twenty-one.txt"
fails 1 "standard input:2: small has no user 'nobody'" bash -c "printf '%s\nnobody\n' $someone | $tools/drps-recommend small --users -"
fails 2 "standard input is read once" "$tools/drps-recommend" small --users - --candidates -
[[ $(best small --on-unknown skip --user nobody --user "$someone" | wc -l) = 10 ]] || fail "--on-unknown skip"
fails 2 "give no users" "$tools/drps-recommend" small --similar "$item" --user "$someone"
fails 2 "goes with --fold-in" "$tools/drps-recommend" small --fold-l2 1
fails 1 "small.txt:2:" bash -c "printf '1 2 3\n1 2 x\n' >small.txt; $tools/drps-recommend small --fold-in small.txt"
printf 'a b c\n' >other.svm
"$tools/drps-recommend" small --seen <(printf 'x y 1\n') -o never.txt 2>err.txt >/dev/null
grep -q "warning: none of the 1 ratings" err.txt || fail "strange ratings: $(cat err.txt)"

# A full disk, a closed pipe, a signal: nothing is left, not even scratch files.
mkdir tmp
TMPDIR=$work/tmp fails 1 "cannot write to standard output" bash -c "$tools/drps-recommend small -n 100 >/dev/full"
mkfifo late
"$tools/drps-recommend" small --seen late -o stopped.txt 2>err.txt &
pid=$!
exec 3>late # it is reading now
kill -INT $pid
status=0
wait $pid || status=$?
exec 3>&-
[[ $status = 130 ]] || fail "interrupted: $status, $(cat err.txt)"
absent stopped.txt
[[ -z $(ls tmp) ]] || fail "left in TMPDIR: $(ls tmp)"
echo "ok mistakes"

# ---- A model larger than its memory ----

awk 'BEGIN {srand(2); for (i = 0; i < 90000; i++) printf "user-%d\titem-%d\t%d\n", i % 3000, i, 1 + rand() * 5}' >large.tsv
"$tools/drps-index" large.tsv --algo lmf --factors 128 --batch-size 1000 --no-forecast -o large-plan --quiet
for store in rocksdb leveldb; do
    "$tools/drps-train" large-plan -o large-$store --epochs 1 --model-store $store --quiet || continue
    best large-$store --seen large.tsv --memory 1G -o large.txt --json --force >all.json
    least=$({ best large-$store --seen large.tsv --memory 1M 2>&1 || true; } | sed -n 's/.*at least \(--memory \)\{0,1\}\([0-9.]*\)\( MiB\|M\) is needed.*/\2M/p' | grep .) ||
        fail "the least memory is not named"
    bytes=$(awk -v m="${least%M}" 'BEGIN {printf "%d", m * 1048576}')
    in_cgroup $((bytes * 11 / 10)) "$tools/drps-recommend" large-$store --seen large.tsv --memory "$least" -o some.txt --json --force --quiet >some.json ||
        fail "drps-recommend --memory $least was ended by its limit"
    cmp large.txt some.txt || fail "other items with --memory $least"
    [[ $(value item_passes <all.json) = 1 && $(value item_passes <some.json) -gt 1 ]] ||
        fail "$(value item_passes <all.json) passes with much memory, $(value item_passes <some.json) with little"
    [[ $store = leveldb || $(value peak_rss_bytes <some.json) -le $bytes ]] || # whose mapped pages count
        fail "$(value peak_rss_bytes <some.json) bytes with --memory $least"
    [[ $store = rocksdb || ! -e rocksdb.txt ]] || cmp large.txt rocksdb.txt || fail "other items from LevelDB"
    mv large.txt $store.txt
    echo "large-$store ok: from $least on, $(value item_passes <some.json) passes"
done

# ---- Real ratings ----

[[ -d $data ]] || skip "no ml-1m in $data; all else passed"
xz -dc "$data/ratings.tsv.xz" >ratings.tsv
cut -f1 ratings.tsv | sort -un | awk 'NR % 1500 == 7' >some-users.txt
cut -f2 ratings.tsv | sort -un >items.txt
awk 'NR == FNR {item[NR] = $1; n = NR; next} {for (i = 1; i <= n; i++) print $1 "\t" item[i] "\t1"}' items.txt some-users.txt >pairs.tsv

# check MODEL: for some users, what drps-recommend finds is what drps-predict scores highest of what they have not seen
check() {
    "$tools/drps-predict" "$1" pairs.tsv -o scores.txt --force --quiet
    paste pairs.tsv scores.txt | awk -F'\t' 'NR == FNR {seen[$1, $2] = 1; next} !(($1, $2) in seen) {print $1 "\t" $4}' ratings.tsv - |
        sort -k1,1 -k2,2gr | awk '++n[$1] <= 10' >want.txt
    best "$1" --users some-users.txt --seen "$data/ratings.tsv.xz" | sort -s -k1,1 | cut -f1,4 >got.txt
    [[ $(wc -l <got.txt) = $(($(wc -l <some-users.txt) * 10)) ]] || fail "$1: $(wc -l <got.txt) lines"
    paste want.txt got.txt | awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-10 {print; bad = 1} END {exit bad}' || fail "$1: other scores than drps-predict's"
}
"$tools/drps-index" ratings.tsv --algo lmf --factors 16 --batch-size 1000 --order grid --lanes 2 -o grid --quiet
"$tools/drps-train" grid -o grid-model --epochs 8 --lr 0.1 --l2 0.05 --threads 2 --quiet
check grid-model
echo "ok grid, lanes"
if "$tools/drps-index" ratings.tsv --algo lmf --factors 8 --batch-size 5000 --workers 2 -o ranks --quiet && # rows of users and items mix
    "$tools/drps-train" ranks -o ranks-model --local 2 --transport inproc --epochs 1 --quiet; then
    grep -q '"name": *"rows"' ranks-model/model.json || fail "the rows of two ranks do not mix"
    check ranks-model
    echo "ok ranks"
fi

# Who is folded in with the ratings that the model was trained on gets nearly the same items.
best grid-model --seen ratings.tsv -o own.txt
best grid-model --fold-in ratings.tsv -o folded.txt
awk -F'\t' 'NR == FNR {own[$1, $3] = 1; next} {n++; same += ($1, $3) in own} END {printf "of 10 items %.2f are the same\n", 10 * same / n; exit same < .7 * n}' \
    own.txt folded.txt || fail "users who are folded in get other items"
echo "ok folding in"
