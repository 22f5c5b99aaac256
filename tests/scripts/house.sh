#!/usr/bin/env bash
# scripts/house.sh: this tree keeps its rules, a small tree that breaks one is told so, each rule in turn, and is drawn.
# Needs the build whose calls are looked at: house.sh BUILD.
set -euo pipefail
build=$1
house=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/house.sh
"$house" check "$build"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# grow: a tree and a build without a fault.
grow() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree"/{base,storage/kv,storage/relay,engine} "$work/tree/build/CMakeFiles/drps.dir/base"
    cd "$work/tree"
    touch base/drps_err.h storage/drps_store.h storage/kv/drps_kv.h storage/relay/drps_relay.h storage/relay/relay.h
    echo '#include "base/drps_err.h"' >storage/kv/kv.c
    echo '#include "storage/relay/relay.h"' >storage/relay/relay.c
    echo '#include "storage/kv/drps_kv.h"' >engine/drps_engine.h
    compile first 'int second(void); int first(void) { return second(); }'
    compile second 'int second(void) { return 1; }'
}

# compile NAME TEXT: a source of the library, base/NAME.c, in the build.
compile() {
    touch "base/$1.c"
    echo "$2" | cc -x c -c - -o "build/CMakeFiles/drps.dir/base/$1.c.o"
}

# expect NAME TEXT: the check of the tree says TEXT alone, and fails unless that is nothing.
expect() {
    local said status=0
    said=$("$house" -C "$work/tree" check "$work/tree/build" 2>&1) || status=$?
    if [[ $said != "$2" || $status != "$([[ -z $2 ]] && echo 0 || echo 1)" ]]; then
        printf '%s: expected\n%s\nfound (status %s)\n%s\n' "$1" "$2" "$status" "$said"
        failed=1
    fi
}

grow
expect "nothing broken" ""

grow
touch storage/kv/{a..z}.c
expect "a large folder" "folders of more than 25 files:
    storage/kv: 28"

grow
echo '#include "storage/relay/relay.h"' >>storage/kv/kv.c
expect "another folder's private header" "private headers that another folder includes:
    storage/kv/kv.c includes storage/relay/relay.h"

grow
echo '#include "storage/drps_store.h"' >>base/err.c
expect "a layer above" "includes of a layer that is not below:
    base/err.c includes storage/drps_store.h"

grow
mkdir sched
echo '#include "storage/drps_store.h"' >sched/sched.c
expect "a module beside it" "includes of a layer that is not below:
    sched/sched.c includes storage/drps_store.h"

grow
echo '#include "storage/relay/drps_relay.h"' >>storage/kv/kv.c
echo '#include "storage/kv/drps_kv.h"' >>storage/relay/relay.c
expect "folders in a circle" "folders that include each other in a circle:
    storage/relay, storage/kv"

grow
compile second 'int first(void); int second(void) { return first(); }'
expect "calls in a circle" "files that call each other in a circle:
    base/first.c, base/second.c"

rm base/second.c
expect "an object whose source is gone" ""

if command -v dot >/dev/null; then
    grow
    "$house" -C "$work/tree" draw tree.svg
    if ! grep -q '<title>engine&#45;&gt;storage/kv</title>' tree.svg; then
        echo "the picture lacks the arrow from engine to storage/kv"
        failed=1
    fi
    "$house" -C "$work/tree" draw relay.svg storage/relay
fi

exit "$failed"
