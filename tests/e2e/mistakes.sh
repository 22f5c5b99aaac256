#!/usr/bin/env bash
# The mistakes that users make: each ends with the right status, a message that says what to do, and nothing left behind.
. "$(dirname "$0")/lib.sh"
index=$tools/drps-index
train=$tools/drps-train
printf '1 1:1 2:1\n-1 2:1 3:0.5\n1 1:1\n-1 3:1\n' >good.svm
printf '1 1:1\n-1 x:1\n' >bad.svm
printf '1 1:1\n1 2:1\n' >one.svm
printf '1 1:1\n2 2:1\n3 1:1\n' >three.svm
: >empty.svm

fails 2 'no input' "$index" --algo lor -o plan
fails 2 'algo' "$index" good.svm -o plan
fails 2 '-o PLAN' "$index" good.svm --algo lor
fails 2 'nosuch' "$index" good.svm --algo nosuch -o plan
fails 2 'unrecognized|unknown|invalid' "$index" good.svm --algo lor -o plan --nosuch-option
fails 2 'size|memory' "$index" good.svm --algo lor -o plan --memory much
fails 1 'error: a memory limit of .* TiB is above the .* that this machine has: no memory.*--memory' "$index" good.svm --algo lor -o plan --memory 900000T
grep -q 'warning: a memory limit of .* TiB is above the' err.txt || fail "no warning before anything is read: $(cat err.txt)"
fails 1 'missing.svm' "$index" missing.svm --algo lor -o plan
absent plan
fails 1 'bad.svm:2:' "$index" bad.svm --algo lor -o plan --format libsvm
absent plan
"$index" bad.svm --algo lir -o plan --format libsvm --on-error skip --quiet --json >skip.json
[[ $(value skipped_lines <skip.json) = 1 ]] || fail "skipped_lines is $(value skipped_lines <skip.json)"
rm -r plan
printf 'alt.atheism 90:1\nsci.med 3:1\n' >names.svm
fails 1 "names.svm: looks like libsvm whose labels are names: 'alt.atheism 90:1'.*mlr.*--algo" "$index" names.svm --algo lor -o plan
absent plan
fails 1 'two classes' "$index" one.svm --algo lor -o plan
absent plan
fails 1 'exactly two' "$index" three.svm --algo lor -o plan
absent plan
for algo in lir lor svm lmf fm ffm mlr topic bpr warp wmf; do
    fails 1 "empty.svm is empty: there are no samples to read" "$index" empty.svm --algo $algo -o plan
done
fails 1 "stdin is empty: there are no samples to read" "$index" - --algo lor -o plan </dev/null
absent plan
fails 2 'ratings' "$index" good.svm --algo lmf -o plan --format libsvm
absent plan
fails 2 'needs the algorithm lmf.*--algo' "$index" good.svm --algo lor -o plan --order grid
fails 2 'needs ratings' "$index" good.svm --algo lmf -o plan --order grid --format libsvm
fails 2 'needs --order grid' "$index" good.svm --algo lmf -o plan --grid 4
fails 2 '4096|4097' "$index" good.svm --algo lmf -o plan --order grid --grid 4097
fails 2 '4096' "$index" good.svm --algo lmf -o plan --order grid --grid 4,0
fails 2 'grid' "$index" good.svm --algo lmf -o plan --order grid --grid 4,
absent plan
fails 1 'at least 64M.*--memory' "$index" good.svm --algo lor -o plan --memory 1M
absent plan
fails 1 'cannot create' "$index" good.svm --algo lor -o nosuchfolder/plan
"$index" good.svm --algo lor -o plan --quiet
fails 1 'exists' "$index" good.svm --algo lor -o plan
"$index" good.svm --algo lor -o plan --force --quiet

fails 2 'PLAN|plan' "$train"
fails 2 'good.svm. is no plan.*of data --algo is missing' "$train" good.svm -o model
fails 1 'nosuch: No such file or directory$' "$train" nosuch -o model
fails 1 'too small' "$train" plan -o model --memory 1M
absent model
fails 1 "at least [0-9.]+ MiB is needed.*two windows of a step's rows" "$train" plan -o model --store relay --memory 20M
absent model
fails 2 'auto.*resident.*relay' "$train" plan -o model --store nosuch
fails 2 '' "$train" plan -o model --patience 3
fails 2 "[-]-epochs: '100001' is out of range: from 1 to 100000" "$train" plan -o model --epochs 100001
fails 2 'expected MODEL:SECONDS' "$train" plan -o model --emulate pauses:0
fails 1 'good.svm:1: .1:1. at column 3: expected seconds' "$train" plan -o model --emulate good.svm
absent model
"$train" plan -o model --quiet
fails 1 'exists' "$train" plan -o model
fails 1 'neither a plan nor a model' "$tools/drps-stat" "$work"
fails 1 'nosuch: No such file or directory$' "$tools/drps-stat" nosuch
fails 1 'nosuch: No such file or directory$' "$tools/drps-predict" nosuch good.svm -o scores
fails 1 'model' "$tools/drps-predict" plan good.svm -o scores
[[ ! -e scores ]] || fail "scores was left behind"
fails 1 'bad.svm:2' "$tools/drps-predict" model bad.svm --format libsvm -o scores
[[ ! -e scores ]] || fail "scores was left behind"
fails 2 '[-]-rank is this process.s number of several, .* drps-index --factors' "$train" plan -o model2 --rank 8

# A reader of standard output that has enough, as head: training is done all the same, and nothing is said. What could not be
# written is a failure, as of a full disk, which is told.
mkfifo unread
: <unread &
exec 6>unread
wait
"$train" plan -o heard --epochs 3 >&6 2>err.txt || fail "training that nobody reads: $(cat err.txt)"
[[ ! -s err.txt ]] || fail "training that nobody reads: $(cat err.txt)"
"$tools/drps-stat" heard --verify >/dev/null || fail "the model of a training that nobody reads"
status=0
"$tools/drps-predict" model good.svm -o - >&6 2>err.txt || status=$?
[[ $status = 1 ]] || fail "scores that nobody reads: $status"
[[ ! -s err.txt ]] || fail "scores that nobody reads: $(cat err.txt)"
exec 6>&-
status=0
"$train" plan -o full --epochs 3 >/dev/full 2>err.txt || status=$?
[[ $status = 1 ]] || fail "a full standard output: $status"
grep -q 'standard output: No space left' err.txt || fail "a full standard output: $(cat err.txt)"

# A message of the libraries ends with the options that set what it speaks of: all of them, and none that mean something else.
# hint STATUS OPTIONS COMMAND...
hint() { fails "$1" " \\($2\\)\$" "${@:3}"; }
awk 'BEGIN {srand(4); for (i = 0; i < 500; i++) printf "u%d\ti%d\t%d\n", rand() * 20, rand() * 9, 1 + rand() * 5}' >ratings.tsv
"$index" ratings.tsv --algo lmf --factors 2 --workers 2 -o plan-2 --quiet
lor() { hint 2 "$1" "$index" good.svm --algo lor -o never "${@:2}"; }
lor "--test, --test-fraction" --test good.svm --test-fraction 0.1
for share in 0.95 1 1.5 -0.1 91%; do
    fails 2 "test-fraction.*'$share' is out of range: from 0 to 0.9, or 0% to 90%" "$index" good.svm --algo lor -o never --test-fraction "$share"
done
lor "--algo, --order" --order grid
lor "--partition, --workers" --partition greedy
lor "--partition, --samples" --workers 4 --samples placed --partition range
lor "--workers, --servers" --workers 100
lor "--prune, --prune-to" --blocks topk --prune 2 --prune-to 3
lor "--calibrate, --seek-us, --transfer-mbs" --calibrate . --seek-us 4
lor "--algo, --factors" --factors 4
lor "--algo, --loss" --loss hinge
lor "--columns" --columns x:number
lor "--separator" --separator ,
lor "--label" --label x
printf '5.1,3.5,a\n4.9,3,b\n' >headless.csv
hint 1 "--no-header, --label" "$index" headless.csv --algo mlr -o never
hint 2 "--label, --no-header" "$index" headless.csv --algo mlr -o never --format csv --label 3
hint 1 "--label, --algo" "$index" one.svm --algo lor -o never
hint 2 "--format, --algo" "$index" good.svm --algo lmf -o never
hint 2 "--partition, --residuals" "$index" ratings.tsv --algo lmf --order grid --workers 2 --residuals all -o never
lor "--residuals, --workers" --residuals all
hint 2 "--lanes, --workers" "$index" ratings.tsv --algo lmf --order grid --lanes 2 --workers 2 --partition range -o never
hint 1 "--memory" "$index" good.svm --algo lor -o never --memory 1M
hint 1 "--force" "$index" good.svm --algo lor -o plan
hint 2 "drps-index --test, --test-fraction, --patience" "$train" plan -o never --patience 2
hint 2 "drps-index --workers, --sync" "$train" plan -o never --sync asp
hint 2 "--sync, --staleness" "$train" plan -o never --staleness 3
hint 2 "--local, --rank, --peers" "$train" plan-2 -o never
hint 2 "drps-index --workers, --local" "$train" plan-2 -o never --local 3
hint 2 "--sync, --no-claim" "$train" plan-2 -o never --local 2 --no-claim
hint 2 "--local-steps" "$train" plan-2 -o never --local 2 --local-steps
hint 1 "--memory" "$train" plan -o never --memory 1M
hint 1 "--memory" "$tools/drps-predict" model good.svm -o never --memory 1M
printf '127.0.0.1:7001\n10.9.8.7:7002\n' >far.txt
ports 2 >near.txt
hint 2 "drps-train --make-keys DIR, --keys, --insecure" "$train" plan-2 -o never --peers far.txt --rank 0
hint 75 "--timeout" "$train" plan-2 -o never --peers near.txt --rank 0 --insecure --timeout 1
absent never
# Three columns of anything look like ratings: said where the algorithm takes features, and what is said of columns decides.
awk 'BEGIN {srand(5); for (i = 0; i < 200; i++) printf "%d,%d,%d\n", rand() * 50, rand() * 900, i % 2}' >three.csv
"$index" three.csv --algo lor -o three --quiet 2>err.txt
grep -q 'warning: three.csv is read as ratings: columns 1 and 2 are names of a user and an item; if they are features, name the format csv and say that there is no header (--format, --no-header)$' err.txt ||
    fail "ratings for lor: $(cat err.txt)"
for how in '--algo lmf' '--algo fm' '--algo lor --format ratings' '--algo lor --label 3'; do
    # shellcheck disable=SC2086  # words
    "$index" three.csv $how -o three --force --quiet 2>err.txt
    ! grep -q 'read as ratings' err.txt || fail "$how: $(cat err.txt)"
done
fails 2 'algo is missing: .*expr' "$index" good.svm -o never
"$index" good.svm --algo lor -o plan-said --blocks topk --calibrate . -v >out.txt 2>err.txt # says what was measured
grep -q 'a request costs' err.txt || fail "--calibrate says nothing: $(cat err.txt)"
# The time of an epoch is said, and measured beside it: on the screens, in JSON, and on the page.
grep -qE '^  resident .* [0-9.]+ +0\.00 +[0-9.]+$' out.txt || "$tools/drps-stat" plan-said | grep -qE '^  resident .* [0-9.]+ +0\.00 +[0-9.]+$' || fail "no time: $("$tools/drps-stat" plan-said)"
"$train" plan-said -o model-said --epochs 2 --json >train.json 2>err.txt
for key in compute disk epoch measured of_forecast; do
    sed -n '/"forecast_seconds": {/,/}/p' train.json | grep -qE "\"$key\": [0-9]" || fail "--json: no $key in $(sed -n '/"forecast_seconds"/,/}/p' train.json)"
done
"$tools/drps-stat" model-said >said.txt
grep -qE '^  forecast +[0-9.e-]+ s an epoch .* of that$' said.txt || fail "drps-stat has no time: $(cat said.txt)"
"$tools/drps-stat" model-said plan-said --html said.html >html.txt
grep -q 'Seconds of an epoch' said.html || fail "no time on the page"
# So is the limit that disk and arithmetic set, where rows lie on disk; a plan without speeds has none of so few rows.
"$train" plan-said -o model-limit --store relay --memory 64M --json >train.json
grep -q '"limit_seconds": {' train.json || fail "no limit by the plan's speeds: $(cat train.json)"
"$train" plan -o model-limit --store relay --memory 64M --force --json >train.json
! grep -q '"limit_seconds"' train.json || fail "a limit without speeds: $(cat train.json)"
"$tools/drps-stat" plan >said.txt
! grep -q 'epoch s' said.txt || fail "time without speeds: $(cat said.txt)"
grep -qF '(--' err.txt && fail "what is no mistake names options: $(cat err.txt)"

# Options that would do nothing are refused.
fails 2 '[-]-sample: .* counts no batch' "$index" good.svm --algo lor -o never --blocks topk --sample 0
fails 2 '[-]-epoch, --windows, --topics, --weights, --similar and --export are for models, and plan is a plan' "$tools/drps-stat" plan --windows
fails 2 '[-]-epoch, --windows, --topics, --weights, --similar and --export are for models, and plan is a plan' "$tools/drps-stat" plan --epoch 1

# A damaged plan is named and not trained on.
cp -r plan hurt
printf 'x' | dd of=hurt/data.rec bs=1 seek=70 conv=notrunc status=none
fails 1 'data.rec' "$train" hurt -o model2
absent model2
fails 1 'data.rec' "$tools/drps-stat" hurt --verify
cp -r plan hurt2
sed -i 's/"batch_size": /"batch_size": 9/' hurt2/plan.json
fails 1 'checksum' "$train" hurt2 -o model2
cp -r plan hurt3
truncate -s -1 hurt3/rows.rec
fails 1 'rows.rec' "$train" hurt3 -o model2
absent model2

# --force replaces plans and models, and nothing of anybody else.
"$index" good.svm --algo lor -o ours --quiet
"$train" plan -o home --quiet
mkdir home/photos
echo snow >home/photos/1.jpg
fails 1 'home exists and is not replaced: home/photos is not one of its files' "$train" plan -o home --force
rm -r home/names.rec home/rows
fails 1 'home/photos' "$train" plan -o home --force
for text in '{}' '{"kind":"drps-model","version":1}' '{"kind":'; do
    rm -r home
    mkdir -p home/photos
    echo snow >home/photos/1.jpg
    echo "$text" >home/model.json
    cp home/model.json home/plan.json
    fails 1 'home exists and is not replaced' "$train" plan -o home --force
    fails 1 'home exists and is not replaced' "$index" good.svm --algo lor -o home --force
    rm -r home/photos home/plan.json
    fails 1 'home exists and is not replaced: home/model.json' "$train" plan -o home --force
    mkdir home/photos
    echo snow >home/photos/1.jpg
    [[ $(cat home/photos/1.jpg) = snow && $(cat home/model.json) = "$text" ]] || fail "home is not as it was"
done
fails 1 'ours exists and is not replaced: .*ours holds no model.json' "$train" ours -o ours --force # the plan itself
fails 1 'ours exists and is not replaced: .*ours holds no model.json' "$train" plan -o ./ours// --force
fails 1 'model exists and is not replaced: model holds no plan.json' "$index" good.svm --algo lor -o model --force
"$tools/drps-stat" ours --verify >stat.txt
"$tools/drps-stat" model --verify >stat.txt
ln -s ours link
fails 1 'symbolic link' "$index" good.svm --algo lor -o link --force
fails 1 'symbolic link' "$index" good.svm --algo lor -o link/ --force
for name in . .. / ours/..; do
    fails 2 'is no name' "$index" good.svm --algo lor -o $name --force
    fails 2 'is no name' "$train" plan -o $name --force
done
for suffix in partial replaced; do
    mkdir ours.$suffix
    : >ours.$suffix/lock
    echo snow >ours.$suffix/1.jpg
    fails 1 "ours.$suffix is in the way" "$index" good.svm --algo lor -o ours --force
    [[ $(cat ours.$suffix/1.jpg) = snow ]] || fail "ours.$suffix/1.jpg is gone"
    rm -r ours.$suffix
done
"$index" good.svm --algo lor -o ours --force --quiet
absent ours.partial
(cd ours && "$index" ../good.svm --algo lor -o ../ours --force --quiet) # the current folder
"$tools/drps-stat" ours --verify >stat.txt

# drps-predict: neither an existing file unless told, nor ever what it reads.
"$tools/drps-predict" model good.svm -o scores --quiet
cp scores want
fails 1 'scores exists already.*--force' "$tools/drps-predict" model good.svm -o scores
"$tools/drps-predict" model good.svm -o scores --force --quiet
cmp scores want
ln good.svm hard
ln -s good.svm soft
cp good.svm good.copy
for name in good.svm hard soft ./plan/../good.svm; do
    fails 2 'is the input good.svm' "$tools/drps-predict" model good.svm -o $name --force
done
fails 2 'is the input on standard input' "$tools/drps-predict" model - -o good.svm --force --format libsvm <good.svm
cmp good.svm good.copy
fails 2 'lies in the folder' "$tools/drps-predict" model good.svm -o model/scores
fails 2 'lies in the folder' "$tools/drps-predict" model good.svm -o model/names.rec --force
fails 1 'is a folder' "$tools/drps-predict" model good.svm -o model --force
[[ $("$tools/drps-predict" model good.svm -o - --quiet | cksum) = "$(cksum <want)" ]] || fail "other scores on standard output"
mkfifo feed # a run that waits for its input holds its output
"$tools/drps-predict" model - --format libsvm -o scores --force --quiet <feed &
pid=$!
exec 3>feed
SECONDS=0
until [[ -e scores.partial/lock ]]; do
    kill -0 $pid 2>/dev/null && ((SECONDS < 60)) || fail "drps-predict does not hold its output while it waits for input"
    pause
done
fails 1 'scores.partial is being written by another process' "$tools/drps-predict" model good.svm -o scores --force
kill -KILL $pid
wait $pid 2>/dev/null || true
exec 3>&-
cmp scores want || fail "a killed drps-predict changed its output"
"$tools/drps-predict" model good.svm -o scores --force --quiet # what it left is removed
absent scores.partial

# Options from a configuration file; the command line wins; an unknown key is named with its line.
printf '[drps-train]\nepochs = 3\n' >drps.ini
[[ $("$train" plan -o model3 --config drps.ini --quiet --json | all_values epoch | tail -1) = 3 ]] || fail "--config is not read"
printf '[drps-train]\nepoch = 3\n' >wrong.ini
fails 2 'wrong.ini:2' "$train" plan -o model4 --config wrong.ini
printf '[drps-train]\nepochs = 3\0\n' >nul.ini
fails 2 'nul.ini:2:11: a control character' "$train" plan -o model4 --config nul.ini

# Pipes, devices and folders in place of files are refused at once; data may come from pipes.
mkfifo fifo
plain() { fails "$1" "$2" timeout 120 "${@:3}"; }
plain 2 'fifo is a pipe' "$train" plan -o model4 --config fifo
plain 1 'fifo is a pipe' "$train" plan -o model4 --rank 0 --peers fifo --insecure
plain 1 'fifo is a pipe' "$train" plan -o model4 --emulate fifo
plain 1 '/dev/zero is a device' "$index" /dev/zero --algo lor -o plan4
plain 1 '/dev/zero is a device' "$index" good.svm --test /dev/zero --algo lor -o plan4
plain 1 'is a folder: name the files' "$index" good.svm plan --algo lor -o plan4
rm -f scores
plain 1 '/dev/zero is a device' "$tools/drps-predict" model /dev/zero -o scores
absent plan4
absent model4
absent scores
for file in plan.json data.rec rows.rec names.rec; do
    rm -rf piped
    cp -r plan piped
    rm piped/$file
    mkfifo piped/$file
    plain 1 "$file is a pipe" "$train" piped -o model4
    plain 1 "$file is a pipe" "$tools/drps-stat" piped --verify
    absent model4
done
for file in model.json names.rec rows/CURRENT; do
    rm -rf piped
    cp -r model piped
    rm piped/$file
    mkfifo piped/$file
    plain 1 "$file is a pipe" "$tools/drps-stat" piped
    plain 1 "$file is a pipe" "$tools/drps-predict" piped good.svm -o scores
    absent scores
done
timeout 120 "$index" <(cat good.svm) --algo lor -o piped-plan --quiet || fail "data are not read from a pipe"
cat good.svm >fifo &
timeout 120 "$tools/drps-predict" model fifo --format libsvm -o scores --quiet || fail "data are not read from a FIFO"
[[ $(wc -l <scores) = 4 ]] || fail "$(wc -l <scores) scores of 4 samples"
wait
for tool in index train stat predict gen; do
    "$tools/drps-$tool" --help >help.txt || fail "drps-$tool --help"
    grep -q Usage help.txt || fail "drps-$tool --help prints no usage"
    "$tools/drps-$tool" --version >version.txt
    grep -qE "[0-9]+\.[0-9]+" version.txt || fail "drps-$tool --version"
done
echo "ok"
