#!/usr/bin/env bash
# What is installed is what a program needs: each header stands alone, the example of examples/ is built with pkg-config,
# linked and run, and a shared library exports what the headers declare and nothing else. Needs CC, and CFLAGS if the build has any.
. "$(dirname "$0")/lib.sh"
prefix=$work/installed
CC=${CC:-cc}
read -ra flags <<<"${CFLAGS-}"

cmake --install "$tools/.." --prefix "$prefix" >"$work/install.log" || fail "cmake --install: $(tail -n 5 "$work/install.log")"
pc=$(find "$prefix" -name drps.pc)
libraries=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ---- headers ----

headers=()
while read -r header; do headers+=("${header#"$prefix/include/drps/"}"); done < <(find "$prefix/include/drps" -name '*.h' | LC_ALL=C sort)
((${#headers[@]} > 10)) || fail "only ${#headers[@]} headers are installed"
for header in "${headers[@]}"; do
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/alone.c"
    "$CC" -std=c17 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include/drps" "$work/alone.c" || fail "$header does not stand alone"
done

# ---- a program ----

xz -dkc "$source/examples/abalone.libsvm.xz" >"$work/data"
"$tools/drps-index" --quiet --algo lir --test-fraction 0.1 "$work/data" -o "$work/plan"
"$tools/drps-train" --quiet "$work/plan" -o "$work/model" --epochs 2
"$tools/drps-predict" --quiet "$work/model" "$work/data" -o "$work/scores"

# A loss of its own is that of mlr.
printf '%s\n' 'a 1:1 2:.5' 'b 2:1 3:1' 'c 3:1 1:.25' 'a 1:1' 'b 2:2' 'c 3:1' >"$work/three"
"$tools/drps-index" --quiet --algo mlr --workers 3 --batch-size 1 "$work/three" -o "$work/ranks"
"$tools/drps-train" --quiet --json "$work/ranks" -o "$work/mlr" --local 3 --epochs 3 >"$work/mlr.json"

# program NAME LINK-OPTION...: the example linked so gives the scores of drps-predict.
program() {
    local name=$1
    shift
    read -ra compile < <(pkg-config --cflags drps)
    "$CC" -std=c17 -Wall -Wextra -Werror "${flags[@]}" "${compile[@]}" "$source/examples/predict.c" "$@" -o "$work/$name" ||
        fail "$name: examples/predict.c is not built"
    "$work/$name" "$work/model" "$work/data" >"$work/$name.scores" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    cmp "$work/$name.scores" "$work/scores" || fail "$name: other scores than drps-predict's"
    "$CC" -std=c17 -Wall -Wextra -Werror "${flags[@]}" "${compile[@]}" "$source/examples/callbacks.c" "$@" -lm -o "$work/$name" ||
        fail "$name: examples/callbacks.c is not built"
    rm -rf "$work/called"
    "$work/$name" "$work/ranks" 3 "$work/called" >"$work/$name.losses" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    near "$(awk '{print $2}' "$work/$name.losses" | paste -sd ' ')" "$(all_values train_loss <"$work/mlr.json" | paste -sd ' ')" 1e-5 ||
        fail "$name: other losses than those of mlr: $(cat "$work/$name.losses")"
}

read -ra link < <(pkg-config --libs drps)
program as_told "${link[@]}"
read -ra link < <(pkg-config --static --libs drps)
program static "${link[@]/#-ldrps/-l:libdrps.a}"
if [[ ! -e $libraries/libdrps.so ]]; then
    echo "this build has no shared library (BUILD_SHARED_LIBS): what it would export is not looked at"
    exit 0
fi

# ---- the shared library ----

grep -q "$libraries/libdrps.so" <<<"$(ldd "$work/as_told")" || fail "pkg-config does not link the shared library"
nm -D --defined-only "$libraries/libdrps.so" | awk '{ print $NF }' | LC_ALL=C sort >"$work/exported"
if grep -v '^drps_' "$work/exported"; then fail "exported, but not named drps_*"; fi
if grep -q 'Free Software' <<<"$("$CC" --version)"; then # gcc says what it has seen declared, its own reading of the headers
    printf '#include "%s"\n' "${headers[@]}" >"$work/all.c"
    "$CC" -std=c17 -fsyntax-only -aux-info "$work/declared.c" -I"$prefix/include/drps" "$work/all.c"
    {
        sed -nE "\\|^/\\* $prefix/.* \\*/ extern |s/.*[ *](drps_[a-z0-9_]+) \\(.*/\\1/p" "$work/declared.c"
        (cd "$prefix/include/drps" && sed -nE 's/^extern .*[ *](drps_[a-z0-9_]+)(\[.*)?;.*/\1/p' "${headers[@]}") # objects
    } | LC_ALL=C sort -u >"$work/declared"
    diff "$work/declared" "$work/exported" || fail "declared (<) and exported (>) are not the same"
fi
