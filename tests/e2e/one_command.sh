#!/usr/bin/env bash
# drps-train of data makes the plan first: plan and model are those of the two commands, the plan is used again only where it is
# known to be of the same data and options, and nothing that drps-train has not made is replaced.
. "$(dirname "$0")/lib.sh"
index=$tools/drps-index
train=$tools/drps-train
"$tools/drps-gen" ctr --samples 4K --fields 6 --rows 2K --seed 3 -o clicks.svm --quiet
"$tools/drps-gen" ctr --samples 400 --fields 6 --rows 2K --seed 4 -o held.svm --quiet
awk 'BEGIN {srand(4); for (i = 0; i < 4000; i++) printf "u%d\ti%d\t%d\n", rand() * 90, rand() * 40, 1 + rand() * 5}' >ratings.tsv
awk 'BEGIN {srand(5); print "colour,size,age,y"; for (i = 0; i < 600; i++) {s = rand() * 9; printf "%s,%.2f,%d,%d\n", rand() < 0.5 ? "red" : "blue", s, rand() * 80, (s > 4)}}' >table.csv
seq 4000 | awk '{print 1 + $1 % 3}' >weights.txt

# same_source A B: the plans are the same but for how they were asked for; of B the forecast is made when somebody asks
same_source() {
    ! grep -q '"forecast"' "$2/plan.json" || fail "$2 has a forecast that nobody has asked for"
    "$tools/drps-stat" "$1" | sed -n '/^forecast: /,$p' >told.two.txt
    "$tools/drps-stat" "$2" | sed -n '/^forecast: /,$p' >told.one.txt
    [[ -s told.two.txt ]] && diff told.two.txt told.one.txt || fail "$1 and $2 have other forecasts"
    cp -r "$1" "$1.bare"
    sed -i '/^ "forecast": \[/,/^ \],$/d' "$1.bare/plan.json"
    sed -i '/^ "source": /d' "$2/plan.json"
    same_plan "$1.bare" "$2" || fail "$1 and $2 differ"
}
# told MODEL: what model.json says of the model, not of how it was made
told() { sed -e '/^ "training": {/,/^ },\{0,1\}$/d' -e '/^ "files": {/,$d' -e '/^ "plan_command": /d' "$1/model.json"; }

# both NAME "OPTIONS OF THE PLAN" "OPTIONS OF TRAINING" "OPTIONS OF BOTH" FILE...
both() {
    local name=$1 compile=$2 learn=$3 shared=$4
    shift 4
    # shellcheck disable=SC2086  # words
    "$index" "$@" $compile $shared -o "$name.two.plan" --quiet
    # shellcheck disable=SC2086
    "$train" "$name.two.plan" $learn $shared -o "$name.two" --quiet
    # shellcheck disable=SC2086
    "$train" "$@" $compile $learn $shared -o "$name.one" --quiet
    told "$name.two" >two.txt
    told "$name.one" >one.txt
    grep -q '"content": "' two.txt || fail "$name: no content in model.json"
    diff two.txt one.txt || fail "$name: the models differ"
    cmp "$name.two/names.rec" "$name.one/names.rec" || fail "$name: names differ"
    "$tools/drps-stat" "$name.two" --export two.tsv --force >/dev/null
    "$tools/drps-stat" "$name.one" --export one.tsv --force >/dev/null
    [[ -s one.tsv ]] && cmp two.tsv one.tsv || fail "$name: the models' parameters differ"
    same_source "$name.two.plan" "$name.one.plan"
}
both lor "--algo lor" "--epochs 2" "" clicks.svm
both split "--algo lor --test-fraction 0.2 --batch-size 50" "--epochs 3 --patience 1" "--seed 7" clicks.svm
both files "--algo lor --test held.svm --weights weights.txt --weights weights.txt" "" "" clicks.svm clicks.svm
both fm "--algo fm --factors 5 --no-bias" "--epochs 2 --lr 0.02" "--memory 70M" clicks.svm
both lmf "--algo lmf --factors 4 --test-fraction 0.1 --order grid --grid 3,2 --lanes 2" "--threads 2 --l2 0.05" "" ratings.tsv
both csv "--algo lor --label y --columns age:category --scale none --class-weights balanced" "--optimizer ftrl" "" table.csv
both bpr "--algo bpr --positive-from 3 --negatives-per 2" "" "" ratings.tsv
for model in lor fm; do
    [[ $(value content <"$model.one/model.json") != "$(value content <split.one/model.json)" ]] || fail "$model is the model of other options"
done
"$train" - --algo lor --epochs 2 -o piped --quiet <clicks.svm
told lor.two | grep -v '"plan"' >two.txt
told piped | grep -v '"plan"' >one.txt
diff two.txt one.txt || fail "standard input gives another model"
# What drps-index makes of such a plan is not what drps-train made.
"$index" --from-plan piped.plan --workers 2 -o dealt --quiet
grep -q '^ "source": ' piped.plan/plan.json || fail "piped.plan does not say what it was made of"
! grep -rq '"source": ' dealt || fail "a plan that was dealt anew says that it was made of data"
echo "ok the same as two commands"

# What is there says so on the screen, and in JSON there is one result: that of training.
"$train" clicks.svm --algo lor -o said >out.txt
grep -q '^plan said.plan, of libsvm: ' out.txt && grep -q '^model said: ' out.txt || fail "it does not tell of plan and model: $(cat out.txt)"
"$train" clicks.svm --algo lor -o json --json >out.json
[[ $(all_values plan_read_bytes <out.json | wc -l) -ge 1 && $(grep -c '^{' out.json) = 1 ]] || fail "--json: $(cat out.json)"
# The forecast is in the plan where it is shown, and where rows do not fit.
"$train" clicks.svm --algo lor -o shown --verbose >out.txt 2>/dev/null
grep -q '^forecast: what an epoch would move' out.txt && grep -q '^ "forecast": \[' shown.plan/plan.json || fail "--verbose shows no forecast: $(cat out.txt)"
"$train" clicks.svm --algo fm --factors 4096 --memory 66M -o wide >out.txt
grep -q '^ "forecast": \[' wide.plan/plan.json && grep -q '^forecast: what an epoch would move' out.txt || fail "rows that do not fit have no forecast: $(cat out.txt)"
"$tools/drps-stat" json.plan --json >out.json
[[ $(all_values store <out.json | grep -c relay) = 7 ]] || fail "drps-stat --json has no forecast: $(cat out.json)"
"$tools/drps-stat" json.plan --html report.html >/dev/null
grep -q '<h3>Forecast</h3>' report.html || fail "drps-stat --html has no forecast"
printf '[drps-train]\nalgo = lor\ntest-fraction = 0.5\n' >options.ini
"$train" clicks.svm --config options.ini -o configured --quiet
[[ $(all_values test_samples <configured.plan/plan.json | sed -n 1p) -gt 1500 ]] || fail "--config has no options of data"
"$train" clicks.svm --algo lor --memory 70M -o small --quiet --json >out.json
(($(all_values peak_rss_bytes <out.json | sed -n 1p) < 77 << 20)) || fail "--memory 70M: $(all_values peak_rss_bytes <out.json) bytes"
grep -q '^ "memory_bytes": 73400320,' small.plan/plan.json || fail "--memory does not count for the plan"

# A plan is used again if data and options are known to be the same, whatever training is told.
again() { "$train" clicks.svm --algo lor --batch-size 200 "$@" >out.txt 2>err.txt || fail "again $*: $(cat err.txt)"; }
used='again.plan is of the same data and options: it is used again'
again -o again --epochs 1
cp -p again.plan/plan.json first.json
again -o again --force --epochs 2 --lr 0.3
grep -q "$used" err.txt || fail "a plan of the same is not used again: $(cat err.txt)"
cmp first.json again.plan/plan.json || fail "the plan was made anew"
again -o again/// --force
grep -q "$used" err.txt || fail "a name that ends with slashes: $(cat err.txt)"
rm -r again
again -o again
grep -q "$used" err.txt || fail "without --force: $(cat err.txt)"
for other in "--batch-size 100" "--seed 2" "--memory 80M" "--no-bias" "held.svm"; do
    # shellcheck disable=SC2086
    fails 1 'again.plan is there, and is not known to be of the same data and options: .*drps-train again.plan -o again.*--force' "$train" clicks.svm --algo lor --batch-size 200 $other -o again
done
cmp first.json again.plan/plan.json || fail "the plan was replaced"
again -o again --force --no-bias
! grep -q "$used" err.txt || fail "a plan of other options was used"
"$tools/drps-stat" again --export one.tsv --force >/dev/null
! grep -q intercept one.tsv || fail "--force did not make the plan of the new options"
again -o again --force --no-bias
grep -q "$used" err.txt || fail "the plan that was made anew is not used again: $(cat err.txt)"
# Data that were changed, to what is as long and as old, are others.
cp -p clicks.svm before.svm
number=$(stat -c %i clicks.svm)
[[ $(head -c1 clicks.svm) = 0 ]] && label=1 || label=0
printf '%s' $label | dd of=clicks.svm conv=notrunc status=none
touch -r before.svm clicks.svm
[[ $(stat -c '%s %y' clicks.svm) = "$(stat -c '%s %y' before.svm)" && $(stat -c %i clicks.svm) = "$number" ]] || fail "the changed file does not look as before"
fails 1 'again.plan is there, and is not known' "$train" clicks.svm --algo lor --batch-size 200 --no-bias -o again
fails 1 'piped.plan is there, and is not known' "$train" - --algo lor --epochs 2 -o piped <before.svm
cp -p before.svm clicks.svm
echo "ok the plan is used again"

# Mistakes. Each ends before data are read, and leaves nothing.
cp -r lor.two.plan plan
fails 2 "'plan' is a folder, and --factors says how data become a plan" "$train" plan --factors 3 -o never
fails 2 "'plan' is a folder: name one plan alone, or files of data" "$train" plan plan -o never
fails 2 "'plan' is a folder: name one plan alone" "$train" clicks.svm plan -o never
fails 2 "'clicks.svm' is no plan, which is a folder that drps-index makes; of data --algo is missing: lir, lor" "$train" clicks.svm -o never
fails 2 "'-' is no plan, .*--algo is missing" "$train" - -o never </dev/null
fails 2 'no plan: name the folder that drps-index made, or files of data' "$train" -o never
fails 2 'no input: name at least one file' "$train" --algo lor -o never
fails 2 '[-]o MODEL is missing' "$train" clicks.svm --algo lor
fails 1 'nosuch: No such file or directory$' "$train" nosuch -o never
fails 1 'cannot open nosuch.svm: No such file or directory$' "$train" nosuch.svm --algo lor -o never
fails 2 'needs --order shuffled or grid' "$train" ratings.tsv --algo lmf --order given --lanes 2 -o never
fails 2 'has no factors \(--algo, --factors\)$' "$train" clicks.svm --algo lor --factors 2 -o never
fails 2 "unrecognized option '--base" "$train" clicks.svm --algo lor --base plan -o never
fails 2 "unrecognized option '--workers" "$train" clicks.svm --algo lor --workers 2 -o never
for ranks in "--local 2" "--peers peers.txt" "--transport mpi"; do
    # shellcheck disable=SC2086
    fails 2 'data are trained by one process.*drps-index --workers N' "$train" clicks.svm --algo lor $ranks -o never
done
fails 2 '[-]-publish makes a model of what is trained already' "$train" --publish plan clicks.svm --algo lor -o never
printf '1 1:1\n-1 x:1\n' >bad.svm
fails 1 'bad.svm:2:' "$train" bad.svm --algo lor --format libsvm -o never
fails 1 'at least 64M' "$train" clicks.svm --algo lor --memory 20M -o never
fails 1 'cannot create' "$train" clicks.svm --algo lor -o nosuchfolder/never
absent never
absent never.plan
# A hint about a plan names no option that only data have.
fails 2 'drps-index --test, --test-fraction, --patience\)$' "$train" plan -o never --patience 2
"$train" clicks.svm --algo svm -o margin --quiet
"$index" clicks.svm --algo svm --loss squared-hinge -o squared --quiet
fails 2 'make the plan for the loss hinge \(--from\)$' "$train" squared --from margin -o never
# The model's place is looked at before data are read.
mkdir taken
fails 1 'taken exists already' "$train" clicks.svm --algo lor -o taken
fails 1 'taken exists and is not replaced' "$train" clicks.svm --algo lor -o taken --force
absent taken.plan
# The plan's place: what drps-train has not made stays, whatever it is.
cp -r plan mine.plan
fails 1 'mine.plan is where the plan of the data belongs, and drps-train has not made it: ' "$train" clicks.svm --algo lor -o mine --force
diff -r plan mine.plan || fail "mine.plan was changed"
mkdir photos.plan
echo snow >photos.plan/1.jpg
fails 1 'photos.plan is where .* move photos.plan away' "$train" clicks.svm --algo lor -o photos --force
[[ $(cat photos.plan/1.jpg) = snow ]] || fail "photos.plan was changed"
echo snow >letter.plan
fails 1 'letter.plan is where' "$train" clicks.svm --algo lor -o letter --force
[[ $(cat letter.plan) = snow ]] || fail "letter.plan was changed"
cp -r again.plan more.plan
cp photos.plan/1.jpg more.plan
fails 1 'more.plan exists and is not replaced: more.plan/1.jpg' "$train" clicks.svm --algo lor -o more --force
absent mine && absent photos && absent letter && absent more
# Training that fails leaves the plan, for the next try.
fails 2 'quasi-Newton|lbfgs' "$train" clicks.svm --algo fm --optimizer lbfgs -o tried
absent tried
"$train" clicks.svm --algo fm --optimizer sgd -o tried >out.txt 2>err.txt
grep -q 'tried.plan is of the same data and options' err.txt || fail "the plan of a failed training is not used: $(cat err.txt)"
echo "ok mistakes"

# Interrupted while it reads: nothing is left.
mkfifo slow
"$train" slow --algo lor --format libsvm -o stopped --quiet &
pid=$!
exec 7>slow
cat clicks.svm >&7
until [[ -e stopped.plan.partial ]]; do
    kill -0 $pid || fail "ended while it read"
    pause
done
kill -INT $pid
exec 7>&-
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "interrupted while reading: $status"
absent stopped
absent stopped.plan
[[ ! -e stopped.checkpoint ]] || fail "stopped.checkpoint was left behind"

# Interrupted while it trains: the same command with --resume goes on, with the plan that is there, to the same model.
# stop: stopped.{plan,checkpoint} after some epochs
stop() {
    rm -rf stopped stopped.*
    : >progress.txt
    "$train" clicks.svm --algo fm --factors 8 --epochs 100000 -o stopped >>progress.txt 2>err.txt &
    pid=$!
    until [[ $(grep -c '^ *[0-9]' progress.txt) -ge 2 ]]; do
        kill -0 $pid 2>/dev/null || fail "training ended too soon: $(cat err.txt)"
        pause
    done
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [[ $status = 130 && -d stopped.plan && -d stopped.checkpoint ]] || fail "interrupted while training: $status: $(cat err.txt)"
    epochs=$(($(grep -c '^ *[0-9]' progress.txt) + 2))
}
stop
cp stopped.plan/plan.json first.json
fails 1 'stopped.plan is not known to be of the same data and options: .*drps-train stopped.plan --resume -o stopped$' "$train" clicks.svm --algo fm --factors 9 --epochs $epochs --resume -o stopped
fails 1 'stopped.plan is not known' "$train" clicks.svm --algo fm --factors 9 --epochs $epochs --resume --force -o stopped
cmp first.json stopped.plan/plan.json || fail "a run that is resumed replaced its plan"
"$train" clicks.svm --algo fm --factors 8 --epochs $epochs --resume -o stopped >out.txt 2>err.txt || fail "--resume: $(cat err.txt)"
grep -q 'stopped.plan is of the same data' err.txt && grep -q 'going on from checkpoint' err.txt || fail "--resume did not go on: $(cat err.txt)"
cmp first.json stopped.plan/plan.json || fail "--resume made the plan anew"
"$train" clicks.svm --algo fm --factors 8 --epochs $epochs -o whole --quiet
[[ $(value content <stopped/model.json) = "$(value content <whole/model.json)" ]] || fail "resumed, it is another model"
absent stopped.checkpoint
# Without the plan, --resume makes it again: it is the same, and training goes on.
stop
rm -r stopped.plan
"$train" clicks.svm --algo fm --factors 8 --epochs $epochs --resume -o stopped >out.txt 2>err.txt || fail "--resume without the plan: $(cat err.txt)"
grep -q 'going on from checkpoint' err.txt || fail "--resume without the plan began anew: $(cat err.txt)"
# Attempts after failures have the plan of the first.
"$train" clicks.svm --algo lor --on-failure resume -o attempts --quiet || fail "--on-failure resume"
"$tools/drps-stat" attempts --verify >/dev/null
"$tools/drps-stat" attempts.plan --verify >/dev/null
echo "ok interrupted and resumed"
