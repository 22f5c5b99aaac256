#!/usr/bin/env bash
# What is installed is what a program needs: one header that stands alone, the examples of examples/ are built with pkg-config
# and with CMake, linked and run, and the shared library exports what the header declares and nothing else. It prints nothing,
# ends no process and handles no signal. Needs CC, and CFLAGS if the build has any.
. "$(dirname "$0")/lib.sh"
prefix=$work/installed
CC=${CC:-cc}
read -ra flags <<<"${CFLAGS-}"

cmake --install "$tools/.." --prefix "$prefix" >"$work/install.log" || fail "cmake --install: $(tail -n 5 "$work/install.log")"
pc=$(find "$prefix" -name drps.pc)
libraries=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ---- the header ----

header=$prefix/include/drps.h
[[ $(find "$prefix/include" -name '*.h') = "$header" ]] || fail "other headers are installed: $(find "$prefix/include" -name '*.h')"
if grep -n '#include "' "$header"; then fail "drps.h includes files of the tree"; fi
printf '#include <drps.h>\n#include <drps.h>\n' >"$work/alone.c"
"$CC" -std=c17 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" || fail "drps.h does not stand alone"
"$CC" -x c++ -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" || fail "drps.h is not for C++"

# ---- programs ----

xz -dkc "$source/examples/abalone.libsvm.xz" >"$work/data"
"$tools/drps-index" --quiet --algo lir --test-fraction 0.1 "$work/data" -o "$work/plan"
"$tools/drps-train" --quiet "$work/plan" -o "$work/model" --epochs 2
"$tools/drps-predict" --quiet "$work/model" "$work/data" -o "$work/scores"

# A loss of its own is that of mlr.
printf '%s\n' 'a 1:1 2:.5' 'b 2:1 3:1' 'c 3:1 1:.25' 'a 1:1' 'b 2:2' 'c 3:1' >"$work/three"
"$tools/drps-index" --quiet --algo mlr --workers 3 --batch-size 1 "$work/three" -o "$work/ranks"
"$tools/drps-train" --quiet --json "$work/ranks" -o "$work/mlr" --local 3 --epochs 3 >"$work/mlr.json"

for u in 1 2 3 4 5 6; do for i in 1 2 3 4 5 6 7; do (((u + i) % 3)) && echo "u$u i$i $(((u * i) % 5 + 1))"; done; done >"$work/ratings"
"$tools/drps-index" --quiet --algo lmf --factors 2 "$work/ratings" -o "$work/rated"
"$tools/drps-train" --quiet "$work/rated" -o "$work/lmf" --epochs 3
"$tools/drps-recommend" --quiet "$work/lmf" --user u1 --user u2 -n 5 | cut -f 1,3 >"$work/best"

# run NAME: the examples that were built as NAME-EXAMPLE do what the tools do.
run() {
    local name=$1
    "$work/$name-predict" "$work/model" "$work/data" >"$work/$name.scores" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    cmp "$work/$name.scores" "$work/scores" || fail "$name: other scores than drps-predict's"
    rm -rf "$work/called" "$work/csr" "$work/csr.model"
    "$work/$name-callbacks" "$work/ranks" "$work/called" >"$work/$name.losses" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    near "$(awk '{print $2}' "$work/$name.losses" | paste -sd ' ')" "$(all_values train_loss <"$work/mlr.json" | paste -sd ' ')" 1e-5 ||
        fail "$name: other losses than those of mlr: $(cat "$work/$name.losses")"
    "$work/$name-matrix" "$work/csr" "$work/csr.model" >"$work/$name.csr" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    [[ $(grep -c test_loss "$work/$name.csr") = 5 && $(grep -c '"contribution"' "$work/$name.csr") = 1 ]] || fail "$name: $(cat "$work/$name.csr")"
    "$work/$name-recommend" "$work/lmf" u1 u2 >"$work/$name.best" 2>"$work/$name.log" || fail "$name: $(cat "$work/$name.log")"
    cut -f 1,2 "$work/$name.best" | diff - "$work/best" || fail "$name: other items than drps-recommend's"
}

# program NAME LINK-OPTION...: the examples linked so.
program() {
    local name=$1 example
    shift
    read -ra compile < <(pkg-config --cflags drps)
    for example in predict callbacks matrix recommend; do
        "$CC" -std=c17 -Wall -Wextra -Werror "${flags[@]}" "${compile[@]}" "$source/examples/$example.c" "$@" -lm -o "$work/$name-$example" ||
            fail "$name: examples/$example.c is not built"
    done
    run "$name"
}

read -ra link < <(pkg-config --libs drps)
program as_told "${link[@]}"
read -ra link < <(pkg-config --static --libs drps)
program static "${link[@]/#-ldrps/-l:libdrps.a}"
if [[ ! -e $libraries/libdrps.so ]]; then
    echo "this build has no shared library (BUILD_SHARED_LIBS): what it would export is not looked at"
    exit 0
fi

# ---- CMake ----

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(drps 0.1 REQUIRED)
foreach(example predict callbacks matrix recommend)
    add_executable(cmake-\${example} $source/examples/\${example}.c)
    target_link_libraries(cmake-\${example} PRIVATE drps::drps m)
endforeach()
TEXT
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="${CFLAGS-}" \
    -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$work" >"$work/cmake.log" 2>&1 || fail "find_package(drps): $(tail -n 20 "$work/cmake.log")"
cmake --build "$work/project/build" >"$work/cmake.log" 2>&1 || fail "drps::drps: $(tail -n 20 "$work/cmake.log")"
run cmake

# ---- the shared library ----

grep -q "$libraries/libdrps.so" <<<"$(ldd "$work/as_told-predict")" || fail "pkg-config does not link the shared library"
nm -D --defined-only "$libraries/libdrps.so" | awk '{ print $NF }' | LC_ALL=C sort >"$work/exported"
if grep -v '^drps_' "$work/exported"; then fail "exported, but not named drps_*"; fi
if grep -q 'Free Software' <<<"$("$CC" --version)"; then # gcc says what it has seen declared, its own reading of the header
    "$CC" -std=c17 -fsyntax-only -aux-info "$work/declared.c" -I"$prefix/include" "$work/alone.c"
    sed -nE "\\|^/\\* $prefix/.* \\*/ extern |s/.*[ *](drps_[a-z0-9_]+) \\(.*/\\1/p" "$work/declared.c" | LC_ALL=C sort -u >"$work/declared"
    diff "$work/declared" "$work/exported" || fail "declared (<) and exported (>) are not the same"
fi

# What would print, end the process, or take its signals; _exit is of forked children, which only tools have. Sanitizers and coverage bring such calls of their own.
if [[ -z ${CFLAGS-} ]]; then
    nm -D --undefined-only "$libraries/libdrps.so" | awk '{ print $NF }' | sed 's/@.*//' >"$work/called_by"
    if grep -xE 'exit|_Exit|quick_exit|signal|sigaction|sigprocmask|printf|puts|putchar|perror|__printf_chk|vprintf' "$work/called_by"; then
        fail "the library calls what a library must not"
    fi
fi
# With standard output and error closed, and where they are looked at, nothing comes.
"$work/as_told-matrix" "$work/quiet" "$work/quiet.model" >"$work/out" 2>"$work/err" || fail "matrix: $(cat "$work/err")"
[[ ! -s $work/err ]] || fail "the library prints: $(cat "$work/err")"
[[ $(grep -vcE 'test_loss|^probability|"contribution"' "$work/out") = 0 ]] || fail "the library prints: $(cat "$work/out")"
rm -rf "$work/quiet" "$work/quiet.model"
"$work/as_told-matrix" "$work/quiet" "$work/quiet.model" >&- 2>&- <&- || fail "not without standard streams"
"$tools/drps-stat" --verify "$work/quiet.model" >"$work/verified" || fail "a model that was made without standard streams: $(cat "$work/verified")"
