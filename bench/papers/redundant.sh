# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this uses, and sets
# The setting of "Efficient Distributed Machine Learning for Large-scale Models by Reducing Redundant Communication": ten workers,
# each a server, too; three sparse sets, cut into mini-batches of which each worker has a tenth; a factorization machine that is
# trained by SGD. Its sets are news20, url and criteo; in their place: "text" (imdb, words and pairs of words), "url-like" (generated)
# and "CTR" (generated clicks). Source it after lib.sh.
workers=10 factors=8

# set, mini-batches, and what Table II prints of them: reduced (as many are broadcast) and direct elements in millions, rate
table2="text  500   3.14 2.68 0.780
text     1000  3.33 2.01 0.812
text     2000  3.18 1.39 0.850
url     5000  17.7 7.97 0.845
url     10000 15.0 6.35 0.851
url     30000 11.8 4.41 0.864
ctr     1000  10.9 5.40 0.834
ctr     3000  9.35 3.43 0.865
ctr     10000 7.67 1.87 0.902"

# the same, and what Table III prints: seconds to reduce (direct ones included), broadcast and compute; rate
table3="text  500   proposed 0.517 0.210 0.0575 0.857
text     500   existing 0.536 0.312 0.055  -
text     1000  proposed 0.356 0.174 0.0569 0.795
text     1000  existing 0.397 0.269 0.0567 -
text     2000  proposed 0.316 0.156 0.056  0.823
text     2000  existing 0.342 0.232 0.057  -
url     5000  proposed 4.02  1.15  1.15   0.880
url     5000  existing 4.46  1.42  1.14   -
url     10000 proposed 2.44  0.98  1.14   0.879
url     10000 existing 2.68  1.20  1.12   -
url     30000 proposed 1.24  0.54  1.11   0.961
url     30000 existing 1.12  0.73  1.10   -
ctr     1000  proposed 5.41  1.50  0.27   0.985
ctr     1000  existing 5.37  1.64  0.26   -
ctr     3000  proposed 1.97  0.70  0.23   0.960
ctr     3000  existing 2.00  0.79  0.23   -
ctr     10000 proposed 0.84  0.40  0.22   0.928
ctr     10000 existing 0.84  0.50  0.21   -"

title() { # SET: as tables name it
    case $1 in
    text) echo "text" ;;
    url) echo "url-like" ;;
    ctr) echo "CTR" ;;
    esac
}

# file_of SET: its lines, made once
file_of() {
    [[ -e $work/$1.svm ]] || "set_$1" "$work/$1.svm"
    echo "$work/$1.svm"
}

# wanted: the lines of a table, with --quick those of each set's smallest mini-batches alone
wanted() { awk -v quick="$quick" '!($1 in least) { least[$1] = $2 } !quick || least[$1] == $2'; }

# plan NAME SET BATCH INDEX-OPTIONS...
plan() {
    "$tools/drps-index" "$(file_of "$2")" --format libsvm --algo fm --task classification --factors $factors --workers $workers \
        --batch-size $(($3 / workers)) -o "$work/$1" --force --quiet --no-forecast --json "${@:4}" >"$work/$1.json"
}

# How each way is made and trained: name | plan | training | option of drps-index that it needs. "existing" and "proposed" are the
# paper's; "placed" is what drps does by itself, and "placed, handed on" all of it.
plain="--no-overlap --no-fresh"
ways=("existing | --partition range --samples dealt | $plain |"
    "proposed | --partition range --samples dealt --hand-on all --hand-on-for sgd | $plain | --hand-on"
    "placed | --partition auto | |"
    "placed, handed on | --partition auto --hand-on all --hand-on-for sgd | | --hand-on")

# part LINE N: a part of such a line, from 1
part() { awk -F '|' -v n="$2" '{ gsub(/^ +| +$/, "", $n); print $n }' <<<"$1"; }

# measure WAY SET BATCH: trains three epochs, or two with --quick, each rank a process, and leaves in way.json seconds an epoch: reduce, broadcast and
# compute, of the average rank, and MB that all ranks send. Fails where this build does not have the way's option.
measure() {
    local needs epochs
    needs=$(part "$1" 4) epochs=$(quickly 2 3)
    [[ -z $needs ]] || known drps-index "$needs" || return 1
    # shellcheck disable=SC2046 # they are options
    plan way-plan "$2" "$3" $(part "$1" 2)
    # shellcheck disable=SC2046
    "$tools/drps-train" "$work/way-plan" -o "$work/model" --force --local $workers --optimizer sgd --lr 1e-4 --store resident \
        --epochs "$epochs" $(part "$1" 3) --quiet --json |
        jq --argjson epochs "$epochs" '
            def average(of): [.ranks[] | of] | add / length / $epochs;
            {reduce: average(.reduce_seconds), broadcast: average(.broadcast_seconds), compute: average(.compute_seconds),
             mb: ([.ranks[].sent_bytes] | add / 1e6 / $epochs)}' >"$work/way.json"
}
