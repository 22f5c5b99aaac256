#!/usr/bin/env bash
# Grid order on real ratings: as good as shuffled after equal epochs, with a small part of the row traffic.
. "$(dirname "$0")/lib.sh"
data=$source/../shared/data
[[ -d $data/ml-1m ]] || skip "no ml-1m in $data"

compile() { # PLAN OPTIONS...
    local plan=$1
    shift
    "$tools/drps-index" "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --test-fraction 0.1 -o "$plan" "$@" --quiet --json >index.json
}
rmse() { # PLAN: of the best of some epochs
    "$tools/drps-train" "$1" -o model --force --epochs 8 --lr 0.1 --l2 0.05 --quiet --json | all_values test_rmse | sort -n | awk 'NR == 1'
}
# traffic STORE N: bytes that the forecast of index.json reads in that store with the Nth of its memory sizes
traffic() {
    sed -n "/\"forecast\": \[/,/\]/p" index.json | tr -d ' \n' | tr '}' '\n' | grep "\"store\":\"$1\"" | awk "NR == $2" |
        sed 's/.*"read_bytes":\([0-9]*\).*/\1/'
}

compile shuffled --batch-size 1000
want=$(rmse shuffled)
for grid in 4,4 16,16 3,60 ""; do # "": as drps-index chooses
    compile "grid-$grid" --batch-size 1000 --order grid ${grid:+--grid $grid}
    users=$("$tools/drps-stat" "grid-$grid" --json | value grid_users) items=$("$tools/drps-stat" "grid-$grid" --json | value grid_items)
    [[ -z $grid || $users,$items = "$grid" ]] || fail "plan.json has a grid of $users,$items instead of $grid"
    "$tools/drps-stat" "grid-$grid" --verify >/dev/null || fail "a plan in grid order does not verify"
    "$tools/drps-stat" "grid-$grid" >stat.txt
    grep -Eq "grid \($users x $items(, [0-9]+ lanes)?\) order" stat.txt || fail "drps-stat does not show the grid: $(head -1 stat.txt)"
    got=$(rmse "grid-$grid")
    awk "BEGIN {exit !($got <= $want * 1.005)}" || fail "grid of $users,$items: RMSE $got, shuffled $want"
    echo "ok grid of $users,$items: RMSE $got, shuffled $want"
done

# Lanes of the shuffled order are the default; they may cost no more than noise.
compile mixed
compile plain --lanes 1
[[ $("$tools/drps-stat" mixed --json | value lanes) = 4 && $("$tools/drps-stat" plain --json | value lanes) = 0 ]] || fail "lanes of the shuffled order, by default and without"
got=$(rmse mixed) want=$(rmse plain)
awk "BEGIN {exit !($got <= $want * 1.003)}" || fail "lanes: RMSE $got, without $want"
echo "ok lanes of the shuffled order: RMSE $got, without $want"

compile small --batch-size 100
pool=$(traffic pib 2) relay=$(traffic relay 4)
compile small-grid --batch-size 100 --order grid
echo "a pool of half of the model reads $pool bytes shuffled, $(traffic pib 2) in a grid; windows of 1/8 read $relay, $(traffic relay 4)"
[[ $(($(traffic pib 2) * 20)) -lt $pool ]] || fail "the pool reads more than 1/20"
[[ $(($(traffic relay 4) * 8)) -lt $relay ]] || fail "windows read more than 1/8"
echo "ok traffic"

# content OPTIONS...: of the model that an epoch makes of the plan with lanes
compile lanes --batch-size 1000 --order grid --grid 4,4 --lanes 4
content() { "$tools/drps-train" lanes -o model --force --lr 0.1 --l2 0.05 --quiet --json "$@" | value content; }
[[ $("$tools/drps-stat" lanes --json | value lanes) = 4 ]] || fail "the plan has no 4 lanes"
"$tools/drps-stat" lanes --verify >stat.txt || fail "a plan with lanes does not verify"
want=$(content --one-by-one)
for options in "--threads 1" "--threads 2" "--threads 3 --store relay --memory 64M" "--threads 2 --store file --memory 64M"; do
    # shellcheck disable=SC2086 # words
    got=$(content $options)
    [[ $got = "$want" ]] || fail "$options: model $got, one batch after another $want"
done
echo "ok lanes: batches at a time make the model of one after another"
