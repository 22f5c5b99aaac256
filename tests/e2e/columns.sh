#!/usr/bin/env bash
# Columns that are learned from the data (codes, dates, bins, crosses, scales), files without a header, JSON
# lines and Vowpal Wabbit's text: what training learned, prediction does without being told.
. "$(dirname "$0")/lib.sh"
auc() { all_values test_auc <"$1" | tail -1; }
above() { awk "BEGIN {exit !($1 > $2)}" || fail "$3: $1"; }

# A click log, in which whole numbers are codes: the label depends on app, on channel within the app, and on the hour.
awk 'BEGIN {srand(5); print "ip,app,channel,cost,click_time,installed"
    for (i = 0; i < 6000; i++) {
        app = 3 * int(rand() * 20) + 7; channel = 11 * int(rand() * 12) + 100; hour = int(rand() * 24)
        cost = int(1000 * exp(2 * rand()))
        s = (app % 4 < 2) + 2 * ((app + channel) % 2) + 2 * (hour > 12) + (cost > 3000 && cost < 5000) - 3
        printf "%d,%d,%d,%d,2017-11-%02d %02d:00:00,%d\n", 7 * int(rand() * 3000), app, channel, cost, 6 + i % 4, hour, rand() < 1 / (1 + exp(-2 * s))}}' >clicks.csv
head -5001 clicks.csv >train.csv
(head -1 clicks.csv && tail -1000 clicks.csv) >test.csv
learn=(--label installed --columns 'cost:bins(10)' --cross app*channel)
"$tools/drps-index" train.csv --test test.csv --algo lor "${learn[@]}" -o plan --json >plan.json 2>plan.txt
grep -q "bins: cost; categories: ip, app, channel; dates: click_time; crosses: app\*channel; label: installed" plan.txt || fail "drps-index says: $(cat plan.txt)"
grep -q "taken for codes, though they look like numbers: ip, app, channel; if one is a quantity, give --columns 'ip:number'" plan.txt || fail "drps-index does not tell codes: $(cat plan.txt)"
"$tools/drps-train" plan -o model --epochs 10 --quiet --json >train.json
above "$(auc train.json)" 0.85 "AUC of a click log"
"$tools/drps-predict" model test.csv --label installed --metrics -o scores.txt --quiet --json >predict.json
near "$(auc train.json)" "$(auc predict.json)" 1e-6 || fail "drps-predict reads columns otherwise: $(auc train.json), $(auc predict.json)"
# A file whose first lines would teach something else, packed, in another order of columns, on standard input.
(head -1 test.csv && tail -20 test.csv) | awk -F, -v OFS=, '{print $5, $1, $4, $3, $2}' | gzip -c | "$tools/drps-predict" model - -o tail.txt --quiet
paste tail.txt <(tail -20 scores.txt) | awk '{d = $1 - $2; if (d * d > 1e-10) exit 1}' || fail "the last lines have other scores when they are read alone"
# Without the cross and the bins the model is worse.
"$tools/drps-index" train.csv --test test.csv --algo lor --label installed --columns 'cost:ignore' -o plan-less --quiet
"$tools/drps-train" plan-less -o model-less --epochs 10 --quiet --json >less.json
above "$(auc train.json) - 0.03" "$(auc less.json)" "AUC without crosses is $(auc less.json), with them"

# Numbers that are scaled: the same model whether by the first lines, or by what these have taught.
"$tools/drps-index" train.csv --algo lor --label installed --columns '*:ignore,cost:number' --scale standard -o plan-scaled --quiet
kind=$("$tools/drps-stat" plan-scaled --json | tr -d '" ,' | grep '^cost:')
[[ $kind = cost:number\(*\;*\) ]] || fail "the plan does not say how cost is scaled: $kind"
"$tools/drps-index" train.csv --algo lor --label installed --columns "*:ignore,$kind" -o plan-same --quiet
for file in data.rec rows.rec names.rec; do cmp plan-scaled/$file plan-same/$file || fail "another $file with the scale given"; done
# A file that is sorted by a column teaches the same, with any memory; a pipe does not, and says so.
(head -1 train.csv && tail -n +2 train.csv | sort -t, -k4,4n) >sorted.csv
(head -1 train.csv && tail -n +2 train.csv | sort -t, -k4,4nr) | xz -c >backwards.csv.xz
for file in sorted.csv backwards.csv.xz; do
    "$tools/drps-index" $file --algo lor --label installed --columns '*:ignore,cost:number' --scale standard --memory 64M -o plan-sorted --force --quiet
    near "$("$tools/drps-stat" plan-sorted --json | tr -d '" ,' | sed -n 's/^cost:number(\(.*\);\(.*\))/\1 \2/p')" "$(tr ';' ' ' <<<"${kind//[!0-9.;]/}")" 1e-6 ||
        fail "$file is scaled otherwise: $("$tools/drps-stat" plan-sorted --json | grep 'cost:'), unsorted: $kind"
done
"$tools/drps-index" - --algo lor --label installed --columns '*:ignore,cost:number' --scale standard -o plan-piped --quiet <sorted.csv 2>piped.txt
grep -q "a pipe is read only once: scales and bins, such as that of column .*cost, come from its first lines alone" piped.txt || fail "of a pipe drps-index says: $(cat piped.txt)"
fails 2 "is not one of" "$tools/drps-index" train.csv --algo lor --scale cube -o never
fails 2 "cross 'app\*hour' is not of 2 to 8 columns" "$tools/drps-index" train.csv --algo lor --label installed --cross app*hour -o never

# Numbers that nearly all samples have, as matrices: fewer bytes, the same model, renumbered rows and ranks as well.
awk 'BEGIN {srand(8); print "y,a,b,c,d,e,f,g,h"; for (i = 0; i < 3000; i++) {line = rand() < 0.5
    for (k = 0; k < 8; k++) line = line "," (rand() < 0.03 ? "" : sprintf("%.5f", 2 * rand() - 1)); print line}}' >numbers.csv
for options in "" "--blocks auto" "--workers 2"; do
    # shellcheck disable=SC2086  # words
    for dense in "" --dense; do
        "$tools/drps-index" numbers.csv --algo lor --test-fraction 0.1 $options $dense -o plan-numbers$dense --force --quiet
        "$tools/drps-stat" plan-numbers$dense --verify >/dev/null || fail "drps-index $options $dense makes a plan that does not verify"
        "$tools/drps-train" plan-numbers$dense $([[ $options != *workers* ]] || echo --local 2) -o model-numbers --epochs 2 --l2 0.01 --force --quiet --json |
            value content >content$dense.txt
    done
    cmp content.txt content--dense.txt || fail "drps-index $options --dense: another model"
    [[ $options = *workers* ]] || (($(stat -c %s plan-numbers--dense/data.rec) < $(stat -c %s plan-numbers/data.rec) * 9 / 10)) ||
        fail "drps-index $options --dense: $(stat -c %s plan-numbers--dense/data.rec) bytes of $(stat -c %s plan-numbers/data.rec)"
done

# Without a header: the label is the first column, and need not be there in what is to be scored.
tail -n +2 train.csv | awk -F, -v OFS='\t' '{print $6, $2, $3, $4 / 1000}' >plain.tsv
"$tools/drps-index" plain.tsv --algo lor -o plan-plain --json >plain.json 2>plain.txt
grep -q "numbers: 4; categories: 2, 3; label: 1" plain.txt || fail "drps-index says of a file without a header: $(cat plain.txt)"
[[ $(value samples <plain.json) = 5000 ]] || fail "$(value samples <plain.json) samples without a header"
[[ $("$tools/drps-stat" plan-plain --json | value headless) = true ]] || fail "the plan does not say that there is no header"
"$tools/drps-train" plan-plain -o model-plain --epochs 3 --quiet
"$tools/drps-predict" model-plain plain.tsv -o all.txt --quiet
cut -f2- plain.tsv | "$tools/drps-predict" model-plain - -o no-label.txt --quiet
cmp all.txt no-label.txt || fail "other scores without the label's column"
"$tools/drps-index" plain.tsv --label 4 --columns 1:ignore --algo lir -o plan-label --quiet
fails 2 "has no column '4'; the label column must be one of: 1, [0-9]+, " "$tools/drps-index" plain.tsv --header --label 4 --algo lir -o never

# The same samples as JSON lines and as csv: the same features, though in another order.
tail -n +2 train.csv | awk -F, '{printf "{\"installed\": %d, \"at\": {\"app\": \"%s\", \"channel\": \"%s\"}, \"cost\": %s}\n", $6, $2, $3, $4 / 1000}' >train.jsonl
cut -d, -f2,3,4,6 train.csv | awk -F, -v OFS=, 'NR > 1 {$3 /= 1000} {print}' >same.csv
"$tools/drps-index" train.jsonl --label installed --order given --cross at.app*at.channel --algo lor -o plan-json --quiet
"$tools/drps-index" same.csv --label installed --order given --cross app*channel --algo lor -o plan-csv --quiet
"$tools/drps-train" plan-json -o model-json --epochs 2 --quiet --json >json.json
"$tools/drps-train" plan-csv -o model-csv --epochs 2 --quiet --json >csv.json
near "$(all_values train_loss <json.json | tail -1)" "$(all_values train_loss <csv.json | tail -1)" 1e-4 || fail "JSON lines train otherwise: $(all_values train_loss <json.json), $(all_values train_loss <csv.json)"
xz -c train.jsonl | "$tools/drps-predict" model-json - -o json.txt --quiet
"$tools/drps-predict" model-csv same.csv -o csv.txt --quiet
paste json.txt csv.txt | awk '{d = $1 - $2; if (d * d > 1e-6) exit 1}' || fail "JSON lines have other scores"
echo '{"installed": 1, "at": {"app": "7", "later": 1}}' | cat train.jsonl - >later.jsonl
fails 1 "later.jsonl:5001:.*the key 'at.later' is in none of the first lines" "$tools/drps-index" later.jsonl --label installed --algo lor -o never
"$tools/drps-index" later.jsonl --label installed --algo lor --on-error skip -o plan-skip --quiet --json >skip.json 2>/dev/null
[[ $(value skipped_lines <skip.json) = 1 ]] || fail "$(value skipped_lines <skip.json) lines skipped"
# More keys in what is to be scored do no harm.
"$tools/drps-predict" model-json later.jsonl -o later.txt --quiet

# Weights of JSON lines are those of csv; a key that is misspelt, and decimal commas, are said.
sed 's/^{/{"n": 2, /' train.jsonl >weighed.jsonl
awk -v OFS=, '{print (NR > 1 ? 2 : "n"), $0}' same.csv >weighed.csv
for file in weighed.jsonl weighed.csv; do
    "$tools/drps-index" $file --label installed --weight n --algo lor -o plan-weighed --force >weighed.txt 2>&1
    grep -q 'training samples weigh 10000 together, 2 at most' weighed.txt || fail "weights of $file: $(cat weighed.txt)"
done
sed '5s/"cost"/"Cost"/' train.jsonl >misspelt.jsonl
"$tools/drps-index" misspelt.jsonl --label installed --algo lor -o plan-misspelt --quiet 2>misspelt.txt
grep -q "1 of 5000 objects has no key 'cost', which the others have: is it spelt otherwise there?" misspelt.txt || fail "a misspelt key: $(cat misspelt.txt)"
tr ',.' ';,' <same.csv >commas.csv
"$tools/drps-index" commas.csv --label installed --algo lor -o plan-commas --quiet 2>commas.txt
grep -q "numbers of column cost have decimal commas ('.*' in line 2) and are taken for words" commas.txt || fail "decimal commas: $(cat commas.txt)"

# The same samples in Vowpal Wabbit's text and in libsvm's.
awk 'BEGIN {srand(6); for (i = 0; i < 2000; i++) {printf "%d", rand() < 0.5 ? 1 : -1; for (k = 0; k < 5; k++) printf " %d:%.3f", 1 + k * 20 + int(rand() * 20), rand(); print ""}}' >train.svm
sed -E "s/^([^ ]*) /\1 1.0 'tag |f /" train.svm >train.vw
"$tools/drps-index" train.svm --order given --algo lor -o plan-svm --quiet
"$tools/drps-index" train.vw --order given --algo lor -o plan-vw --json >vw.json
[[ $(value format <vw.json) = vw ]] || fail "Vowpal Wabbit's text is taken for $(value format <vw.json)"
"$tools/drps-train" plan-svm -o model-svm --epochs 2 --quiet --json >svm.json
"$tools/drps-train" plan-vw -o model-vw --epochs 2 --quiet --json >vw.json
near "$(all_values train_loss <svm.json | tail -1)" "$(all_values train_loss <vw.json | tail -1)" 1e-4 || fail "Vowpal Wabbit's text trains otherwise"
sed 's/^[^|]*//' train.vw | zstd -q | "$tools/drps-predict" model-vw - -o unlabelled.txt --quiet
"$tools/drps-predict" model-vw train.vw -o labelled.txt --quiet
cmp labelled.txt unlabelled.txt || fail "other scores without labels"
{ cat train.vw && sed 's/ 1[.]0 / 3 /' train.vw; } >heavy.vw # each sample once with weight 1, and once with 3
"$tools/drps-index" heavy.vw --algo lor -o plan-heavy >heavy.txt
grep 'training samples weigh 8000 together, 3 at most' heavy.txt >/dev/null || fail "weights of Vowpal Wabbit's text: $(cat heavy.txt)"
echo "1 -3 |f 1:1" >>train.vw
fails 1 "train.vw:2001:3: weight is negative" "$tools/drps-index" train.vw --algo lor -o never
"$tools/drps-index" train.vw --algo lor --on-error skip -o plan-vw-skip --quiet 2>/dev/null
echo "ok"
