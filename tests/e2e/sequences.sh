#!/usr/bin/env bash
# Nets of sequences, from text to prediction: an lstm learns what the token before alone does not tell; every store, memory, compression and
# way of reading gives one model; prediction's loss is that of training's evaluation; workers have whole sequences; what does not go is refused.
. "$(dirname "$0")/lib.sh"

# A word is followed by itself doubled, or begins a pair anew: what comes next depends on the last two tokens.
text() { # LINES SEED
    awk -v lines="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < lines; i++) { s = ""
        n = 3 + int(rand() * 4); for (k = 0; k < n; k++) { w = "w" int(rand() * 9); s = s " " w " " w } print substr(s, 2) } }'
}
text 900 1 >train.txt
text 150 2 >test.txt
sed -i '5s/w[0-9]/new/' test.txt
printf 'x = bag 16\nh = lstm 24 x\nscore = full classes h\n' >lm.net
index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --json --lr 0.3; }
content() { train "$@" -o model --epochs 2 --checkpoint-every never | value content; }
last() { all_values "$1" | tail -1; }

# In the least memory, batches are of fewer samples than the text has.
same_in_little_memory() { # MODEL TEXT OPTIONS...
    local least
    least=$({ "$tools/drps-predict" "$@" -o never --memory 1M 2>&1 || true; } | sed -n 's/.*at least \([0-9]*\).*/\1/p')
    "$tools/drps-predict" "$@" -o much.txt --force --probabilities --memory 2G --quiet
    "$tools/drps-predict" "$@" -o little.txt --force --probabilities --memory "$((least + 1))M" --quiet
    paste much.txt little.txt | awk -F'\t' 'NR > 1 { for (c = 1; c <= NF / 2; c++) { d = $c - $(c + NF / 2); if (d * d > 1e-8) exit 1 } }
        END { if (NR < 2) exit 1 }' || fail "$1: the memory of prediction changes what is predicted"
}

# ---- Plans ----

"$tools/drps-index" train.txt --test test.txt --algo net --net lm.net --sequence 20 --memory 64M -o plan >index.txt 2>/dev/null
tokens=$(($(wc -w <train.txt) + $(wc -l <train.txt)))
samples=$("$tools/drps-stat" plan --json | value samples)
[[ $samples = "$tokens" ]] || fail "$samples samples of $tokens tokens"
grep -q '^  sequence text runs on over line ends, at most 20 samples$' index.txt || fail "drps-index does not tell the sequences: $(cat index.txt)"
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
"$tools/drps-stat" plan | grep '^  sequence text runs on over line ends, at most 20 samples$' >/dev/null || fail "drps-stat does not tell the sequences of a plan"
[[ $("$tools/drps-stat" plan --json | value batch_size) = 400 ]] || fail "batches are not of 20 sequences"
gzip -c train.txt >train.txt.gz
index train.txt.gz --test test.txt --algo net --net lm.net --sequence 20 --memory 300M -o other
for file in data.rec rows.rec names.rec; do cmp plan/$file other/$file || fail "memory, or compression, changes $file"; done
index - --format tokens --test test.txt --algo net --net lm.net --sequence 20 --memory 64M -o other <train.txt
for file in data.rec rows.rec names.rec; do cmp plan/$file other/$file || fail "a pipe changes $file"; done
echo "ok plans"

# ---- Training and prediction ----

want=$(content plan --store resident)
least=$({ "$tools/drps-train" plan -o refused --store relay --memory 1M 2>&1 || true; } |
    sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 0.1) * 1024)}')
got=$(content plan --store relay --memory "${least}K")
[[ -n $want && $got = "$want" ]] || fail "relay: $got instead of $want"
usual() { "$tools/drps-train" plan -o model --epochs 2 --checkpoint-every never --force --quiet --json "$@" | value content; }
[[ $(usual) = "$(usual --lr 0.08 --eps 0.01 --init-scale 0.35)" ]] || fail "the usual rate, eps and init scale are not those of nets of sequences"
train plan -o again --epochs 2 --keep-checkpoints --checkpoint-every 1e >again.json
[[ $(train plan -o again --epochs 4 --resume | value content) = "$(train plan -o model --epochs 4 | value content)" ]] || fail "a resumed run gives another model"
train plan -o model --epochs 6 >train.json
"$tools/drps-stat" model | grep '^  sequence text runs on over line ends, at most 20 samples$' >/dev/null || fail "drps-stat does not tell the sequences of a model"
# Every second token is sure, so that a net that remembers has a loss far below that of one that sees one token, about ln 9.
awk -v loss="$(last test_loss <train.json)" 'BEGIN { exit !(loss < 1.7) }' || fail "the net does not remember: test losses $(all_values test_loss <train.json)"
"$tools/drps-predict" model test.txt -o chances.txt --probabilities --metrics --quiet --json >predict.json
for key in loss accuracy; do
    near "$(value test_$key <predict.json)" "$(last test_$key <train.json)" 1e-6 || fail "another $key than that of training's evaluation"
done
near "$(value test_perplexity <predict.json)" "$(value test_loss <predict.json | awk '{print exp($1)}')" 1e-5 || fail "the perplexity is not e to the loss"
[[ $(value test_unseen <predict.json) = 1 ]] || fail "$(value test_unseen <predict.json) unseen tokens"
[[ $(all_values test_perplexity <train.json | wc -l) = 6 ]] || fail "drps-train --json has no perplexities"
near "$(last test_perplexity <train.json)" "$(last test_loss <train.json | awk '{print exp($1)}')" 1e-5 || fail "the perplexity of an epoch is not e to its loss"
text 2500 5 >long.txt
same_in_little_memory model long.txt
same_in_little_memory model long.txt --sequence 700
"$tools/drps-predict" model test.txt -o names.txt --metrics --force >predict.txt
grep -Eq '^loss [0-9.]+, perplexity [0-9.]+, accuracy [0-9.]+$' predict.txt || fail "no perplexity: $(cat predict.txt)"
[[ $(wc -l <names.txt) = $(($(wc -w <test.txt) + $(wc -l <test.txt))) ]] || fail "not a line for each sample"
"$tools/drps-train" plan -o one --epochs 1 | grep -E 'test loss  perplexity  accuracy' >/dev/null || fail "drps-train shows no perplexity"
echo "ok training"

# ---- Sequences of another length ----

loss_of() { "$tools/drps-predict" model test.txt -o scored.txt --metrics --quiet --force --json "$@" | value test_loss; }
[[ $(loss_of --sequence 20) = "$(loss_of)" ]] || fail "the length of training is another one where it is given"
# Where a sequence begins the net does not know what was before.
awk -v a="$(loss_of --sequence 5)" -v b="$(loss_of)" -v c="$(loss_of --sequence 500)" 'BEGIN { exit !(a > b && b > c) }' ||
    fail "longer sequences predict no better: $(loss_of --sequence 5), $(loss_of), $(loss_of --sequence 500)"
loss_of --sequence lines >/dev/null
[[ $(wc -l <scored.txt) = $(($(wc -w <test.txt) - $(wc -l <test.txt))) ]] || fail "lines have other samples"
echo "ok other lengths"

# ---- Workers, new text ----

index train.txt --test test.txt --algo net --net lm.net --sequence 20 --batch-size 200 --workers 2 -o two
got=$(train two -o two.model --local 2 --epochs 6 | last test_loss)
near "$got" "$(last test_loss <train.json)" 0.05 || fail "two workers learn otherwise: $got"
index --from-plan plan --workers 2 -o three
[[ $("$tools/drps-stat" three --json | grep -A2 '"sequences"' | grep -c '"most": 20') = 1 ]] || fail "a plan from another one has lost its sequences"
text 300 3 >more.txt
index more.txt --test test.txt --base plan -o after
train after -o after.model --from model --epochs 1 >after.json
awk -v a="$(last test_loss <after.json)" -v b="$(value test_constant_loss <after.json)" 'BEGIN { exit !(a < 1.9) }' || fail "what was learnt is lost: $(last test_loss <after.json)"
echo "ok workers"

# ---- Sessions ----

index train.txt --test test.txt --algo net --net lm.net --sequence lines --batch-size 100 -o lines
[[ $("$tools/drps-stat" lines --json | value samples) = $(($(wc -w <train.txt) - $(wc -l <train.txt))) ]] || fail "lines have other samples"
"$tools/drps-stat" lines --verify >/dev/null || fail "the plan of lines does not verify"
train lines -o lines.model --epochs 2 >lines.json
"$tools/drps-predict" lines.model test.txt -o lines.txt --metrics --quiet --json >predict.json
[[ $("$tools/drps-predict" lines.model test.txt --sequence lines -o lines.txt --force --metrics --quiet --json | value test_loss) = "$(value test_loss <predict.json)" ]] ||
    fail "the lines of training are others where they are given"
near "$(value test_loss <predict.json)" "$(last test_loss <lines.json)" 1e-6 || fail "another loss of lines than that of training's evaluation"
"$tools/drps-stat" lines.model | grep '^  sequence each line is one, at most 1024 samples$' >/dev/null || fail "a line of new text cannot be as long as any"
# Of a wide net two megabytes, which a batch is given at least, are less than a line of 900 samples takes.
printf 'x = bag 16\nh = lstm 300 x\nscore = full classes h\n' >wide.net
index train.txt --algo net --net wide.net --sequence lines -o wide
train wide -o wide.model --epochs 1 >wide.json
for _ in 1 2 3; do text 150 7 | head -c 2701 | tr '\n' ' '; echo; done >wide.txt
same_in_little_memory wide.model wide.txt
# The same of sequences that are longer than those of training.
index train.txt --algo net --net wide.net --sequence 20 -o wide
train wide -o wide.model --epochs 1 >wide.json
same_in_little_memory wide.model wide.txt --sequence 900
same_in_little_memory wide.model wide.txt --sequence lines
echo "ok lines"

# ---- Mistakes ----

refused() { # STATUS PATTERN INDEX-OPTIONS...
    local status=$1 pattern=$2
    shift 2
    fails "$status" "$pattern" "$tools/drps-index" "$@" -o never
    absent never
}
refused 2 'this does not go with another format than tokens: give text' train.txt --algo net --net lm.net --format libsvm
refused 2 'the format tokens is for nets that read sequences' train.txt --algo mlp --format tokens
refused 2 'the format tokens is for nets that read sequences' train.txt --algo mlr --format tokens
refused 2 'only nets that read sequences.*--sequence' train.txt --algo mlr --sequence 5
refused 2 "'words' is neither .lines. nor a number from 1 to 1024" train.txt --algo net --net lm.net --sequence words
printf 'a\nb\n' >single.txt
refused 1 'no line of the training text has two tokens' single.txt --algo net --net lm.net --sequence lines
printf '\n\n' >blank.txt
refused 1 'the only token that follows another is <eos>' blank.txt --algo net --net lm.net
refused 2 'use the order shuffled or given' train.txt --algo net --net lm.net --order micro
refused 2 'batches of 10 samples, and a sequence has up to 64' train.txt --algo net --net lm.net --batch-size 10
refused 2 "'1025' is out of range: from 1 to 1024" train.txt --algo net --net lm.net --sequence 1025
printf 'good line\nbad \xff line\n' >bad.txt
refused 1 'bad.txt:2:5: token is no UTF-8 text' bad.txt --algo net --net lm.net
index bad.txt train.txt --algo net --net lm.net --on-error skip -o skipped 2>/dev/null
printf '1 1:1\n' >one.svm
fails 2 "'1025' is out of range: from 1 to 1024" "$tools/drps-predict" model test.txt -o never --sequence 1025
index one.svm one.svm --algo lir -o numbers
train numbers -o numbers.model --epochs 1 >numbers.json
fails 2 'numbers.model reads no sequences: leave the length of sequences out \(--sequence\)' "$tools/drps-predict" numbers.model one.svm --sequence 5 -o never
fails 2 'reads sequences of tokens: give text, as format tokens' "$tools/drps-predict" model one.svm --format libsvm -o never
echo "ok mistakes"
