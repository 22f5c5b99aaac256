# What drps-index says of the memory that drps-train takes is what drps-train takes: quoted sizes work, one MiB less does not.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 80K --fields 20 --rows 2M --zipf 0.6 --seed 4 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --batch-size 200 --test-fraction 0.1 --memory 64M -o plan >screen.txt
memory=$(sed -n 's/.*drps-train --memory \([0-9]*\)M keeps all rows in memory; \([0-9]*\)M is the least$/\1 \2/p' screen.txt)
read -r all least <<<"$memory" || fail "no memory is told: $(cat screen.txt)"
((least < 64 && all > 64)) || fail "$all MiB for all rows and $least MiB at least do not lie around 64"

store() {
    rm -rf model
    "$tools/drps-train" plan -o model --memory "$1M" --quiet --json >train.json || return
    value store <train.json
}
[[ $(store "$all") = resident ]] || fail "--memory ${all}M does not keep all rows"
[[ $(store $((all - 1))) = relay ]] || fail "--memory $((all - 1))M keeps all rows, too"
[[ $(store "$least") = relay ]] || fail "--memory ${least}M does not do"
fails 1 "too small" "$tools/drps-train" plan -o never --memory $((least - 1))M

# What it says of the traffic with --memory as given: within a quarter.
said=$(sed -n 's/.*with 64M, as given here, an epoch reads about \([0-9.]*\) MiB of rows from disk, and writes as much$/\1/p' screen.txt)
"$tools/drps-train" plan -o model --force --memory 64M --epochs 2 --quiet --json >train.json
read=$(all_values read_bytes <train.json | sed -n 2p)
awk -v said="$said" -v read="$read" 'BEGIN { mib = read / 1048576; print "said " said " MiB, read " mib; exit !(said > 0.75 * mib && said < 1.25 * mib) }' ||
    fail "an epoch reads $read bytes, drps-index says $said MiB"

# Where all rows fit, blocks, windows and the forecast are for those who ask, and the forecast is made then.
"$tools/drps-index" data.svm --algo lor --batch-size 200 -o fits >screen.txt
(($(wc -l <screen.txt) == 5)) || fail "not five lines: $(cat screen.txt)"
grep -q '"forecast"' fits/plan.json && fail "a forecast was made that is not shown"
"$tools/drps-stat" fits | grep "^  relay " >later.txt || fail "drps-stat makes no forecast: $("$tools/drps-stat" fits)"
"$tools/drps-index" data.svm --algo lor --batch-size 200 -o fits --force --verbose 2>/dev/null >screen.txt
grep -q "^  windows " screen.txt && grep -q "^forecast: what an epoch would move" screen.txt || fail "--verbose says no more: $(cat screen.txt)"
grep "^  relay " screen.txt | diff - later.txt || fail "the forecast that drps-stat makes is another one"

# All tools use the same words for the same thing.
"$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 200 --test-fraction 0.1 --memory 64M -o words -v >words.txt 2>&1
"$tools/drps-train" words -o words-model --memory 48M --store file -v >>words.txt 2>&1
"$tools/drps-stat" words -v >>words.txt
"$tools/drps-stat" words-model -v >>words.txt
"$tools/drps-predict" words-model data.svm --metrics -o words-scores >>words.txt 2>&1
grep -nwiE 'pib|evaluation|evaluating|held-out' words.txt && fail "words of old: $(cat words.txt)"
[[ $(grep -cE '^  samples +[0-9,]+ training, .*[0-9,]+ test' words.txt) = 2 ]] || fail "samples are told otherwise: $(cat words.txt)"
[[ $(grep -c "table    wv .*: a feature's weight and factors each" words.txt) = 2 ]] || fail "tables are told otherwise: $(cat words.txt)"

# What little memory leaves undone is told with what to do.
"$tools/drps-index" data.svm --algo lor --batch-size 200 --blocks auto --memory 64M -o little --quiet 2>little.txt
grep -qE 'warning: block builder auto: rows .* takes [0-9.]+ MiB .*: raise the memory limit \(--memory, --blocks\)$' little.txt || fail "says: $(cat little.txt)"

# --json has the names of plan.json.
"$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 200 -o named --quiet --json >index.json
for key in factors dim rows nnz working_set_rows memory_bytes order id; do
    [[ $(value $key <index.json) = "$(all_values $key <named/plan.json | sed -n 1p)" ]] ||
        fail "--json says $key $(value $key <index.json), plan.json $(all_values $key <named/plan.json)"
done

# On a terminal it says how far it is.
if command -v script >/dev/null; then
    script -qec "'$tools/drps-index' data.svm --algo lor --batch-size 200 -o shown" /dev/null >terminal.txt
    grep -q "reading text: " terminal.txt || fail "no progress on a terminal: $(cat terminal.txt)"
else
    echo "not tried: progress on a terminal, which needs script(1)"
fi
echo "ok"
