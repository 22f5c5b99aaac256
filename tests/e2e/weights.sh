#!/usr/bin/env bash
# Weights: a sample of weight n trains and counts as n copies do, wherever the weight comes from; it goes with its sample through
# every store, rank and checkpoint; what cannot be a weight is refused by file and line.
. "$(dirname "$0")/lib.sh"

index() { "$tools/drps-index" "$@" --force --quiet; }
train() { "$tools/drps-train" "$@" --force --checkpoint-every never --quiet --json; }

# ---- The optimum ----

# Of a9a with an intercept as a feature; sample i weighs 1 + i mod 3, or those of class 1 weigh 3. liblinear-train -s 0 -e 1e-10 -c 1
# comes to these objectives, of copies of the samples, and with -w1 3.
a9a=$source/../shared/data/a9a/a9a.xz
if [[ -f $a9a ]]; then
    xzcat "$a9a" | sed 's/ *$/ 200:1/' >a9a.svm
    awk '{ print 1 + NR % 3 }' a9a.svm >a9a.weights
    for want in "20990.1292319 --weights a9a.weights" "18545.4746850 --class-weights 1=3"; do
        read -r value option argument <<<"$want"
        index a9a.svm --algo lor --no-bias "$option" "$argument" -o a9a
        train a9a -o model --optimizer lbfgs --l2 1 --tolerance 1e-6 --epochs 250 >a9a.json
        near "$(all_values objective <a9a.json | tail -1)" "$value" 1e-6 || fail "$option: $(all_values objective <a9a.json | tail -1)"
    done
    # Balanced: 32561 samples, 7841 of class 1.
    index a9a.svm --algo lor --class-weights balanced -o a9a
    "$tools/drps-stat" a9a --json >stat.json
    near "$(all_values sum <stat.json) $(all_values most <stat.json)" "32561 $(awk 'BEGIN { printf "%.9f", 32561 / (2 * 7841) }')" 1e-6 ||
        fail "balanced: $(cat stat.json)"
    echo "ok optimum of a9a"
else
    echo "SKIPPED: the optimum of a9a, as ../shared/data has none"
fi

# ---- The loss curve ----

five_classes
head -n 400 train.svm >few.names
awk '{ for (i = 0; i < 3; i++) print }' few.names >copies.names
awk '{ print 3 }' few.names >threes
for algo in lor svm lir mlr; do
    case $algo in
    mlr) relabel='{ print }' ;;
    *) relabel='{ $1 = ($1 == "ash" || $1 == "elm") ? 1 : -1; print }' ;;
    esac
    awk "$relabel" few.names >few.$algo
    awk "$relabel" copies.names >copies.$algo
    index few.$algo --weights threes --algo $algo --order given --batch-size 1 -o weighted
    index copies.$algo --algo $algo --order given --batch-size 3 -o copied
    for optimizer in sgd adagrad ftrl adam; do
        train weighted -o model --optimizer $optimizer --epochs 3 >weighted.json
        train copied -o model2 --optimizer $optimizer --epochs 3 >copied.json
        near "$(all_values train_loss <weighted.json)" "$(all_values train_loss <copied.json)" 1e-6 ||
            fail "$algo, $optimizer: $(all_values train_loss <weighted.json | xargs), of copies $(all_values train_loss <copied.json | xargs)"
    done
    # A step after each sample is what a batch of one sample is; and the mean of a batch is by weight.
    train weighted -o model2 --local-steps --optimizer adagrad --epochs 3 >copied.json
    train weighted -o model --optimizer adagrad --epochs 3 >weighted.json
    near "$(all_values train_loss <weighted.json)" "$(all_values train_loss <copied.json)" 1e-6 || fail "$algo: local steps $(all_values train_loss <copied.json | xargs)"
    train weighted -o model --batch-mean --optimizer sgd --epochs 3 >weighted.json
    train copied -o model2 --batch-mean --optimizer sgd --epochs 3 >copied.json
    near "$(all_values train_loss <weighted.json)" "$(all_values train_loss <copied.json)" 1e-6 || fail "$algo: means over batches $(all_values train_loss <weighted.json | xargs)"
done
# An intercept where it starts: of what samples weigh. A model that trains next to nothing has it alone.
awk '{ print NR % 5 + 1 }' few.lor >fifths
awk '{ for (i = 0; i < NR % 5 + 1; i++) print }' few.lor >copies.lor
for of in "few.lor --weights fifths" copies.lor; do
    # shellcheck disable=SC2086  # two words
    index $of --algo lor -o plan
    train plan -o model --optimizer sgd --lr 1e-20 --epochs 1 >start.json
    all_values train_loss <start.json >>starts
done
near "$(sed -n 1p starts)" "$(sed -n 2p starts)" 1e-6 || fail "the intercept starts elsewhere: $(xargs <starts)"
echo "ok the loss curve"

# ---- Metrics ----

# A model's metrics on weighted data are those on copies; scores do not change, and one of weight 0 has a score, too.
awk '{ print NR % 4 }' few.lor >weights
awk '{ for (i = 0; i < NR % 4; i++) print }' few.lor >copied.lor
"$tools/drps-index" few.lor --algo lor -o plan --force --quiet
train plan -o model --epochs 3 >/dev/null
"$tools/drps-predict" model few.lor --weights weights --metrics -o scores.txt --force --quiet --json >weighted.json
"$tools/drps-predict" model copied.lor --metrics -o copied.txt --force --quiet --json >copied.json
"$tools/drps-predict" model few.lor -o plain.txt --force --quiet
cmp scores.txt plain.txt || fail "weights change scores"
for key in test_loss test_auc test_accuracy; do
    near "$(value $key <weighted.json)" "$(value $key <copied.json)" 1e-6 || fail "$key $(value $key <weighted.json), of copies $(value $key <copied.json)"
done
# So it is in training, whose test samples have weights of their own.
index few.lor --test few.lor --test-weights weights --algo lor --order given -o weighted
index few.lor --test copied.lor --algo lor --order given -o copied
train weighted -o model --epochs 2 >weighted.json
train copied -o model2 --epochs 2 >copied.json
for key in test_loss test_auc test_accuracy; do
    near "$(all_values $key <weighted.json)" "$(all_values $key <copied.json)" 1e-6 || fail "$key $(all_values $key <weighted.json | xargs)"
done
echo "ok metrics"

# ---- Where weights come from ----

# A name is new every 25 lines: rows are numbered by when they are used first, to eight lines.
awk 'BEGIN { srand(3); print "site,hour,clicks,shown,note"; for (i = 0; i < 500; i++) { k = int(i / 50)
    s = i % 50 == 0 ? k : int(rand() * (k + 1)); m = i % 50 < 25 && k ? k - 1 : k
    h = i % 50 == 25 ? k : int(rand() * (m + 1)); n = int(rand() * 20) + (i % 25 == 0)
    c = int(n * (s + 1) / 20 * rand()); print "s" s "," h "," c "," n "," i } }' >counts.csv
awk -F, 'NR == 1 { print "label,site,hour,note,w"; next } $3 > 0 { print "1," $1 "," $2 "," $5 "," $3 }
    $4 > $3 { print "-1," $1 "," $2 "," $5 "," $4 - $3 }' counts.csv >lines.csv
columns="site:category,hour:category,note:ignore"
index counts.csv --algo lor --clicks clicks --impressions shown --columns "$columns" --order given -o counts
index lines.csv --algo lor --weight w --columns "$columns" --order given -o lines
cut -d, -f5 lines.csv | tail -n +2 >lines.weights
cut -d, -f1-4 lines.csv >unweighted.csv
index unweighted.csv --weights lines.weights --algo lor --columns "$columns" --order given -o file
for plan in lines file; do
    cmp counts/data.rec $plan/data.rec && cmp counts/rows.rec $plan/rows.rec || fail "$plan: other batches than of clicks and impressions"
done
train counts -o model --epochs 3 >/dev/null
"$tools/drps-predict" model counts.csv --metrics --clicks clicks --impressions shown -o counts.txt --force --quiet --json >counts.json
"$tools/drps-predict" model lines.csv --metrics --weight w -o lines.txt --force --quiet --json >lines.json
[[ $(wc -l <counts.txt) = 500 && $(value test_samples <counts.json) = 500 ]] || fail "scores of clicks: $(wc -l <counts.txt) lines"
for key in test_loss test_auc test_accuracy; do
    near "$(value $key <counts.json)" "$(value $key <lines.json)" 1e-9 || fail "$key of clicks $(value $key <counts.json), of lines $(value $key <lines.json)"
done
awk 'BEGIN { srand(4); for (i = 0; i < 3000; i++) print "u" int(rand() * 50) "\ti" int(rand() * 40) "\t" int(rand() * 5) + 1 "\t" int(rand() * 4) }' >ratings.tsv
awk -F'\t' '{ for (i = 0; i < $4; i++) print $1 "\t" $2 "\t" $3 }' ratings.tsv >copies.tsv
"$tools/drps-index" ratings.tsv --algo lmf --factors 4 --weight 4 -o ratings --force >index.txt
grep -q 'samples of weight 0 left out' index.txt && grep -q "weights  training samples weigh $(wc -l <copies.tsv) together, 3 at most" index.txt ||
    fail "ratings: $(cat index.txt)"
index copies.tsv --algo lmf --factors 4 -o copied
for plan in ratings copied; do
    train $plan -o model-$plan --optimizer sgd --lr 1e-20 --epochs 1 >$plan.json # where all begins: the intercept
done
near "$(all_values train_loss <ratings.json)" "$(all_values train_loss <copied.json)" 1e-3 || fail "ratings: $(all_values train_loss <ratings.json)"
echo "ok files, columns, clicks"

# ---- Stores, ranks, checkpoints ----

"$tools/drps-gen" ctr --samples 6K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
awk '{ print 0.25 + NR % 8 }' data.svm >data.weights
index data.svm --weights data.weights --class-weights balanced --algo fm --factors 4 --test-fraction 0.1 --memory 64M -o plan
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
content() { # TRAIN-OPTIONS...
    train "$@" -o model --epochs 2 >train.json
    echo "$(all_values train_loss <train.json) $(all_values test_auc <train.json) $("$tools/drps-stat" model --json | value content)"
}
want=$(content plan --store resident)
for store in relay file rocksdb leveldb; do
    got=$(content plan --store $store --memory 80M)
    [[ $got = "$want" ]] || fail "$store: $got instead of $want"
done
# Killed amid the first epoch, it goes on with the samples' weights.
"$tools/drps-train" plan -o stopped --epochs 2 --checkpoint-every 5b --quiet 2>/dev/null &
pid=$!
until [[ $(newest stopped.checkpoint/rank-0) -ge 3 || -e stopped ]]; do
    kill -0 $pid 2>/dev/null || [[ -e stopped ]] || fail "drps-train ended too soon"
    pause
done
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
[[ -e stopped ]] || "$tools/drps-train" plan -o stopped --epochs 2 --resume --quiet --json >train.json
got="$(all_values train_loss <train.json) $(all_values test_auc <train.json) $("$tools/drps-stat" stopped --json | value content)"
[[ $got = "$want" ]] || fail "resumed: $got instead of $want"
index ratings.tsv --algo lmf --factors 4 --weight 4 --order grid --lanes 4 --batch-size 64 -o lanes
[[ $(content lanes) = "$(content lanes --threads 3)" ]] || fail "lanes depend on threads"
index ratings.tsv --algo lmf --factors 4 --weight 4 --lanes 4 --batch-size 64 -o mixed
[[ $(content mixed) = "$(content mixed --threads 3)" ]] || fail "lanes of the shuffled order depend on threads"

index data.svm --weights data.weights --class-weights balanced --algo fm --factors 4 --test-fraction 0.1 --workers 3 -o ranks
"$tools/drps-stat" ranks --verify >/dev/null || fail "the ranks' plan does not verify"
index --from-plan ranks --workers 2 -o two
index --from-plan ranks --workers 1 -o one
for plan in two one; do
    "$tools/drps-stat" $plan --verify >/dev/null || fail "--from-plan: $plan does not verify"
    near "$("$tools/drps-stat" $plan --json | all_values sum)" "$("$tools/drps-stat" ranks --json | all_values sum)" 1e-9 || fail "--from-plan: other weights"
done
if train ranks -o model --local 3 --epochs 2 >ranks.json 2>err.txt; then
    # Rounds of three batches are others than batches of one worker; at the start all weigh and count the same.
    for plan in ranks one; do
        local=$([[ $plan = one ]] || echo "--local 3")
        # shellcheck disable=SC2086  # two words, or none
        train $plan -o model $local --optimizer sgd --lr 1e-20 --epochs 1 >$plan.json
    done
    for key in train_loss test_loss test_auc test_accuracy; do
        near "$(all_values $key <ranks.json)" "$(all_values $key <one.json)" 1e-4 || fail "$key of ranks: $(all_values $key <ranks.json), of one $(all_values $key <one.json)"
    done
    # Sufficient vectors are of weighted losses.
    awk '{ print 1 + NR % 3 }' train.svm >train.weights
    index train.svm --weights train.weights --test test.svm --algo mlr --workers 3 --batch-size 40 -o classes
    for way in servers vectors rows; do
        train classes -o model --local 3 --epochs 2 --exchange $way >$way.json
        [[ $(value content <$way.json) = $(value content <servers.json) ]] || fail "$way: another model than of servers"
        [[ $(all_values train_loss <$way.json) = "$(all_values train_loss <servers.json)" ]] || fail "$way: another loss"
        [[ $(all_values sent_bytes <$way.json) = "$(all_values forecast_sent_bytes <$way.json)" ]] || fail "$way: other bytes than forecast"
    done
    echo "ok ranks"
else
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    echo "SKIPPED: ranks, as this build has no ZeroMQ"
fi
echo "ok stores and checkpoints"

# ---- Mistakes ----

refused() { # STATUS PATTERN INDEX-OPTIONS...
    local status=$1 pattern=$2
    shift 2
    fails "$status" "$pattern" "$tools/drps-index" "$@" -o refused
    absent refused
}
head -n 399 threes >short
(cat threes && echo 4) >long
sed '7s/.*/-2/' threes >negative
sed '8s/.*/nan/' threes >nan
refused 1 "short ends after 399 weights, and line 400 of few.lor is one sample more" few.lor --weights short --algo lor
refused 1 "long:401: a weight, but few.lor has no more than 400 lines with a sample" few.lor --weights long --algo lor
refused 1 "negative:7: weight is negative: '-2'" few.lor --weights negative --algo lor
refused 1 "nan:8: weight is NaN or infinite" few.lor --weights nan --algo lor
refused 1 "missing" few.lor --weights missing --algo lor
refused 2 "1 files of weights for 2 of data" few.lor few.lor --weights threes --algo lor
refused 2 "weights of test files, but no test file" few.lor --test-weights threes --algo lor
refused 2 "header has no column 'weight'" lines.csv --weight weight --algo lor
awk -F, 'NR == 3 { $0 = "s1,1,9,3,0" } 1' counts.csv >bad.csv
refused 1 "bad.csv:3: 9 clicks of 3 impressions" bad.csv --algo lor --clicks clicks --impressions shown
refused 2 "name both" counts.csv --algo lor --clicks clicks
refused 2 "give one of these" lines.csv --weights lines.weights --weight w --algo lor
refused 2 "file beside it" few.lor --weight w --algo lor
refused 2 "no label is 'x'; the labels are -1 and 1" few.lor --class-weights x=2 --algo lor
refused 2 "the classes are: ash, beech, elm, oak, yew" few.names --class-weights x=2 --algo mlr
refused 2 "is not NAME=W" few.lor --class-weights balance --algo lor
refused 2 "labels that are classes" few.lor --class-weights balanced --algo lir
refused 2 "the algorithm topic takes no weights" few.lor --weights threes --algo topic
refused 2 "give no other" --from-plan plan --workers 2 --weights threes
refused 2 "give no other" --from-plan plan --workers 2 --class-weights balanced
fails 2 "need --metrics" "$tools/drps-predict" model few.lor --weights threes -o refused
absent refused
"$tools/drps-index" few.lor --algo lor -o plan --force --quiet
train plan -o model --epochs 1 >/dev/null
fails 1 "short ends after 399 weights" "$tools/drps-predict" model few.lor --weights short --metrics -o refused
absent refused
# A line that is skipped has had its weight.
sed '5s/.*/bad/' few.lor >bad.lor
"$tools/drps-index" bad.lor --weights weights --algo lor --on-error skip -o skipped --quiet 2>/dev/null
"$tools/drps-stat" skipped --json >stat.json
near "$(all_values sum <stat.json)" "$(awk 'NR != 5 { s += $1 } END { print s }' weights)" 1e-9 || fail "skipped: $(all_values sum <stat.json)"
echo "ok mistakes"
