#!/usr/bin/env bash
# Topic models: topics that documents were made of are found; the model is the same from every store, with little memory, with more
# threads, and after an interruption; new documents are coded as held-out ones were; ranks come to the model of one with larger
# batches; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

# Documents of 3 topics with 10 words each, of which the first are the most frequent, and of some words that all share; word numbers
# from 1 as docword has them: topic t has 10 t + 1 to 10 t + 10. A document in eight is of two topics.
documents() { # DOCUMENTS SEED
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 1; i <= n; i++) {
        split("", count); t = i % 3; u = rand() < .125 ? (t + 1) % 3 : t
        for (w = 0; w < 40; w++) count[10 * (rand() < .5 ? t : u) + 1 + int(rand() * rand() * 10)]++
        for (w = 0; w < 4; w++) count[31 + int(rand() * 30)]++
        for (k = 1; k <= 60; k++) if (count[k]) print i, k, count[k] } }'
}
docword() { # FILE: with a header
    local lines
    lines=$(wc -l <"$1.lines")
    { echo "$2"; echo 60; echo "$lines"; cat "$1.lines"; } >"$1"
}
documents 600 1 >train.txt.lines && docword train.txt 600
documents 90 2 >test.txt.lines && docword test.txt 90
libsvm() { awk 'NR > 3 { if ($1 != d) printf "%s%s", d ? "\n" : "", $1 % 5; d = $1; printf " %d:%d", $2, $3 } END { print "" }' "$1"; }
libsvm train.txt >train.svm
libsvm test.txt >test.svm

index() { "$tools/drps-index" "$@" --algo topic --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --checkpoint-every never; }
content() { "$tools/drps-stat" "$1" --json | value content; }

index train.txt --test test.txt --factors 4 --batch-size 50 -o plan
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
[[ $("$tools/drps-stat" plan --json | all_values algo) = topic ]] || fail "the plan is of another algorithm"
[[ $("$tools/drps-stat" plan | grep -c "table *doc *600 rows.*code\|table *word *60 rows, from row 600 on: a word") = 2 ]] ||
    fail "other tables: $("$tools/drps-stat" plan | grep table)"

# ---- Topics, and an objective that does not rise ----

train plan -o model --epochs 30 --l1 0.5 --l2 0.1 --json >train.json
all_values train_loss <train.json | awk 'NR > 1 && $1 > last * (1 + 1e-6) { exit 1 } { last = $1 } END { if (NR != 30) exit 1 }' ||
    fail "the objective rises: $(all_values train_loss <train.json | tr '\n' ' ')"
seq 60 | awk '{ print ($1 <= 30 ? substr("abc", int(($1 - 1) / 10) + 1, 1) : "x") $1 }' >words.txt
"$tools/drps-stat" model --topics 4 --words words.txt >topics.txt
[[ $(wc -l <topics.txt) = 4 ]] || fail "not a line a topic: $(cat topics.txt)"
for topic in a b c; do # some topic has no words but this one's
    awk -v t=$topic '{ for (i = 2; i <= NF; i++) if (substr($i, 1, 1) != t) next; found = 1 } END { exit !found }' topics.txt ||
        fail "topic $topic is not found: $(cat topics.txt)"
done
"$tools/drps-stat" model --topics 4 --json | all_values weight | awk '$1 <= 0 { exit 1 } END { exit NR > 16 }' || fail "weights are not positive"
[[ $("$tools/drps-stat" model --topics 2 | tr -d '0-9\t \n') = "" ]] || fail "words without names are not numbers"
"$tools/drps-stat" model --verify >/dev/null || fail "the model does not verify"
echo "ok topics"

# ---- New documents: in any format; they are coded as held-out ones were ----

"$tools/drps-predict" model test.txt -o codes.txt --metrics --json >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <train.json | tail -1)" 1e-6 || fail "prediction has another objective"
[[ $(value test_rmse <predict.json) = null ]] || fail "an objective has no RMSE"
awk -F '\t' 'NF != 4 { exit 1 } { for (i = 1; i <= 4; i++) if ($i < 0) exit 1 } END { if (NR != 90) exit 1 }' codes.txt || fail "a line is no code"
"$tools/drps-predict" model test.svm -o svm.txt --format libsvm --quiet
cmp -s codes.txt svm.txt || fail "the format of documents matters"
# Documents with the same largest entry are mostly of one topic.
paste codes.txt <(awk 'NR > 3 && $1 != d { d = $1; print d % 3 }' test.txt) | awk '
    { best = 1; for (i = 2; i <= 4; i++) if ($i > $best) best = i; n[$5, best]++; all++ }
    END { for (i = 1; i <= 4; i++) { most = 0; for (t = 0; t < 3; t++) if (n[t, i] > most) most = n[t, i]; sum += most } exit sum < .7 * all }' ||
    fail "codes do not tell topics apart"
echo '0 9223372036854775809:1' | "$tools/drps-predict" model - --format libsvm -o - --quiet | awk '$0 != "0\t0\t0\t0" { exit 1 }' ||
    fail "a training document's number is a word"
echo "ok new documents"

# ---- The same bits: stores, memory, threads, given samples in other formats ----

index train.svm --test test.svm --factors 4 --batch-size 50 -o svm
train svm -o other --epochs 30 --l1 0.5 --l2 0.1
[[ $(content other) = "$(content model)" ]] || fail "libsvm gives another model than docword"
"$tools/drps-gen" ctr --samples 20K --fields 12 --rows 30K --seed 3 -o many.svm --quiet
index many.svm --test-fraction 0.1 --factors 6 -o many
run() { # OPTIONS...: objectives, test losses and content
    train many -o run --epochs 3 --l1 0.05 "$@" --json >run.json
    echo "$(all_values train_loss <run.json) $(all_values test_loss <run.json) $(content run)"
}
want=$(run --store resident)
least=$({ train many -o run --epochs 3 --store relay --memory 1M 2>&1 || true; } | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' |
    awk '{print int(($1 + 0.1) * 1024)}')
for way in "resident --threads 2" "resident --threads 5" relay "relay --memory ${least}K" "relay --memory ${least}K --threads 2" \
    "file --memory 40M" rocksdb leveldb; do
    # shellcheck disable=SC2086 # options
    got=$(run --store $way)
    [[ $got = "$want" ]] || fail "store $way: $got instead of $want"
done
got=$(run --store relay --memory "${least}K")
[[ $(all_values windows <run.json | awk '/^[0-9]/') -gt 3 ]] || fail "all rows of many are in memory in ${least}K"
peak=$(value peak_rss_bytes <run.json)
[[ $peak -le $((least * 1024)) ]] || fail "$peak bytes of memory are more than ${least}K"
# Products of 400 topics are most of what is needed, and are counted.
index test.txt --factors 400 -o wide
fails 1 "products of topics 1[5-9]\.[0-9] MiB" train wide -o wide.model --memory 1M
enough=$(sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' err.txt | awk '{print int(($1 + 0.1) * 1024)}')
train wide -o wide.model --epochs 2 --memory "${enough}K" --json >run.json
peak=$(value peak_rss_bytes <run.json)
[[ $peak -le $((enough * 1024)) && $peak -gt 20000000 ]] || fail "400 topics: $peak bytes of memory are not within ${enough}K"
fails 1 "at least" "$tools/drps-predict" wide.model test.txt -o wide.txt --memory 20M --quiet
enough=$(sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' err.txt | awk '{print int(($1 + 0.1) * 1024)}')
"$tools/drps-predict" wide.model test.txt -o wide.txt --memory "${enough}K" --json >run.json
peak=$(value peak_rss_bytes <run.json)
[[ $peak -le $((enough * 1024)) ]] || fail "codes of 400 topics: $peak bytes of memory are not within ${enough}K"
echo "ok stores"

# ---- Going on ----

"$tools/drps-train" many -o kept --epochs 1 --l1 0.05 --keep-checkpoints --quiet
for store in resident "relay --memory ${least}K"; do
    rm -rf gone gone.checkpoint && cp -r kept.checkpoint gone.checkpoint
    # shellcheck disable=SC2086 # options
    "$tools/drps-train" many -o gone --resume --epochs 3 --store $store --quiet --json >run.json
    [[ "$(all_values train_loss <run.json) $(all_values test_loss <run.json) $(content gone)" = "$want" ]] ||
        fail "an epoch and two more on $store are not three"
done
held=$(echo kept.checkpoint/rank-0/*/held.rec)
printf x | dd of="$held" bs=1 seek=100 conv=notrunc 2>/dev/null
rm -rf gone gone.checkpoint && cp -r kept.checkpoint gone.checkpoint
"$tools/drps-train" many -o gone --resume --epochs 1 --l1 0.05 --quiet 2>err.txt || true
grep "held.rec" err.txt >/dev/null || fail "damaged sums are not told of: $(cat err.txt)"
echo "ok going on"

# ---- Several ranks ----

# A round is a step of one batch with the documents of all, taken in turn: 3 batches of 40 are one of 120.
grep -v '^$' train.svm | awk '{ line[NR - 1] = $0 } END { for (t = 0; t < NR; t += 120) for (m = 0; m < 40; m++) for (i = 0; i < 3; i++) print line[t + 40 * i + m] }' >turns.svm
index train.svm --test test.svm --factors 4 --workers 3 --batch-size 40 --order given --samples dealt -o dealt
"$tools/drps-stat" dealt --verify >/dev/null || fail "the plan of ranks does not verify"
index turns.svm --test test.svm --factors 4 --batch-size 120 --order given -o turns
no_zmq=0
if ! train dealt --local 3 -o ranks --epochs 12 --l1 0.5 --l2 0.1 --json >ranks.json 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    no_zmq=1
    train dealt --local 3 --transport inproc -o ranks --epochs 12 --l1 0.5 --l2 0.1 --json >ranks.json
fi
train turns -o turns.model --epochs 12 --l1 0.5 --l2 0.1 --json >turns.json
for key in train_loss test_loss; do
    near "$(all_values $key <ranks.json | xargs)" "$(all_values $key <turns.json | xargs)" 1e-5 ||
        fail "ranks have the $key $(all_values $key <ranks.json | xargs), one rank $(all_values $key <turns.json | xargs)"
done
all_values train_loss <ranks.json | awk 'NR > 1 && $1 > last * (1 + 1e-6) { exit 1 } { last = $1 } END { if (NR != 12) exit 1 }' ||
    fail "the objective of ranks rises: $(all_values train_loss <ranks.json | xargs)"
"$tools/drps-stat" ranks --verify >/dev/null || fail "the ranks' model does not verify"
"$tools/drps-stat" ranks --topics 4 | awk -F '\t' '{ print $2 }' | sort >got.txt
"$tools/drps-stat" turns.model --topics 4 | awk -F '\t' '{ print $2 }' | sort | cmp - got.txt || fail "ranks have other topics"
"$tools/drps-predict" ranks test.svm -o ranks.txt --metrics --json >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <ranks.json | tail -1)" 1e-6 || fail "prediction with the ranks' model has another objective"

# Documents with words of their worker alone send nothing: their rows are with it, as are the words'; sums go round.
awk '{ printf 0; for (f = 2; f <= NF; f++) { split($f, e, ":"); printf " %d:%s", 3 * e[1] + int((NR - 1) / 40) % 3, e[2] } print "" }' train.svm >apart.svm
index apart.svm --factors 4 --workers 3 --batch-size 40 --order given --samples dealt -o apart
train apart --local 3 --transport inproc -o apart.model --epochs 2 --json >apart.json
[[ $(awk '/"(pulled|ahead|pushed)"/ { n = 2 } n-- > 0 && /"rows"/ { gsub(/[^0-9]/, ""); sum += $0 } END { print sum + 0 }' apart.json) = 0 ]] ||
    fail "rows of documents went to other ranks: $(cat apart.json)"
paste <(all_values sent_bytes <apart.json) <(all_values forecast_sent_bytes <apart.json) | awk '$1 != $2 || !$1 { exit 1 }' ||
    fail "sums are not forecast: $(all_values sent_bytes <apart.json | xargs), $(all_values forecast_sent_bytes <apart.json | xargs)"

# The same bits: transports, stores, threads, and where servers and workers are apart.
ranks() { # PLAN RANKS OPTIONS...: as run() of so many
    local plan=$1 n=$2
    shift 2
    train "$plan" --local "$n" -o run --epochs 3 --l1 0.05 "$@" --json >run.json || return 1
    paste <(all_values sent_bytes <run.json) <(all_values forecast_sent_bytes <run.json) | awk '$1 != $2 || !$1 { exit 1 }' ||
        fail "$plan: $(all_values sent_bytes <run.json | xargs) bytes are sent, $(all_values forecast_sent_bytes <run.json | xargs) forecast"
    echo "$(all_values train_loss <run.json) $(all_values test_loss <run.json) $(content run)"
}
for plan in "placed 3 --workers 3" "parted 4 --workers 2 --servers 2 --separate" "more 3 --workers 2 --servers 3" "fewer 3 --workers 3 --servers 2"; do
    read -r name n options <<<"$plan"
    # shellcheck disable=SC2086 # options
    index many.svm --test-fraction 0.1 --factors 6 --batch-size 70 $options -o $name
    want=$(ranks $name "$n" --transport inproc --store resident) || fail "$name is not trained"
    ways=("inproc --no-overlap" "inproc --threads 3" "inproc --no-fresh")
    [[ $name != placed ]] || ways+=("inproc --store file" "inproc --store rocksdb" "inproc --store leveldb" "inproc --store relay --memory 136M")
    ((no_zmq)) || ways+=("zmq")
    for way in "${ways[@]}"; do
        # shellcheck disable=SC2086 # options
        got=$(ranks $name "$n" --transport $way) || fail "$name is not trained by $way"
        [[ $got = "$want" ]] || fail "$name, $way: $got instead of $want"
    done
done
echo "ok ranks"

# Ranks go on after an epoch, within one, and when one was killed.
want=$(ranks placed 3 --transport inproc)
"$tools/drps-train" placed --local 3 --transport inproc -o killed --epochs 3 --l1 0.05 --checkpoint-every 5b --quiet &
run=$!
until [[ $(newest killed.checkpoint/rank-2) -gt 4 ]]; do kill -0 $run 2>/dev/null || break; pause; done
kill -9 $run 2>/dev/null || true
wait $run 2>/dev/null || true
rm -rf killed
"$tools/drps-train" placed --local 3 --transport inproc -o killed --resume --quiet --json >run.json
[[ "$(all_values train_loss <run.json) $(all_values test_loss <run.json) $(content killed)" = "$want" ]] || fail "ranks that were killed have another model"
[[ $(value resumed_step <run.json) -gt 0 ]] || fail "no run was killed within an epoch"
echo "ok ranks going on"

# ---- What is refused ----

fails 2 "1 topic: give 2 to 1024" index train.txt --factors 1 -o refused
fails 2 "2000 topics: give 2 to 1024" index train.txt --factors 2000 -o refused
echo '1 9223372036854775808:2' >large.svm
fails 1 "sample 1 has the feature id 9223372036854775808.*below 2\^63" index large.svm -o refused
printf 'y,a\n1,2\n0,3\n' >data.csv
fails 2 "needs words by number" index data.csv --label y -o refused
absent refused
refused() { # PATTERN PLAN OPTIONS...
    local pattern=$1
    shift
    fails 2 "$pattern" "$tools/drps-train" "$@" -o refused --quiet
    absent refused
}
refused "leave the optimizer adagrad out" plan --optimizer adagrad
refused "a learning rate does not go with topics.*--lr" plan --lr 0.1
refused "the penalty l2 of a topic model's dictionary must be above 0 .default 1. .--l2." plan --l2 0
refused "eps does not go with topics" plan --eps 0.1
refused "local steps do not go with topics" plan --local-steps
refused "patience does not go with topics" plan --patience 1
refused "lanes do not go with topics" plan --one-by-one
refused "rows of another model do not go with topics" plan --from model
refused "asynchronous rounds do not go with topics" dealt --local 3 --sync asp
refused "filters of traffic do not go with topics" dealt --local 3 --pull-values 16bit
refused "have not several scores" dealt --local 3 --exchange vectors
fails 2 "leave residual slots out" index train.txt --workers 2 --residuals all -o refused
fails 2 "leave handing rows on out" index train.txt --workers 2 --hand-on 100 -o refused
fails 2 "docword has no labels: only topic models read it.*--algo" "$tools/drps-index" train.txt --algo lor -o refused
"$tools/drps-index" train.svm --algo lir -o lir --quiet
refused "alternating.* is not one of" lir --optimizer alternating
"$tools/drps-train" lir -o lir.model --quiet
fails 2 "has no topics: algorithm lir" "$tools/drps-stat" lir.model --topics 3
fails 2 "words names the words of --topics" "$tools/drps-stat" model --words words.txt
fails 2 "are for models" "$tools/drps-stat" plan --topics 3
fails 1 "no-such" "$tools/drps-stat" model --topics 3 --words no-such
echo '0 1:1e30' >huge.svm
index huge.svm --factors 2 -o huge
fails 1 "objective is no finite number: scale" train huge -o refused
absent refused
echo "ok refused"
