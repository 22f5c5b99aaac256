#!/usr/bin/env bash
# csv: columns keep the meaning they had in training, whatever the first line or the order of a later file.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {srand(1); print "age,zip,city,label"
    for (i = 0; i < 2000; i++) {z = int(rand() * 50); printf "%d,z%d,c%d,%d\n", rand() * 60, z, rand() * 9, (z % 2 == 0) != (rand() < 0.1)}}' >train.csv
# In this file zip codes of the first line look like nothing else; `city` holds numbers: it must stay a category.
awk -F, 'NR == 1 {print} NR > 1 && NR < 500 {sub("c", "", $3); print $1 "," $2 ",c" $3 "," $4}' train.csv >test.csv
sed -i '2s/.*/7,z3,5,0/' test.csv
"$tools/drps-index" train.csv --test test.csv --algo lor -o plan --quiet --json >index.json
"$tools/drps-stat" plan >stat.txt
grep -Eq 'rows kept from window to window \([0-9. %]+\), [0-9]+ leave \([0-9. %]+\)' stat.txt || fail "drps-stat does not say what windows keep: $(cat stat.txt)"
[[ $(value test_unseen <index.json) -le 1 ]] || fail "$(value test_unseen <index.json) test entries are unseen: columns changed their meaning"
"$tools/drps-train" plan -o model --epochs 5 --quiet --json >train.json
awk "BEGIN {exit !($(all_values test_auc <train.json | tail -1) > 0.8)}" || fail "AUC is only $(all_values test_auc <train.json | tail -1)"
"$tools/drps-predict" model test.csv -o scores.txt --quiet
awk -F, '{print $3 "," $4 "," $1 "," $2}' test.csv >moved.csv
"$tools/drps-predict" model moved.csv -o moved.txt --quiet
# Features are summed in another order: equal but for rounding.
paste scores.txt moved.txt | awk '{d = $1 - $2; if (d * d > 1e-12) exit 1}' || fail "other scores when the columns stand in another order"
awk -F, '{print $1 "," $2 "," $4}' test.csv >fewer.csv
fails 2 'city' "$tools/drps-predict" model fewer.csv -o fewer.txt
echo "ok"
