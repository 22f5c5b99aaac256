#!/usr/bin/env bash
# csv: columns keep the meaning they had in training, whatever the first line or the order of a later file.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {srand(1); print "age,zip,city,label"
    for (i = 0; i < 2000; i++) {z = int(rand() * 50); printf "%d,z%d,c%d,%d\n", rand() * 60, z, rand() * 9, (z % 2 == 0) != (rand() < 0.1)}}' >train.csv
# In this file zip codes of the first line look like nothing else; `city` holds numbers: it must stay a category.
awk -F, 'NR == 1 {print} NR > 1 && NR < 500 {sub("c", "", $3); print $1 "," $2 ",c" $3 "," $4}' train.csv >test.csv
sed -i '2s/.*/7,z3,5,0/' test.csv
"$tools/drps-index" train.csv --test test.csv --algo lor -o plan --quiet --json >index.json
"$tools/drps-stat" plan --verbose >stat.txt
grep -q '^  windows  none: all rows fit in the memory of drps-index' stat.txt || fail "drps-stat does not say that there are no windows: $(cat stat.txt)"
[[ $(value test_unseen <index.json) -le 1 ]] || fail "$(value test_unseen <index.json) test entries are unseen: columns changed their meaning"
"$tools/drps-train" plan -o model --epochs 5 --quiet --json >train.json
awk "BEGIN {exit !($(all_values test_auc <train.json | tail -1) > 0.8)}" || fail "AUC is only $(all_values test_auc <train.json | tail -1)"
"$tools/drps-predict" model test.csv -o scores.txt --quiet
awk -F, '{print $3 "," $4 "," $1 "," $2}' test.csv >moved.csv
"$tools/drps-predict" model moved.csv -o moved.txt --quiet
# Features are summed in another order: equal but for rounding.
paste scores.txt moved.txt | awk '{d = $1 - $2; if (d * d > 1e-12) exit 1}' || fail "other scores when the columns stand in another order"
awk -F, '{print $1 "," $2 "," $4}' test.csv >fewer.csv
fails 2 "fewer.csv: the header has no column 'city', which the training data have; .*; name its columns" "$tools/drps-predict" model fewer.csv -o fewer.txt
tail -n +2 test.csv >headless.csv
fails 2 "headless.csv: the header has no column 'age', .*Then put the header of these before it" "$tools/drps-predict" model headless.csv -o fewer.txt

# The first thousand lines decide, wherever the data comes from: n/a in the first one leaves numbers numbers.
awk 'BEGIN {srand(2); print "age,zip,label"
    for (i = 0; i < 1500; i++) {a = int(rand() * 60); printf "%s,%s,%d\n", i ? a : "n/a", i == 5 ? "x5" : i % 50, (a > 30) != (rand() < 0.1)}}' >missing.csv
"$tools/drps-index" missing.csv --algo lor -o plan-missing --json --verbose >missing.json 2>missing.txt
grep -q "column age: number (999 numbers, 1 missing" missing.txt || fail "drps-index does not say that age is a number: $(cat missing.txt)"
grep -q "column zip: category ('x5' in line 7 is no number)" missing.txt || fail "drps-index does not say that zip is a category: $(cat missing.txt)"
grep -q "scaled numbers: age; categories: zip; label: label" missing.txt || fail "drps-index does not say what columns are: $(cat missing.txt)"
[[ $(all_values kind <missing.json | tr '\n' ' ') = "number category label " ]] || fail "--json has other columns: $(all_values kind <missing.json)"
[[ $(value rows <missing.json) = 53 ]] || fail "$(value rows <missing.json) rows instead of the intercept, age and 51 zips"
# One word does not make categories of numbers without a word of warning.
awk 'BEGIN {print "d,y"; for (i = 2; i < 200; i++) print (i == 50 ? "foo" : i / 7) "," i % 2}' >nearly.csv
"$tools/drps-index" nearly.csv --label y --algo lor -o plan-nearly --quiet 2>nearly.txt
grep -q "warning: column d is taken for categories, as 'foo' in line 50 is no number, but 197 of 198 .*--columns" nearly.txt || fail "no warning of a word: $(cat nearly.txt)"
[[ $(wc -l <nearly.txt) = 1 ]] || fail "it warns more than once: $(cat nearly.txt)"
fails 1 "nearly.csv:50:1: d is not a number: 'foo" "$tools/drps-index" nearly.csv --label y --columns d:number --algo lor -o never --quiet
"$tools/drps-index" nearly.csv --label y --columns d:category --algo lor -o plan-nearly --quiet --force 2>nearly.txt
[[ ! -s nearly.txt ]] || fail "a column of a given kind is warned of: $(cat nearly.txt)"
gzip -c missing.csv >missing.csv.gz
"$tools/drps-index" missing.csv.gz --algo lor -o plan-packed --quiet --memory 64M --no-forecast 2>quiet.txt
[[ ! -s quiet.txt ]] || fail "--quiet says: $(cat quiet.txt)"
for file in data.rec rows.rec names.rec; do cmp plan-missing/$file plan-packed/$file || fail "another $file from a packed file"; done
# A pipe is read once: without scales, which all lines of a file decide, it gives the same.
for file in missing.csv -; do
    "$tools/drps-index" $file --algo lor --scale none -o plan-none-${file/-/pipe} --quiet <missing.csv 2>quiet.txt
    [[ ! -s quiet.txt ]] || fail "--quiet says: $(cat quiet.txt)"
done
for file in data.rec rows.rec names.rec; do cmp plan-none-missing.csv/$file plan-none-pipe/$file || fail "another $file from a pipe"; done
# Files that come later are read with the same kinds: here all zips look like numbers, and all ages are missing.
printf 'age,zip,label\nNA,3,0\n?,4,1\n' >later.csv
"$tools/drps-index" missing.csv --test later.csv --algo lor -o plan-test --quiet --json >test.json
[[ $(value test_nnz <test.json),$(value test_unseen <test.json) = 2,0 ]] || fail "the test file was read with other kinds: $(cat test.json)"
"$tools/drps-train" plan-test -o model-later --quiet
"$tools/drps-predict" model-later later.csv -o later.txt --quiet --json >later.json
[[ $(value test_nnz <later.json),$(value test_unseen <later.json) = 2,0 ]] || fail "drps-predict decided anew: $(cat later.json)"
# A word below the lines that decide is told with what to do, or skipped and counted.
echo "old,3,1" >>missing.csv
fails 1 'missing.csv:1502:1: age is not a number; for words give the kind age:category.*--columns' "$tools/drps-index" missing.csv --algo lor -o plan-word
absent plan-word
"$tools/drps-index" missing.csv --algo lor -o plan-word --on-error skip --quiet --json >word.json 2>/dev/null
[[ $(value skipped_lines <word.json) = 1 ]] || fail "$(value skipped_lines <word.json) lines skipped"
"$tools/drps-index" missing.csv --algo lor -o plan-given --columns age:category --quiet
# Labels may be words, for prediction, too; which one is positive is told.
awk 'BEGIN {srand(3); print "ip,clicked"; for (i = 0; i < 1000; i++) {z = int(rand() * 20); printf "%d,%s\n", z, z % 2 ? "yes" : "no"}}' >words.csv
fails 2 "words.csv: looks like csv, but no column is named label, target, y or click; the label column must be one of: ip, clicked" "$tools/drps-index" words.csv --algo lor -o never
fails 2 "words.csv: looks like csv, but has no column 'click'; the label column must be one of: ip, clicked" "$tools/drps-index" words.csv --algo lor --label click -o never
"$tools/drps-index" words.csv --algo lor --label clicked --columns '*:category' -o plan-words >words.txt 2>&1
grep -q "label clicked; yes is 1, the positive class, and no is 0" words.txt || fail "drps-index does not say what yes is: $(cat words.txt)"
grep -q "categories: ip; label: clicked" words.txt || fail "'*:category' leaves ip as it is: $(cat words.txt)"
"$tools/drps-train" plan-words -o model-words --epochs 5 --quiet
"$tools/drps-predict" model-words words.csv --label clicked --metrics -o words-scores.txt --quiet --json >words.json
awk "BEGIN {exit !($(all_values test_auc <words.json | tail -1) > 0.99)}" || fail "AUC with labels of words: $(cat words.json)"

# Ratings that are to be predicted need none.
awk 'BEGIN {srand(4); for (i = 0; i < 500; i++) printf "u%d\ti%d\t%d\n", rand() * 20, rand() * 9, 1 + rand() * 5}' >ratings.tsv
"$tools/drps-index" ratings.tsv --algo lmf --factors 4 -o plan-ratings --quiet
"$tools/drps-train" plan-ratings -o model-ratings --quiet
cut -f1,2 ratings.tsv >pairs.tsv
"$tools/drps-predict" model-ratings ratings.tsv -o rated.txt --quiet
"$tools/drps-predict" model-ratings pairs.tsv -o unrated.txt --quiet
cmp rated.txt unrated.txt || fail "other scores without ratings"
fails 1 "fewer than 3 columns" "$tools/drps-predict" model-ratings pairs.tsv --metrics -o never

# Where there are very many columns, neighbours of a kind are told by the first and the last.
awk 'BEGIN {printf "label"; for (i = 0; i < 300; i++) printf ",f%d", i; print ""; for (n = 0; n < 20; n++) {printf "%d", n % 2; for (i = 0; i < 300; i++) printf ",%d", i; print ""}}' >wide.csv
"$tools/drps-index" wide.csv --algo lor -o plan-wide --json >wide.json 2>wide.txt
grep -q "numbers: f0 to f299; label: label" wide.txt || fail "300 columns are told so: $(cat wide.txt)"
[[ $(all_values kind <wide.json | wc -l) = 301 ]] || fail "--json has $(all_values kind <wide.json | wc -l) columns"
columns() { # NAMES: so many columns, and a line of what they are
    { echo "$1"; for i in 0 1 2 3; do awk -v i=$i -F, '{ for (f = 1; f <= NF; f++) printf "%s%s", $f ~ /^c/ ? "x" i % 2 : (f + i) % 2, f < NF ? "," : "\n" }' <<<"$1"; done; } >named.csv
    "$tools/drps-index" named.csv --label y --algo lor -o plan-named --force 2>&1 | grep numbers:
}
[[ $(columns "$(seq -f f%g -s , 0 59),y") = *"numbers: f0 to f59; label: y" ]] || fail "60 columns: $(columns "$(seq -f f%g -s , 0 59),y")"
turns=$(for i in $(seq 50); do printf 'f%s,c%s,' "$i" "$i"; done)y
[[ $(columns "$turns") = *"f39, f40, ... 50 in all; categories: c1, c2,"*"c39, c40, ... 50 in all; label: y" ]] || fail "50 columns in turns: $(columns "$turns")"
echo "ok"
