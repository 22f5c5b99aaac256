#!/usr/bin/env bash
# drps-stat --verify: what it says of whole plans and models, of damaged ones, as text and as JSON, and its exit status.
. "$(dirname "$0")/lib.sh"
stat=$tools/drps-stat
"$tools/drps-gen" ctr --samples 3000 --rows 500 -o data.svm --quiet
"$tools/drps-index" data.svm --algo lor --test-fraction 0.2 --batch-size 100 -o plan --quiet
"$tools/drps-index" data.svm --algo lor --test-fraction 0.2 --batch-size 100 --workers 2 -o ranks --quiet
"$tools/drps-train" plan -o model --epochs 1 --quiet
# Rows that do not all fit in memory: a plan with windows.
"$tools/drps-gen" ctr --samples 3000 --rows 20K -o wide.svm --quiet
"$tools/drps-index" wide.svm --algo fm --factors 500 --memory 64M --batch-size 100 -o wide --quiet

for what in plan ranks wide model; do
    [[ $("$stat" $what --verify) =~ ^(plan|model)\ $what\ is\ whole:\ [0-9]+\ files,\ [0-9,]+\ records?,\ .*iB\ in\ [0-9.]+\ s$ ]] ||
        fail "$what: $("$stat" $what --verify)"
    [[ $("$stat" $what --verify | wc -l) = 1 ]] || fail "$what: not one line"
    "$stat" $what --verify --json >whole.json
    [[ $(value whole <whole.json) = true && $(value problems_found <whole.json) = 0 ]] || fail "$what: $(cat whole.json)"
    for number in files records bytes; do
        [[ $(value $number <whole.json) -gt 0 ]] || fail "$what: no $number in $(cat whole.json)"
    done
done
echo "ok whole"

# A byte of every file in turn. The messages name the file, and the last one says what to do.
for file in plan/{data,rows,names,blocks,uses}.rec wide/{windows,slots}.rec ranks/rank-1/{shares,positions}.rec model/names.rec; do
    what=${file%%/*}
    rm -rf hurt
    cp -r "$what" hurt
    printf '\xff' | dd of="hurt/${file#*/}" bs=1 seek=70 conv=notrunc status=none
    fails 1 "hurt/${file#*/}" "$stat" hurt --verify
    grep -q "hurt is not whole: 1 problem: copy it again .* or make it anew with drps-" err.txt || fail "$file: $(cat err.txt)"
    [[ ! -s out.txt ]] || fail "$file: $(cat out.txt)"
    status=0
    "$stat" hurt --verify --json >hurt.json 2>/dev/null || status=$?
    [[ $status = 1 && $(value whole <hurt.json) = false && $(value problems_found <hurt.json) = 1 ]] || fail "$file: $(cat hurt.json)"
    grep -q "${file##*/}" hurt.json || fail "$file: $(cat hurt.json)"
done
echo "ok damaged"

# More problems than are told; and a file of somebody else.
rm -rf hurt
cp -r plan hurt
truncate -s 0 hurt/slots.rec
for at in $(seq 100 3000 60000); do printf '\xff\xfe\xfd' | dd of=hurt/data.rec bs=1 seek="$at" conv=notrunc status=none; done
echo note >hurt/note.txt
fails 1 "is not whole: [0-9]+ problems" "$stat" hurt --verify
[[ $(grep -c "hurt/.*\.rec" err.txt) = 10 ]] || fail "not ten problems: $(cat err.txt)"
grep -q "note.txt.*move it away" err.txt || fail "the note is not told of: $(cat err.txt)"
cp -r plan noted
echo note >noted/note.txt
"$stat" noted --verify >out.txt 2>err.txt || fail "a note is a problem: $(cat err.txt)"
grep -q "note.txt" err.txt || fail "the note is not told of: $(cat err.txt)"
echo "ok counted"

# The part of another plan, and a part that is not there.
rm -rf hurt
cp -r ranks hurt
rm -r hurt/rank-1
fails 1 "hurt/rank-1 is not there" "$stat" hurt --verify
"$tools/drps-index" data.svm --algo fm --test-fraction 0.2 --batch-size 100 --workers 2 -o other --quiet
cp -r other/rank-1 hurt/rank-1 # the same batches and rows
fails 1 "hurt/rank-1 is the part of another plan" "$stat" hurt --verify
echo "ok ranks"
