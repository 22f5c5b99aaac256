#!/usr/bin/env bash
# Implicit feedback: bpr, warp and wmf with every store, in ranks, resumed, verified; scores of pairs; recommendations and how good
# they are, against a count by awk; what users do wrong.
. "$(dirname "$0")/lib.sh"

index() { "$tools/drps-index" "$@" --force --quiet; }
train() { "$tools/drps-train" "$@" --force --checkpoint-every never --quiet --json; }

# Users of three tastes choose among as many groups of items, but for some noise.
awk 'BEGIN { srand(5)
    for (u = 0; u < 300; u++) for (k = 0; k < 24; k++) {
        g = rand() < 0.85 ? u % 3 : int(rand() * 3)
        print "u" u "\ti" (g * 60 + int(rand() * rand() * 60)) "\t" 1 + int(rand() * 4)
    }}' | sort -u -k1,2 | awk '{ print rand() "\t" $0 }' | sort -g | cut -f2- >all.tsv
awk 'NR % 5 == 0' all.tsv >test.tsv
awk 'NR % 5' all.tsv >train.tsv

# ---- Learning, and the same bytes whatever the store, the transport, or a break ----

for algo in bpr warp wmf; do
    index train.tsv --test test.tsv --algo $algo --factors 8 --test-negatives 50 --negative-draws 2 -o $algo.plan
    "$tools/drps-stat" $algo.plan --verify --quiet || fail "$algo: the plan is not whole"
    for store in resident relay file rocksdb leveldb; do
        "$tools/drps-train" --help | grep -q "$store" || continue
        train $algo.plan -o $algo.$store --epochs 8 --store $store --threads 1 --memory 64M >$algo.$store.json
        [[ $(value content <$algo.$store.json) = "$(value content <$algo.resident.json)" ]] || fail "$algo: $store has other bytes"
    done
    all_values test_ndcg_at_10 <$algo.resident.json | awk -v a=$algo 'NR == 1 { first = $1 } END { exit !(NR == 8 && $1 > 0.3 && $1 < 1) }' ||
        fail "$algo: ndcg@10 $(all_values test_ndcg_at_10 <$algo.resident.json | xargs)"
    all_values test_auc <$algo.resident.json | awk 'END { exit !($1 > 0.75 && $1 < 1) }' || fail "$algo: AUC $(all_values test_auc <$algo.resident.json | xargs)"
    all_values test_recall_at_10 <$algo.resident.json | awk 'END { exit !($1 > 0.5 && $1 < 1) }' || fail "$algo: recall@10"
    index train.tsv --test test.tsv --algo $algo --factors 8 --test-negatives 50 --workers 3 -o $algo.ranks
    "$tools/drps-stat" $algo.ranks --verify --quiet || fail "$algo: the plan for 3 workers is not whole"
    train $algo.ranks -o ranks --epochs 4 --local 3 >ranks.json
    train $algo.ranks -o ranks --epochs 4 --local 3 --transport zmq >zmq.json
    [[ $(value content <ranks.json) = "$(value content <zmq.json)" ]] || fail "$algo: another transport, other bytes"
    all_values test_auc <ranks.json | awk 'END { exit !($1 > 0.7 && $1 < 1) }' || fail "$algo in ranks: AUC $(all_values test_auc <ranks.json | xargs)"
    train $algo.plan -o local --epochs 4 --local-steps >local.json
    all_values test_auc <local.json | awk 'END { exit !($1 > 0.7) }' || fail "$algo, local steps: AUC $(all_values test_auc <local.json | xargs)"
done
# The loss of a model of zeros stands beside losses: a model that steps nowhere has it, and one that has learnt has less, without a warning.
for algo in bpr warp wmf; do
    constant=$("$tools/drps-stat" $algo.plan --json | value constant_loss)
    train $algo.plan -o still --epochs 1 --lr 1e-20 >still.json 2>/dev/null
    awk -v a="$(all_values train_loss <still.json)" -v b="$constant" 'BEGIN { exit !(b > 0 && a > .97 * b && a < 1.03 * b) }' ||
        fail "$algo: all zeros have $constant, a model without steps $(all_values train_loss <still.json)"
    awk -v a="$(all_values train_loss <$algo.resident.json | tail -1)" -v b="$constant" 'BEGIN { exit !(a < b) }' || fail "$algo: nothing was learnt"
    "$tools/drps-train" $algo.plan -o still --force --epochs 8 --threads 1 2>said.txt >lines.txt
    grep -q "^const " lines.txt || fail "$algo: $(cat lines.txt)"
    grep "warning: .*learnt" said.txt >&2 && fail "$algo: a warning"
done
fails 1 "training diverged" "$tools/drps-train" bpr.plan -o no --optimizer sgd --lr 1000 --epochs 4 --quiet
absent no
# Of a plan that is dealt anew the negatives are the same.
index --from-plan bpr.plan --workers 2 -o bpr.dealt
index --from-plan bpr.dealt --workers 1 -o bpr.whole
train bpr.whole -o whole --epochs 8 --threads 1 >whole.json
[[ $(value content <whole.json) = "$(value content <bpr.resident.json)" ]] || fail "dealt and put together: other bytes"
echo "ok stores and ranks"

# ---- Training stops early, and goes on ----

train bpr.plan -o early --epochs 40 --patience 1 --metric ndcg@10 >early.json
best=$(value best_epoch <early.json)
all_values test_ndcg_at_10 <early.json | awk -v b="$best" '{ x[NR] = $1 } $1 > most { most = $1; at = NR } END { exit !(at == b && NR < 40) }' ||
    fail "--metric ndcg@10: epoch $best of $(all_values test_ndcg_at_10 <early.json | xargs)"
"$tools/drps-train" bpr.plan -o half --epochs 4 --threads 1 --quiet --keep-checkpoints --force
"$tools/drps-train" bpr.plan -o half --epochs 8 --threads 1 --quiet --json --resume --force >half.json
[[ $(value content <half.json) = "$(value content <bpr.resident.json)" ]] || fail "resumed: other bytes"
[[ $(all_values test_ndcg_at_10 <half.json | xargs) = "$(all_values test_ndcg_at_10 <bpr.resident.json | xargs)" ]] || fail "resumed: other metrics"
echo "ok early stopping and resuming"

# ---- Scores, recommendations, and how good they are ----

"$tools/drps-recommend" bpr.resident --seen train.tsv -n 10 -o best.tsv --force --quiet
awk -F'\t' '{ print $1 "\t" $3 }' best.tsv >pairs.tsv
"$tools/drps-predict" bpr.resident pairs.tsv --format ratings -o scores.txt --force --quiet
near "$(cut -f4 best.tsv | head -50 | xargs)" "$(head -50 scores.txt | xargs)" 1e-4 || fail "scores of pairs are not those of recommendations"
"$tools/drps-recommend" bpr.resident --seen train.tsv --test test.tsv -n 10 --json >quality.json
awk -F'\t' 'FILENAME == "train.tsv" { seen[$1, $2] = 1; next }
    FILENAME == "test.tsv" { if (!seen[$1, $2] && !held[$1, $2]++) n[$1]++; next }
    held[$1, $3] { h[$1]++; gain[$1] += 1 / log($2 + 1); map[$1] += h[$1] / $2 }
    END { for (u in n) { users++; r = n[u] < 10 ? n[u] : 10; best = 0
              for (i = 1; i <= r; i++) best += 1 / log(i + 1)
              p += h[u] / 10; q += h[u] / n[u]; g += gain[u] / best; m += map[u] / r }
          printf "%d %.9f %.9f %.9f %.9f\n", users, p / users, q / users, g / users, m / users }' train.tsv test.tsv best.tsv >want.txt
found=$(for key in users precision recall ndcg map; do all_values $key <quality.json | head -1; done | xargs)
near "$found" "$(cat want.txt)" 1e-6 || fail "quality: $found instead of $(cat want.txt)"
# Items of a random model are far worse; one that the model does not have is a miss.
"$tools/drps-train" bpr.plan -o random --epochs 1 --lr 1e-20 --quiet
"$tools/drps-recommend" random --seen train.tsv --test test.tsv --json >random.json
awk -v a="$(all_values ndcg <quality.json)" -v b="$(all_values ndcg <random.json)" 'BEGIN { exit !(a > 2 * b) }' || fail "a random model: $(all_values ndcg <random.json)"
(cat test.tsv && cut -f1 test.tsv | sort -u | sed 's/$/\tnew\t5/') >more.tsv
"$tools/drps-recommend" bpr.resident --seen train.tsv --test more.tsv --json >more.json
[[ $(all_values missing <more.json) = $(($(all_values missing <quality.json) + $(cut -f1 test.tsv | sort -u | wc -l))) ]] || fail "an unknown item: $(cat more.json)"
awk -v a="$(all_values recall <quality.json)" -v b="$(all_values recall <more.json)" 'BEGIN { exit !(b < a) }' || fail "an unknown item is no miss"
"$tools/drps-recommend" bpr.resident --seen train.tsv --test test.tsv --positive-from 4 --json >few.json
awk -v a="$(all_values items <few.json | tail -1)" -v b="$(awk '$3 >= 4' test.tsv | wc -l)" 'BEGIN { exit !(a == b) }' ||
    fail "--positive-from 4: $(all_values items <few.json | xargs) of $(awk '$3 >= 4' test.tsv | wc -l)"
"$tools/drps-recommend" bpr.resident --all-similar -n 3 --quiet >similar.txt && [[ -s similar.txt ]] || fail "similar items of bpr"
# Without --seen it is said; drps-stat shows what there is of implicit feedback.
"$tools/drps-recommend" bpr.resident --test test.tsv | grep -q "items that users have seen are among the best: --seen leaves them out" || fail "without --seen"
"$tools/drps-recommend" bpr.resident --test test.tsv --seen train.tsv | grep -q "have seen" && fail "with --seen"
grep -qE "^ +epoch .* AUC +recall@10 +ndcg@10 " < <("$tools/drps-stat" bpr.resident) || fail "drps-stat of a model"
"$tools/drps-stat" wmf.plan >plan.txt
grep -q "drawn    20 a training sample, even (--negatives), in 2 passes an epoch; 50 a test sample" plan.txt &&
    grep -q "choices  confidence 1 + 1 times the rating (--alpha); negatives of a sample weigh 20 together" plan.txt || fail "$(cat plan.txt)"
echo "ok quality"

# ---- Lines without ratings, and mistakes ----

cut -f1,2 train.tsv >clicks.tsv
for algo in warp wmf bpr; do index clicks.tsv --algo $algo -o clicks.plan; done
[[ $("$tools/drps-stat" clicks.plan --json | value samples) = $(wc -l <clicks.tsv) ]] || fail "clicks: other samples"
(echo "user,item" && tr '\t' , <clicks.tsv) >clicks.csv
index clicks.csv --algo bpr -o header.plan
[[ $("$tools/drps-stat" header.plan --json | value samples) = $(wc -l <clicks.tsv) ]] || fail "clicks below a header: other samples"
"$tools/drps-index" train.tsv --algo bpr --positive-from 4 -o four.plan --force >four.txt
grep -q "left out .* lines whose rating is too small" four.txt || fail "--positive-from: $(cat four.txt)"
awk '{ print $1 "\t" $2 "\t" 978300000 + NR }' train.tsv >times.tsv
"$tools/drps-index" times.tsv --algo wmf -o times.plan --force --quiet 2>times.txt
grep -q "warning: the confidence of a choice, 1 + 1 times its rating, is 9.78e+08 on average: column 3 looks like a time" times.txt || fail "times: $(cat times.txt)"
"$tools/drps-index" train.tsv --algo wmf --alpha 100 -o times.plan --force --quiet 2>times.txt
[[ ! -s times.txt ]] || fail "counts: $(cat times.txt)"
fails 2 "are for --algo bpr, warp and wmf, not for lmf" "$tools/drps-index" train.tsv --algo lmf --negatives-per 2 -o no
fails 2 "are for --algo wmf, not for bpr" "$tools/drps-index" train.tsv --algo bpr --alpha 2 -o no
fails 2 "there is no test data" "$tools/drps-index" train.tsv --algo bpr --test-negatives 20 -o no
fails 2 "the task regression: the algorithm wmf ranks items" "$tools/drps-index" train.tsv --algo wmf --task regression -o no
fails 2 "even, popular" "$tools/drps-index" train.tsv --algo bpr --negatives seldom -o no
fails 2 "needs the algorithm lmf; for bpr use the order shuffled" "$tools/drps-index" train.tsv --algo bpr --order grid -o no
fails 2 "negatives are drawn from all items.*make a plan of all data where the earlier items are to stay" "$tools/drps-index" test.tsv --base bpr.plan -o no
fails 1 "every user has chosen all 2 items" bash -c "printf 'a x 1\na y 1\n' >two.txt; $tools/drps-index two.txt --algo bpr -o no"
fails 1 "too small" "$tools/drps-index" train.tsv --algo bpr --positive-from 40 -o no
fails 2 "needs ratings" bash -c "printf '1 1:1\n' >one.svm; $tools/drps-index one.svm --format libsvm --algo warp -o no"
fails 2 "the metric ndcg@10 is of implicit feedback" bash -c "$tools/drps-index train.tsv --algo lmf --test-fraction 0.1 -o lmf.plan -q &&
    $tools/drps-train lmf.plan -o no --patience 1 --metric ndcg@10"
fails 2 "whose metrics are of all items of a user" "$tools/drps-predict" bpr.resident test.tsv --metrics -o no
fails 2 "folding in fits ratings.*make a plan of all data" "$tools/drps-recommend" bpr.resident --fold-in test.tsv
fails 2 "goes with --test" "$tools/drps-recommend" bpr.resident --positive-from 3
fails 2 "leave --fold-in" "$tools/drps-recommend" bpr.resident --test test.tsv --all-similar
absent no

# Killed while choices are sorted, or negatives drawn, it leaves nothing that is in the way of the next run.
"$tools/drps-gen" matrix --users 2K --items 500 --ratings 300K --seed 1 -o many.tsv --quiet # more choices than the sort has memory for
for file in choices.run "t*-drawn-*"; do
    for ((try = 0, hits = 0; try < 20 && hits < 1; try++)); do
        "$tools/drps-index" many.tsv --algo bpr --memory 64M -o killed --force --quiet &
        pid=$!
        until compgen -G "killed.partial/scratch/$file" >/dev/null || ! kill -0 $pid 2>/dev/null; do :; done
        kill -KILL $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        if compgen -G "killed.partial/scratch/$file" >/dev/null; then hits=$((hits + 1)); fi
    done
    ((hits)) || fail "none of $try runs was killed while it had $file"
    "$tools/drps-index" train.tsv --algo bpr -o killed --force --quiet || fail "a run that was killed with $file is in the way"
done
echo "ok mistakes"
