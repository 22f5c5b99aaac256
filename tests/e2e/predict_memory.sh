#!/usr/bin/env bash
# drps-predict stays within --memory at any rank, or names the least, and that is enough.
. "$(dirname "$0")/lib.sh"
mib=$((1024 * 1024))
predict() { "$tools/drps-predict" "$@" --quiet --json; }
# least COMMAND...: the SIZE of the refusal, as --memory takes it
least() {
    local text
    if text=$("$@" 2>&1 >/dev/null); then fail "'$*' was not refused"; fi
    sed -n 's/.*at least \(--memory \)\{0,1\}\([0-9.]*\)\( MiB\|M\) is needed.*/\2M/p' <<<"$text" | grep . || fail "'$*' named no least: $text"
}
bytes() { awk -v "m=${1%M}" 'BEGIN {printf "%d", m * 1048576}'; }
tenth_less() { awk -v "m=${1%M}" 'BEGIN {printf "%.1fM", m - 0.1}'; }
# within SIZE ARGUMENTS...: scores as with all memory, and no more memory than that
within() {
    local size=$1 peak
    shift
    predict "$@" --memory "$size" -o some.txt --force >some.json || fail "$* with --memory $size"
    cmp all.txt some.txt || fail "other scores with --memory $size: $*"
    peak=$(value peak_rss_bytes <some.json)
    [[ $peak -le $(bytes "$size") ]] || fail "$* took $((peak / mib)) MiB with --memory $size"
}

for rank in 16 512 4000; do
    case $rank in 16) rows=200000 ;; 512) rows=20000 ;; *) rows=5000 ;; esac
    "$tools/drps-gen" ctr --samples 1500 --fields 20 --rows $rows --zipf 0.3 --seed 5 -o data.svm --force --quiet
    "$tools/drps-index" data.svm --algo fm --factors $rank --batch-size 50 --no-forecast -o plan-$rank --quiet
    for store in rocksdb leveldb; do
        "$tools/drps-train" plan-$rank -o model-$rank-$store --epochs 1 --optimizer sgd --model-store $store --quiet || continue
        model=model-$rank-$store
        predict $model data.svm -o all.txt --force >all.json
        size=$(least predict $model data.svm --memory 10M -o some.txt --force)
        fails 1 "at least $size|at least ${size%M} MiB" "$tools/drps-predict" $model data.svm --memory "$(tenth_less "$size")" -o some.txt --force
        if [[ $store = rocksdb ]]; then # the pages of LevelDB's mapped files count, which the kernel takes back
            for memory in "$size" 28M 32M 40M 64M; do within $memory $model data.svm; done
            within "$(least predict $model data.svm --metrics --memory 10M -o some.txt --force)" $model data.svm --metrics
        fi
        echo "$model ok: from $size on"
    done
done

[[ -d model-4000-rocksdb ]] || skip "this build has no RocksDB"
# A sample with more features than a batch has room for.
awk 'BEGIN {printf "1"; for (i = 1; i <= 900; i++) printf " %d:1", i; print ""}' >wide.svm
size=$(least predict model-4000-rocksdb data.svm --memory 10M -o some.txt --force)
predict model-4000-rocksdb wide.svm -o all.txt --force >all.json
wide=$(least predict model-4000-rocksdb wide.svm --memory "$size" -o some.txt --force)
within "$wide" model-4000-rocksdb wide.svm
[[ $(least predict model-4000-rocksdb wide.svm --memory "$(tenth_less "$wide")" -o some.txt --force) = "$wide" ]] || fail "$wide is not the least"
echo "900 features ok: from $wide on"

for store in rocksdb leveldb; do
    [[ -d model-4000-$store ]] || continue
    "$tools/drps-predict" model-4000-$store data.svm -o all.txt --force --quiet
    in_cgroup $(($(bytes "$size") * 11 / 10)) "$tools/drps-predict" model-4000-$store data.svm --memory "$size" -o some.txt --force --quiet ||
        fail "drps-predict --memory $size was ended by its limit"
    cmp all.txt some.txt || fail "other scores in a cgroup"
done
echo "ok"
