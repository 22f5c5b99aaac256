#!/usr/bin/env bash
# Three days: a plan of each goes on from that of the day before, and training from its model. Rows keep their numbers, what is
# not in a day's batches stays as it was learned, all stores and ranks come to one model, also through a kill, and mistakes are told.
. "$(dirname "$0")/lib.sh"

day=10000
"$tools/drps-gen" ctr --samples 30K --day-samples $day --drift 0.2 --fields 8 --rows 20K --seed 3 -o all.svm --quiet
split -l $day -d -a 1 --numeric-suffixes=1 all.svm day
content() { "$tools/drps-stat" "$1" --json | value content; }

# ---- Rows stay, and so does what was learned of them ----

"$tools/drps-index" day1 --algo fm --factors 4 --test-fraction 0.1 -o plan1 --quiet
"$tools/drps-train" plan1 -o model1 --epochs 2 --quiet
for d in 2 3; do
    "$tools/drps-index" day$d --base plan$((d - 1)) --test-fraction 0.1 --memory 64M -o plan$d >index.txt 2>&1
    grep -qE "^  base     plan$((d - 1)): its [0-9,]+ rows keep their numbers, [0-9,]+ are new" index.txt || fail "no line: $(cat index.txt)"
    "$tools/drps-stat" plan$d --verify >/dev/null || fail "plan$d does not verify"
    "$tools/drps-train" plan$d --from model$((d - 1)) -o model$d --store resident --quiet --json >train$d.json
done
rows() { "$tools/drps-stat" plan$1 --json | value rows; }
(($(rows 1) < $(rows 2) && $(rows 2) < $(rows 3))) || fail "rows: $(rows 1), $(rows 2), $(rows 3)"
[[ $(all_values all <train3.json) = "$(rows 3)" && $(all_values rows <train3.json | sed -n 2p) = "$(rows 2)" ]] ||
    fail "not all rows of plan2 were begun with: $(cat train3.json)"

# A feature alone has the score of its weight and the intercept: from one model to the next the scores of those that the day does
# not have differ by the intercept alone.
ids() { cut -d' ' -f2- "$1" | tr ' ' '\n' | cut -d: -f1 | sort -u; }
comm -23 <(ids day1) <(cat day2 day3 | ids /dev/stdin) | awk 'NR <= 300 {print "0 " $1 ":1"}' >gone.svm
[[ $(wc -l <gone.svm) -gt 100 ]] || fail "only $(wc -l <gone.svm) features are gone: nothing is tested"
for d in 1 3; do "$tools/drps-predict" model$d gone.svm -o scores$d --quiet; done
paste scores1 scores3 | awk '{d = log($1 / (1 - $1)) - log($2 / (1 - $2)); if (NR == 1) first = d
    if (d - first > 1e-4 || first - d > 1e-4) bad++; if (d > 1e-3 || d < -1e-3) moved++} END {exit bad || !moved}' ||
    fail "features that are in no batch have other weights"
echo "rows stay ok: $(rows 1), $(rows 2), $(rows 3)"

# ---- Every store, little memory, threads of ranks ----

# least PLAN OPTION...: KiB that training takes at least, by its own refusal
least() {
    { "$tools/drps-train" "$@" -o refused --memory 1M 2>&1 || true; } | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' |
        awk '{print int(($1 + 0.1) * 1024)}'
}
for store in relay file rocksdb leveldb; do
    "$tools/drps-train" plan3 --from model2 -o other --force --store $store --memory "$(least plan3 --store $store)K" --quiet --json >other.json
    [[ $(content other) = "$(content model3)" ]] || fail "$store: $(content other), resident has $(content model3)"
    [[ $store != relay || $(all_values windows <other.json | awk '/^[0-9]/') -gt 3 ]] || fail "relay has all rows in memory: $(cat other.json)"
done
"$tools/drps-index" day3 --base plan2 --test-fraction 0.1 --workers 2 -o ranks --quiet
"$tools/drps-stat" ranks --verify >/dev/null || fail "the plan of two ranks does not verify"
for store in resident relay file; do
    "$tools/drps-train" ranks --from model2 -o cluster-$store --local 2 --store $store --quiet
    [[ $(content cluster-$store) = "$(content cluster-resident)" ]] || fail "two ranks on $store come to another model"
done
"$tools/drps-predict" cluster-relay gone.svm -o scores --quiet
paste scores1 scores | awk '{d = log($1 / (1 - $1)) - log($2 / (1 - $2)); if (NR == 1) first = d
    if (d - first > 1e-4 || first - d > 1e-4) exit 1}' || fail "two ranks: features that are in no batch have other weights"
"$tools/drps-index" --from-plan ranks --workers 1 -o one --quiet
"$tools/drps-train" one --from model2 -o one-model --quiet
[[ $(content one-model) = "$(content model3)" ]] || fail "dealt to one worker it is another plan"
echo "stores and ranks ok"

# ---- Killed, and resumed ----

"$tools/drps-train" plan3 --from model2 -o whole --epochs 4 --store resident --quiet
for store in resident relay rocksdb; do
    memory=$(least plan3 --store $store)K
    "$tools/drps-train" plan3 --from model2 -o killed --epochs 4 --store $store --memory $memory --checkpoint-every 30b --quiet &
    pid=$!
    for ((i = 0; i < 400; i++)); do
        (($(newest killed.checkpoint/rank-0) < 8)) || break
        kill -0 $pid 2>/dev/null || break
        pause
    done
    kill -9 $pid 2>/dev/null || :
    wait $pid 2>/dev/null || :
    "$tools/drps-train" plan3 --from model2 -o killed --epochs 4 --store $store --memory $memory --resume --quiet
    [[ $(content killed) = "$(content whole)" ]] || fail "$store: killed and resumed $(content killed), undisturbed $(content whole)"
    rm -rf killed killed.checkpoint
done
echo "kill and resume ok"

# ---- The optimizer's state, and what has changed ----

"$tools/drps-train" plan1 -o kept1 --epochs 2 --keep-checkpoints --quiet
grep -q 'rank 0 *1 checkpoint, the newest 1: 2 epochs done$' < <("$tools/drps-stat" kept1.checkpoint) || fail "what is done is not said: $("$tools/drps-stat" kept1.checkpoint)"
"$tools/drps-train" plan2 --from kept1 -o kept2 --keep-checkpoints --export-delta delta2 >kept2.out 2>kept2.txt
grep -q "rows from kept1: .*, with the optimizer's state; the others are new" kept2.txt || fail "no state: $(cat kept2.txt)"
[[ $(content kept2) != "$(content model2)" ]] || fail "the state makes no difference"
grep -qE '^  delta     [0-9,]+ rows that have changed and [0-9,]+ new ones' kept2.out || fail "no line: $(cat kept2.out)"
[[ $(tail -1 delta2) = "# end: changed $(($(grep -vc '^#' delta2) - $(rows 2) + $(rows 1))), new $(($(rows 2) - $(rows 1)))" ]] || fail "$(tail -1 delta2)"
grep -q "^# base kept1 content $(content kept1) rows $(rows 1)$" delta2 || fail "$(head -4 delta2)"
[[ $(grep -vcE '^(#|[0-9]+|\(intercept\))(	|$| )' delta2) = 0 ]] || fail "lines of another form: $(head delta2)"
for m in kept1 kept2; do "$tools/drps-stat" $m --export $m.rows.txt >/dev/null; done
awk -F'\t' '!/^#/ && !($1 in row) {row[$1] = $0} END {for (name in row) print row[name]}' delta2 kept1.rows.txt | sort | cmp - <(sort kept2.rows.txt) ||
    fail "kept1 with the delta over it is not kept2"
"$tools/drps-train" plan2 --from kept1 --no-state -o plain --quiet
"$tools/drps-train" plan2 --from model1 -o told >/dev/null 2>told.txt
grep -q "rows from model1: [0-9,]* of [0-9,]*, the optimizer's state begins anew; the others are new$" told.txt || fail "$(cat told.txt)"
"$tools/drps-train" plan2 --from model1 --optimizer sgd -o told --force >/dev/null 2>told.txt
grep -q "rows from model1: [0-9,]* of [0-9,]*; the others are new$" told.txt || fail "sgd has no state: $(cat told.txt)"
[[ $(content plain) = "$(content model2)" ]] || fail "--no-state has another model than one without checkpoints"
echo "state and delta ok: $(stat -c %s delta2) bytes"

"$tools/drps-index" day2 --base plan1 --replay 20% -o replayed --test-fraction 0.1 >replayed.txt 2>&1
grep -qE '^  replay   1,[789][0-9]{2} of its samples are trained on once more$' replayed.txt || fail "no line: $(cat replayed.txt)"
"$tools/drps-stat" replayed --verify >/dev/null || fail "the plan with replayed samples does not verify"
for store in resident relay; do
    "$tools/drps-train" replayed --from kept1 -o on-$store --store $store --memory 48M --quiet
    [[ $(content on-$store) = "$(content on-resident)" ]] || fail "replayed on $store: another model"
done
fails 2 "is for several workers.*dealt" "$tools/drps-index" day3 --base ranks --replay 0.5 -o never
fails 2 "give --base PLAN" "$tools/drps-index" day3 --algo fm --replay 0.5 -o never

# Columns are read as on the first day, and names are told as in the data.
awk 'BEGIN {srand(2); print "label,price,city"; for (i = 0; i < 900; i++) printf "%d,%.2f,c\\%d\n", rand() < .4, rand() * 500, rand() * 30}' >day1.csv
awk 'BEGIN {srand(3); print "label,price,city"; for (i = 0; i < 900; i++) printf "%d,%.2f,c\\%d\n", rand() < .4, 5000 + rand(), 20 + rand() * 30}' >day2.csv
"$tools/drps-index" day1.csv --algo lor -o csv1 --quiet
"$tools/drps-index" day2.csv --base csv1 -o csv2 --quiet
columns() { sed -n '/"fields"/,/]/p; /"label_column"/p' "$1/plan.json"; }
[[ $(columns csv1) = "$(columns csv2)" && $(columns csv1) = *price:number* ]] || fail "other columns: $(columns csv1), $(columns csv2)"
"$tools/drps-train" csv1 -o csv1.model --quiet
"$tools/drps-train" csv2 --from csv1.model -o csv2.model --export-delta - --quiet >csv.delta
grep -q '^price	' csv.delta && grep -qE '^city=c\\\\4[0-9]	[-0-9.e]+$' csv.delta || fail "names: $(cat csv.delta)"
! grep -qE '^city=c\\\\[0-9]	' csv.delta || fail "a city that the day does not have has changed"
echo "columns ok"

# ---- Mistakes ----

fails 2 "leave out --algo" "$tools/drps-index" day2 --base plan1 --algo fm -o never
fails 2 "leave out --algo" "$tools/drps-index" day2 --base plan1 --hash-seed 3 -o never
fails 1 "nowhere" "$tools/drps-index" day2 --base nowhere -o never
fails 2 "no input" "$tools/drps-index" --base plan1 -o never
fails 2 "block builder gives them others.*use pattern or none" "$tools/drps-index" day2 --base plan1 --blocks auto -o never
fails 2 "this partition gives them others" "$tools/drps-index" day2 --base plan1 --workers 2 --partition auto -o never
fails 2 "the part of one rank" "$tools/drps-index" day2 --base ranks/rank-1 -o never
fails 2 "give no other options" "$tools/drps-index" --from-plan plan1 --base plan1 --workers 2 -o never
sed 's/^1/5/' day2 >five
cp -r plan1 bare && rm bare/data.rec bare/rows.rec
fails 1 "samples to replay are taken from the batches of bare: cannot open bare/data.rec.*\(--replay\)" \
    "$tools/drps-index" day2 --base bare --replay 0.5 -o never
fails 2 "no column 'price', which the training data have; it has: .*Then put the header of these before it" "$tools/drps-index" <(tail -n +2 day1.csv) --base csv1 -o never
cp -r model1 cut && truncate -s 5000 cut/names.rec
fails 1 "cut/names.rec: .* do not fit its 5000 bytes: it is cut off, copy it again" "$tools/drps-train" plan2 --from cut -o never
fails 1 "the label 5; plan1 has 0 and 1" "$tools/drps-index" five --base plan1 -o never
sed 's/label,price/label,cost/' day2.csv >renamed.csv
fails 2 "price" "$tools/drps-index" renamed.csv --base csv1 -o never
sed 's/$/,1/; s/city,1/city,more/' day2.csv >wider.csv
fails 2 "the input has the column more, and csv1 has not.*without a base.*--base" "$tools/drps-index" wider.csv --base csv1 -o never
fails 1 "day2.csv|libsvm" "$tools/drps-index" day2.csv --base plan1 -o never
fails 2 "name one to begin with.*--export-delta" "$tools/drps-train" plan1 -o never --export-delta d
fails 2 "kept1 would be replaced" "$tools/drps-train" plan1 --from kept1 -o kept1 --force --export-delta d
fails 2 "lies in the folder kept1" "$tools/drps-train" plan2 --from kept1 -o never --export-delta kept1/model.json --force
fails 2 "lies in the folder plan2" "$tools/drps-train" plan2 --from kept1 -o never --export-delta plan2/plan.json --force
fails 2 "never.trained is a name of the model" "$tools/drps-train" plan2 --from kept1 -o never --export-delta never.trained
fails 2 "standard output.*--quiet" "$tools/drps-train" plan2 --from kept1 -o never --export-delta -
echo "my notes" >notes
fails 1 "notes exists already" "$tools/drps-train" plan2 --from kept1 -o never --export-delta notes --resume
[[ $(cat notes) = "my notes" ]] || fail "notes were replaced"
fails 1 "delta2 exists already" "$tools/drps-train" plan2 --from kept1 -o never --export-delta delta2
absent never
"$tools/drps-train" plan2 -o alone --quiet 2>alone.txt
grep -q "plan2 goes on from an earlier plan, and training begins with no model of that" alone.txt || fail "no warning: $(cat alone.txt)"
"$tools/drps-train" plan3 --from model1 -o between --quiet 2>between.txt
grep -q "plan3 goes on from a plan of [0-9,]* rows, and model1 has [0-9,]* of them at most: the others begin anew" between.txt ||
    fail "no warning: $(cat between.txt)"
"$tools/drps-train" plan3 --from model2 -o between --force --quiet 2>between.txt
[[ ! -s between.txt ]] || fail "a warning of the right model: $(cat between.txt)"
"$tools/drps-predict" model2 day3 --calibrate platt --quiet
"$tools/drps-train" plan3 --from model2 -o between --force --quiet 2>between.txt
grep -q "model2 is calibrated, and the new model will not be: .*(drps-predict --calibrate)" between.txt || fail "no warning: $(cat between.txt)"
"$tools/drps-predict" model2 day3 --calibrate none --quiet
echo "mistakes ok"
