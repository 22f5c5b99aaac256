# What the end-to-end tests share. Arguments: the folder of the tools, the source folder.
# A failed `expect` ends the test with 1; a missing requirement ends it with 77 (skipped), saying why.
set -euo pipefail
tools=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/drps-e2e.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
skip() {
    echo "SKIPPED: $*"
    exit 77
}
# value KEY: a top-level value of the JSON on stdin, printed by the tools one key a line
value() { sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}$/\1/p" | tr -d '"' | awk 'NR == 1'; }
# all_values KEY: every value of a key at any depth
all_values() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}$/\1/p" | tr -d '"'; }

# newest FOLDER: the number of a rank's newest checkpoint there; 0: there is none. Only the two newest stay.
newest() {
    local path n most=0
    for path in "$1"/*; do
        n=${path##*/}
        [[ $n = *[!0-9]* ]] || ((n <= most)) || most=$n
    done
    echo "$most"
}

# pause: before a test looks again whether something has come. A shell that looks all the time takes a processor from what it waits for.
exec {nothing}<> <(:)
pause() { read -rt 0.01 -u "$nothing" || true; }

# fails STATUS PATTERN COMMAND...: the command must exit with STATUS and say PATTERN on stderr
fails() {
    local want=$1 pattern=$2 status=0
    shift 2
    "$@" >out.txt 2>err.txt || status=$?
    [[ $status = "$want" ]] || fail "'$*' exited with $status instead of $want: $(cat err.txt)"
    grep -qE -- "$pattern" err.txt || fail "'$*' did not say '$pattern' but: $(cat err.txt)"
}

# near A B SHARE: every number of the list A is that of B, to within a share
near() { paste <(tr ' ' '\n' <<<"$1") <(tr ' ' '\n' <<<"$2") | awk "{d = \$1 / \$2 - 1; if (d * d > $3 * $3) exit 1}"; }

# absent PATH: neither it nor a partial one may exist
absent() {
    [[ ! -e $1 ]] || fail "$1 was left behind"
    [[ ! -e $1.partial ]] || fail "$1.partial was left behind"
}

# same_plan A B: all files are the same, but for the command lines that they were asked for with.
same_plan() {
    local plan
    rm -rf compared && mkdir compared
    for plan in "$1" "$2"; do
        cp -r "$plan" "compared/$plan"
        find "compared/$plan" -name plan.json -exec sed -i '/^ "command": /d; /^ "checksum": /d' {} +
    done
    diff -r "compared/$1" "compared/$2"
}

# ports N: "host:port" of N free ports on loopback. All of 127.0.0.0/8 is loopback: an address for each test, as another may
# run beside it. Below those that the kernel gives to connections, as one of these may be taken between now and then.
ports() {
    local host=127.$((1 + ($$ >> 14) % 250)).$((($$ >> 7) & 127)).$((1 + ($$ & 127))) port=$((10000 + RANDOM % 20000)) n=0
    while [[ $n -lt $1 ]]; do
        if ! (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
            echo "$host:$port"
            n=$((n + 1))
        fi
        port=$((port + 1))
    done
}

# five_classes: train.svm and test.svm, of five names of classes, a feature each that tells them apart, and noise
five_classes() {
    awk 'BEGIN {srand(7); split("ash beech elm oak yew", name, " ")
        for (i = 0; i < 2400; i++) {
            c = int(rand() * 5) + 1; printf "%s %d:1", name[c], rand() < 0.9 ? c : int(rand() * 5) + 1
            for (f = 10; f < 3000; f += 1 + int(rand() * 200)) printf " %d:%.2f", f, rand()
            printf "\n"}}' >all.svm
    head -2100 all.svm >train.svm
    tail -300 all.svm >test.svm
}

# Run "$@" in a memory cgroup of $1 bytes; skips the test where that is not possible.
in_cgroup() {
    local limit=$1 status=0 group=/sys/fs/cgroup/memory/drps-e2e.$$
    shift
    [[ $(stat -f -c %T .) != tmpfs ]] || skip "files in $work are in memory, and count"
    mkdir "$group" 2>/dev/null && echo "$limit" >"$group/memory.limit_in_bytes" 2>/dev/null ||
        skip "no memory cgroup (v1) can be made here: needs root and the memory controller"
    bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@" || status=$?
    rmdir "$group" || true
    return $status
}
