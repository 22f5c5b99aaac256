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

exec {never}<> <(:)

"$tools/drps-train" plan3 --from model2 -o whole --epochs 4 --store resident --quiet
for store in resident relay rocksdb; do
    memory=$(least plan3 --store $store)K
    "$tools/drps-train" plan3 --from model2 -o killed --epochs 4 --store $store --memory $memory --checkpoint-every 30b --quiet &
    pid=$!
    for ((i = 0; i < 400; i++)); do
        (($(newest killed.checkpoint/rank-0) < 8)) || break
        kill -0 $pid 2>/dev/null || break
        read -rt 0.01 -u "$never" || :
    done
    kill -9 $pid 2>/dev/null || :
    wait $pid 2>/dev/null || :
    "$tools/drps-train" plan3 --from model2 -o killed --epochs 4 --store $store --memory $memory --resume --quiet
    [[ $(content killed) = "$(content whole)" ]] || fail "$store: killed and resumed $(content killed), undisturbed $(content whole)"
    rm -rf killed killed.checkpoint
done
echo "kill and resume ok"
