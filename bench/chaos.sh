#!/usr/bin/env bash
# Breaks the network and the processes of a small cluster while it trains, and checks how each run ends. A run has a seed, which
# is printed and from which everything random follows: ranks, algorithm, --sync, store, keys, and one to three disturbances at
# random instants. All ranks are on this machine, each in a network namespace, joined by a switch whose links can be made bad.
#   bench/chaos.sh [--seeds N] [--first SEED] [--ranks R] [--jobs J] [--only KIND] [--slack S] [-v] [SEED...]
# N runs (default 100) from --first on (1), or the seeds that are named, J side by side (2), all of R ranks (default: 2 to 4 by the seed), with disturbances of
# one kind alone: cut delay jitter reorder loss duplicate rate kill restart stop late silent slow noise clock disk none.
# --slack is how many seconds more a busy machine may take (6). -v prints what each run does.
#
# A run ends well in one of three ways; the others are printed, and what they leave is kept:
# - model: all ranks end with 0. In bulk synchronous rounds the model is that of an undisturbed run, to the last bit; else its
#   loss of test samples is at most 5 % larger.
# - named: every rank that was not killed ends with another status, in time, and says that a rank is dead or cut off, was
#   restarted or did not come, or that a disk is full.
# - parted: the model is right, but a rank that was cut off in the last moment did not hear of it, and ended as above.
# A run whose disturbances should only cost time must end with the model.
# No process may stay, and in the folders nothing but what docs/operations.md says. Where drps-train has --resume, a run that
# was named is resumed without disturbances, and must then end with the model.
# In time: a rank that is cut off or dead is noticed within 2.3 times --silence and 1.7 s (4 s, as --silence is 1 here), one
# that does not come, or owes something, within --timeout (10 s). Whoever leaves waits 5 s at most until that is heard.
# Needs root, iproute2, util-linux and a C compiler. Everything it makes goes away at the end, but for runs that fail.
# Environment: DRPS_TOOLS (default build/bin), TMPDIR, DRPS_BENCH_KEEP=1 (keep what all runs said).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=${DRPS_TOOLS:-$here/../build/bin}
silent_ms=4000 owed_ms=10000 linger_ms=5000 refusal_ms=1000 # as docs/operations.md says of --silence 1 and --timeout 10
slack_ms=6000
hang_ms=60000                               # a run that has not ended so long after the last disturbance never will
all_kinds=(cut delay jitter reorder loss duplicate rate kill restart stop late silent slow noise clock disk)

seeds=100 first=1 ranks='' jobs=2 only='' verbose='' list=()
while (($#)); do
    case $1 in
    --slack) slack_ms=$(($2 * 1000)) ;;
    --seeds) seeds=$2 ;;
    --first) first=$2 ;;
    --ranks) ranks=$2 ;;
    --jobs) jobs=$2 ;;
    --only) only=$2 ;;
    -v) verbose=1 && shift && continue ;;
    [0-9]*) list+=("$1") && shift && continue ;;
    *) sed -n 's/^#   bench/usage: bench/p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
((${#list[@]})) || mapfile -t list < <(seq "$first" $((first + seeds - 1)))
missing() { echo "chaos.sh: $*" >&2 && exit 77; }
((EUID == 0)) || missing "network namespaces need root"
for tool in ip nsenter unshare mkfifo flock "${CC:-cc}"; do
    command -v "$tool" >/dev/null || missing "install iproute2, util-linux and a C compiler ($tool is missing)"
done
[[ -x $tools/drps-train ]] || missing "build drps first ($tools/drps-train is missing)"
unshare --net true 2>/dev/null || missing "no network namespaces can be made here"
time_space=1 # so that ranks' monotonic clocks differ
unshare --time --fork true 2>/dev/null || { time_space='' && echo "chaos.sh: no time namespaces can be made here: monotonic clocks are the same"; }
tools=$(cd "$tools" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/drps-chaos.XXXXXX")
space=dc$$
resume=()
! "$tools/drps-train" --help | grep -- --resume >/dev/null || resume=(--resume)

# ---- What is trained ----

declare -A content loss # of PLAN-EPOCHS: what an undisturbed run ends with
declare -A least        # of a plan: KiB that the relay store takes under BSP
async_kib=512           # that the other modes take beside that, and more
stores=()
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$2" | tr -d '"' | tail -1; }
make_plan() { # NAME RANKS
    local epochs name=$1 n=$2 plan=$work/$1-$2 data=$work/ctr.svm lines=1500 options=(--algo lor --batch-size 20) kib=1024 need
    [[ $name = lor ]] || lines=3000
    [[ $name != fm ]] || options=(--algo fm --factors 16 --batch-size 40)
    [[ $name != lmf ]] || { data=$work/ratings.tsv && options=(--algo lmf --factors 8 --batch-size 40); }
    head -n $((n * lines)) "$data" >"$plan.txt"
    "$tools/drps-index" "$plan.txt" "${options[@]}" --workers "$n" --test-fraction 0.1 -o "$plan" --quiet
    for epochs in 1 2; do
        "$tools/drps-train" "$plan" -o "$plan.model" --force --local "$n" --transport inproc --epochs $epochs --json --quiet >"$plan.json"
        content[$name-$n-$epochs]=$(value content "$plan.json")
        loss[$name-$n-$epochs]=$(value test_loss "$plan.json")
    done
    while kib=$((kib + 64)) && ! "$tools/drps-train" "$plan" -o "$plan.model" --force --local "$n" --transport inproc \
        --epochs 1 --store relay --memory "$((kib * n))K" --quiet 2>"$plan.txt"; do
        need=$(sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' "$plan.txt" | sort -n | tail -1)
        [[ -n $need ]] || missing "$(cat "$plan.txt")"
        kib=$(awk "BEGIN {print int($need * 1024)}")
    done
    least[$name-$n]=$kib
}
make_plans() {
    local n store
    "$tools/drps-gen" ctr --samples 12K --fields 12 --rows 5K --seed 1 -o "$work/ctr.svm" --quiet
    "$tools/drps-gen" matrix --users 600 --items 300 --ratings 12K --seed 1 -o "$work/ratings.tsv" --quiet
    for n in ${ranks:-2 3 4}; do
        make_plan lor "$n"
        make_plan fm "$n"
        make_plan lmf "$n"
    done
    "$tools/drps-train" "$work/lor-$n" -o "$work/try" --local "$n" --epochs 1 --quiet 2>"$work/try.txt" || missing "$(<"$work/try.txt")"
    for store in resident relay file rocksdb leveldb; do
        "$tools/drps-train" "$work/lor-$n" -o "$work/try" --force --local "$n" --transport inproc --epochs 1 --store $store \
            --quiet 2>/dev/null && stores+=("$store")
    done
    rm -rf "$work/try" "$work"/*.txt "$work"/*.model
}

# ---- Hosts ----

# A set of hosts for each of the runs that go on side by side: namespaces $net-R, and $net-switch with the ports.
make_hosts() {
    local r name
    ip netns add "$net-switch"
    for r in "${hosts[@]}"; do
        name=$net-$r
        ip netns add "$name"
        ip link add eth0 netns "$name" type veth peer name "port-$r" netns "$net-switch"
        ip -n "$name" link set eth0 address "02:00:00:00:00:0$((r + 1))"
        ip -n "$name" addr add "10.99.0.$((r + 1))/24" dev eth0
        ip -n "$name" link set lo up
        ip -n "$name" link set eth0 up
        ip -n "$net-switch" link set "port-$r" up
        "$tools/drps-train" --make-keys "$place/keys-$r" >"$place/key-$r"
        echo "10.99.0.$((r + 1)):7000 $(<"$place/key-$r")" >>"$place/peers"
    done
    mkfifo "$place/wire" "$place/ends"
    exec {ends}<>"$place/ends"
}
in_host() { local name=$net-$1 && shift && exec nsenter --net="/run/netns/$name" "$@"; }
start_switch() { # SEED
    nsenter --net="/run/netns/$net-switch" "$work/switch" "$1" "${hosts[@]/#/port-}" <"$place/wire" &
    switch=$!
    exec {wire}>"$place/wire"
}
stop_switch() {
    exec {wire}>&-
    wait "$switch"
}
remove_hosts() {
    local r pid
    for r in "${hosts[@]}" switch; do
        for pid in $(ip netns pids "$net-$r" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
        ip netns del "$net-$r" 2>/dev/null || true
        ! mountpoint -q "$place/host-$r" || umount -l "$place/host-$r"
    done
}

# ---- Random numbers and time ----

draw() { # N: `drawn` is a random number below N
    state=$((state * 6364136223846793005 + 1442695040888963407))
    drawn=$(((state >> 33 & 0x7fffffff) % $1))
}
one_of() { draw $#; shift $drawn; drawn=$1; }
now_ms() { local us=${EPOCHREALTIME/[.,]/}; now=$((us / 1000 - begin)); }
seconds() { printf -v text '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# ---- Disturbances ----

# Each is a function that draws when and where, and says what happens then: `at MS COMMAND...`. `said` tells it to people.
at() { events+=("$*"); }
say() { said+="${said:+; }$*"; }
when() { draw "$span"; t=$drawn; }
where() { draw "$count"; r=$drawn; }
link_for() { # TEXT DELAY JITTER ORDERED LOSS DUPLICATE RATE: from t on, for a while
    local text=$1
    shift
    one_of 50 200 500 1000 1500 2500
    at "$t" change "$r" "$@"
    at "$((t + drawn))" change "$r" 0 0 0 0 0 0
    say "at $t ms, link of rank $r for $drawn ms: $text"
}
# `harm` sums up milliseconds for which a rank may have been cut off: up to --silence, 1 s, they only cost time.
disturb_none() { :; }
disturb_cut() {
    one_of 10 30 100 300 600 1000 1500 2500 4000 6000 ever
    at "$t" link "$r" down
    if [[ $drawn = ever ]]; then harm=100000; else at "$((t + drawn))" link "$r" up && harm=$((harm + drawn)); fi
    say "at $t ms, link of rank $r cut for $drawn ms"
}
disturb_delay() { one_of 1 5 20 50 100 && local ms=$drawn && link_for "delay of $ms ms" $((ms * 1000)) 0 0 0 0 0; }
disturb_jitter() { one_of 2 10 50 100 && local ms=$drawn && link_for "jitter of $ms ms" 0 $((ms * 1000)) 1 0 0 0; }
disturb_reorder() { one_of 1 5 20 && local ms=$drawn && link_for "reordering within $ms ms" 0 $((ms * 1000)) 0 0 0 0; }
disturb_loss() { one_of 1 5 20 50 100 && local share=$drawn && link_for "$share % lost" 0 0 0 $((share * 10000)) 0 0 && harm=$((harm + drawn * share / 100)); }
disturb_duplicate() { one_of 1 10 50 100 && local share=$drawn && link_for "$share % twice" 0 0 0 0 $((share * 10000)) 0; }
disturb_rate() { one_of 64 512 4000 && local kbit=$drawn && link_for "$kbit kbit/s" 0 0 0 0 0 "$kbit" && harm=$((harm + drawn * 32 / kbit)); }
disturb_kill() { at "$t" end "$r" && harm=100000 && say "at $t ms, rank $r killed"; }
disturb_restart() {
    one_of 0 20 100 300 1000 3000
    at "$t" end "$r"
    at "$((t + drawn))" again "$r"
    harm=100000
    say "at $t ms, rank $r killed, and started again $drawn ms later"
}
disturb_stop() {
    one_of 10 100 500 1000 2000 3000 5000 7000
    at "$t" signal "$r" STOP
    at "$((t + drawn))" signal "$r" CONT
    harm=$((harm + drawn / 3))
    say "at $t ms, rank $r stopped for $drawn ms"
}
disturb_late() {
    one_of 50 100 300 600 1000 2000 3000 5000 7000 11000
    late[r]=$drawn
    harm=$((harm + drawn / 8))
    say "rank $r starts $drawn ms late"
}
strangers_for() { # KIND MOST TEXT
    local other kind=$1 text=$3
    draw "$2"
    local many=$((drawn + 1))
    draw "$count" && other=$drawn
    one_of 100 500 1500 3000
    draw 1000000 && local salt=$drawn
    at "$t" visit "$other" "$r" "$kind" "$many" "$salt"
    say "at $t ms, $many connections to rank $r $text"
}
disturb_silent() { strangers_for silent 90 "that say nothing"; }
disturb_slow() { strangers_for slow 20 "that say a byte now and then"; }
disturb_noise() { strangers_for noise 8 "that send random bytes"; }
disturb_clock() {
    one_of -1000000000 -86400 -3600 -5 -1 1 5 3600 86400 1000000000
    clock[r]=$((t > 100 ? t : 0)):$drawn
    say "at $t ms, wall clock of rank $r jumps by $drawn s; its other clock differs by $((3600 * (r + 1))) s"
}
disturb_disk() {
    one_of 1 4 16 80 200
    disk[r]=$drawn
    harm=100000
    say "rank $r has a disk of $drawn MiB, which fills up at $t ms"
    at "$t" fill "$r"
    one_of 100 1000 ever
    [[ $drawn = ever ]] || { at "$((t + drawn))" unfill "$r" && say "for $drawn ms"; }
}

# ---- What happens ----

start() { # RANK OPTIONS...: it tells $ends how it ended
    local r=$1 around=() extra=()
    shift
    if [[ -n ${clock[r]:-} ]]; then
        [[ -z $time_space ]] || around=(unshare --time --monotonic $((3600 * (r + 1))) --fork)
        extra=(env "DRPS_CHAOS_CLOCK=${clock[r]}" "LD_PRELOAD=$work/clock.so" "ASAN_OPTIONS=verify_asan_link_order=0")
    fi
    [[ $secret != keys ]] || set -- --keys "$place/keys-$r" "$@"
    started[r]=$now
    rm -f "$place/pid-$r"
    (
        rc=0
        # shellcheck disable=SC2016 # it is that shell that expands it
        in_host "$r" "${around[@]}" bash -c 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"' "$place/pid-$r" "${extra[@]}" \
            "$tools/drps-train" "${command[@]}" -o "$place/host-$r/model" --rank "$r" "$@" >"$place/out-$r" 2>"$place/err-$r" &
        wait $! || rc=$?
        echo "$r $rc ${EPOCHREALTIME/[.,]/}" >"$place/ends"
    ) {wire}>&- {ends}>&- 2>/dev/null &
}
is_running() { [[ -n ${started[$1]:-} && -z ${status[$1]:-} ]]; }
pid_of() { # RANK; 1: it has ended
    until [[ -s $place/pid-$1 ]]; do
        take_end 10 || true
        is_running "$1" || return 1
    done
    pid=$(<"$place/pid-$1")
}
change() { echo "$*" >&"$wire"; }
link() { ip -n "$net-switch" link set "port-$1" "$2"; }
signal() { # RANK NAME
    is_running "$1" && pid_of "$1" || return 0
    kill "-$2" "$pid" 2>/dev/null || true
}
end() { # RANK
    is_running "$1" || return 0
    signal "$1" KILL
    killed[$1]=1
}
again() { # RANK: if it was killed before it ended
    if [[ -z ${killed[$1]:-} ]]; then
        expected=$((expected - 1))
        return 0
    fi
    while [[ -z ${status[$1]:-} ]]; do take_end 5000 || break; done
    killed[$1]=
    status[$1]=
    restarted[$1]=1
    command+=(--force)
    start "$1"
    unset 'command[-1]'
}
visit() { # FROM TO KIND MANY SALT
    in_host "$1" bash "$here/chaos/stranger.sh" "10.99.0.$(($2 + 1))" 7000 "$3" "$4" "$5" {wire}>&- {ends}>&- >/dev/null 2>&1 &
    visitors+=($!)
}
fill() { head -c 1G /dev/zero >"$place/host-$1/filler" 2>/dev/null || true; }
unfill() { rm -f "$place/host-$1/filler"; }

take_end() { # MS: one rank's end; 1: none came in that time
    local r how at line
    seconds "$1"
    IFS= read -t "$text" -r -u "$ends" line || { heard+=$line && return 1; } # it may have read half of a line
    read -r r how at <<<"$heard$line"
    heard=''
    status[r]=$how
    ended[r]=$((at / 1000 - begin))
    expected=$((expected - 1))
}
await() { # MS: until that time of the run; 1: all have ended before
    while ((expected > 0)); do
        now_ms
        ((now < $1)) || return 0
        take_end $(($1 - now)) || true
    done
    return 1
}
play() { # the events in the order of their times; `settled` is the time of the last
    local event all
    settled=0
    mapfile -t all < <(printf '%s\n' "${events[@]}" | sort -n -s -k 1,1)
    for event in "${all[@]}"; do
        await "${event%% *}" || break
        ${event#* }
        now_ms
        settled=$now
    done
    await $((settled + hang_ms)) && return 1
    return 0
}

# ---- A run ----

choose() { # SEED
    local i kind t r
    state=$(($1 * -7046029254386353131))
    draw 2
    count=${ranks:-$((drawn ? 3 : 2))}
    draw 4
    [[ -n $ranks || $drawn != 0 ]] || count=4
    one_of lor fm lmf && plan=$drawn-$count
    one_of bsp bsp asp ssp wsp && sync=$drawn
    one_of "${stores[@]}" && store=$drawn
    one_of homogeneous:0.01 homogeneous:0.01 pauses:0.01 straggler:0.008 none && emulate=$drawn
    epochs=2 span=1700
    [[ $emulate != none ]] || epochs=1 span=500 # most of this run is its start and its end
    one_of keys insecure && secret=$drawn
    events=() said='' kinds='' harm=0 late=() clock=() disk=() killed=() status=() ended=() started=() restarted=() visitors=() heard=''
    one_of 1 1 2 3
    for ((i = drawn; i > 0; i--)); do
        if [[ -n $only ]]; then kind=$only; else one_of "${all_kinds[@]}" && kind=$drawn; fi
        when
        where
        kinds+="${kinds:+ }$kind"
        "disturb_$kind"
    done
    expected=$((count + $(printf '%s\n' "${events[@]}" | grep -c ' again ' || true)))
    for ((i = 0; i < count; i++)); do at "${late[i]:-0}" start "$i"; done
}
prepare() {
    local r
    head -n "$count" "$place/peers" >"$place/peers.txt"
    [[ $secret = keys ]] || sed -i 's/ .*//' "$place/peers.txt"
    for ((r = 0; r < count; r++)); do
        mkdir "$place/host-$r"
        [[ -z ${disk[r]:-} ]] || mount -t tmpfs -o "size=${disk[r]}M" drps-chaos "$place/host-$r"
    done
    command=("$work/$plan" --peers "$place/peers.txt" --epochs "$epochs" --sync "$sync" --store "$store"
        --silence 1 --timeout 10 --json --quiet)
    [[ $emulate = none ]] || command+=(--emulate "$emulate")
    [[ $store != relay ]] || command+=(--memory "$((least[$plan] + async_kib))K")
    [[ $secret = keys ]] || command+=(--insecure)
}
tidy() {
    local r pid
    for pid in "${visitors[@]}"; do kill "$pid" 2>/dev/null || true; done
    stop_switch
    wait
    for ((r = 0; r < count; r++)); do
        link $r up
        ! mountpoint -q "$place/host-$r" || umount "$place/host-$r"
    done
    rm -rf "$place"/host-* "$place"/out-* "$place"/err-*
}
keep() { # SEED: what a run has said and left
    local to=$work/seed-$1 r
    mkdir -p "$to"
    cp "$place"/out-* "$place"/err-* "$to" 2>/dev/null || true
    for ((r = 0; r < count; r++)); do
        (cd "$place/host-$r" && find . | sort) >"$to/files-$r"
        echo "rank $r: started at ${started[r]:-never}, ended at ${ended[r]:-never} ms with ${status[r]:-nothing}${killed[r]:+, killed}${restarted[r]:+, restarted}"
    done >"$to/ends"
    printf '%s\n' "seed $1: $said" "${command[*]}" "verdict: $verdict" "settled at $settled ms" >"$to/run"
}

# ---- Verdicts ----

wrong() { verdict=${verdict:-$*}; }
right_model() { # the model of rank 0 is as good as that of an undisturbed run
    local model=$place/host-0/model got
    "$tools/drps-stat" "$model" --verify >/dev/null 2>"$place/err-stat" || { wrong "no model: $(<"$place/err-stat")" && return; }
    if [[ $sync = bsp ]]; then
        got=$(value content "$model/model.json")
        [[ $got = "${content[$plan-$epochs]}" ]] || wrong "another model: $got, not ${content[$plan-$epochs]}"
    else
        got=$(value test_loss "$model/model.json")
        awk "BEGIN {exit !($got < 1.05 * ${loss[$plan-$epochs]})}" || wrong "a loss of $got, not ${loss[$plan-$epochs]}"
    fi
}
causes='dead or cut off|was restarted: start all anew|did not start within|[Nn]o space left'
in_time() { # RANK: it ended with an error that says why, and when it should
    local r=$1 err=$place/err-$1 from=$settled bound=$((silent_ms + linger_ms + slack_ms)) took
    [[ ${status[r]} = 1 || ${status[r]} = 2 || ${status[r]} = 75 ]] || wrong "rank $r ended with ${status[r]}"
    grep -qE "$causes" "$err" || wrong "rank $r names no cause"
    ! grep -q 'did not start within' "$err" || { from=${started[r]} && bound=$((owed_ms + refusal_ms + slack_ms)); }
    took=$((ended[r] - from))
    ((took < bound)) || wrong "rank $r ended $took ms after the last disturbance"
    ((took <= slowest)) || slowest=$took
}
leftovers() { # what is in the folder of rank R and should not be
    local r=$1 allowed='^(filler'
    [[ -z ${killed[r]:-}${restarted[r]:-} ]] || allowed+='|model(.rank-[0-9]+)?.partial|model.trained'
    ((r != 0)) || [[ ${status[0]} != 0 && -z ${killed[0]:-}${restarted[0]:-} ]] || allowed+='|model'
    ! grep -q 'is kept in .*/model.trained' "$place/err-$r" || allowed+='|model.trained'
    ((${#resume[@]} == 0)) || allowed+='|model.checkpoint'
    # shellcheck disable=SC2010 # names of drps
    ls -A "$place/host-$r" | grep -vE "$allowed)\$" || true
}
judge() {
    local r left ok=0 bad=0
    verdict='' outcome=named slowest=0
    for ((r = 0; r < count; r++)); do
        left=$(leftovers $r)
        [[ -z $left ]] || wrong "rank $r left behind: ${left//$'\n'/ }"
        ! ip netns pids "$net-$r" | grep -qvxF "$(printf '%s\n' "${visitors[@]}")" || wrong "rank $r: a process is left"
        [[ -z ${killed[r]:-} ]] || continue
        if [[ ${status[r]} = 0 ]]; then
            ok=$((ok + 1))
        else
            in_time $r
            [[ -n ${restarted[r]:-} ]] || bad=$((bad + 1))
        fi
    done
    if ((ok > 0)) || [[ -e $place/host-0/model ]]; then # those who end with 0 know that there is a model
        outcome=model
        right_model
        ((ok > 0)) || outcome=parted # rank 0 was killed just then
        [[ ${status[0]} = 0 || -n ${killed[0]:-}${restarted[0]:-} ]] || wrong "some ranks ended with 0, but not rank 0"
        ((bad == 0)) || outcome=parted
    fi
    [[ $outcome = model ]] || ((harm > 1000)) || wrong "it should only have taken longer"
}
run_seed() { # SEED
    local r
    choose "$1"
    prepare
    begin=0 && now_ms && begin=$now && now=0
    start_switch "$1"
    if play; then
        judge
    else
        verdict="still running $hang_ms ms after the last disturbance" outcome=hung slowest=0
        for ((r = 0; r < count; r++)); do end $r; done
    fi
    if [[ $outcome = named && -z $verdict && ${#resume[@]} -gt 0 ]]; then go_on; fi
    [[ -z $verdict && -z ${DRPS_BENCH_KEEP:-} ]] || keep "$1"
    now_ms
    local line="seed $1, $plan, $sync, $store, $secret: ${said:-undisturbed}: ${verdict:-$outcome} ($((now / 1000)) s)"
    {
        flock 9
        printf '%s\t%s\t%s\t%s\n' "${verdict:+failed}${verdict:-$outcome}" "$slowest" "$kinds" "$line" >>"$work/outcomes"
        if [[ -n $verdict ]]; then echo "FAILED $line; see $work/seed-$1"; elif [[ -n $verbose ]]; then echo "$line"; fi
    } 9>>"$work/outcomes.lock"
    tidy
}

# go_on: the same run with --resume and without disturbances ends with the model, if all ranks have a checkpoint.
go_on() {
    local r
    for ((r = 0; r < count; r++)); do [[ -d $place/host-$r/model.checkpoint && -z ${disk[r]:-} ]] || return 0; done
    for ((r = 0; r < count; r++)); do
        link $r up
        change $r 0 0 0 0 0 0
    done
    command+=("${resume[@]}")
    clock=() killed=() status=() restarted=() expected=$count events=()
    now_ms
    for ((r = 0; r < count; r++)); do at "$now" start $r; done
    play || wrong "resumed: still running after $hang_ms ms"
    for ((r = 0; r < count; r++)); do [[ ${status[r]} = 0 ]] || wrong "resumed: rank $r ended with ${status[r]}"; done
    [[ -n $verdict ]] || right_model
    outcome='named, resumed'
}

# ---- All runs ----

run_share() { # JOB: every seed whose turn it is
    local i
    place=$work/$1 net=$space-$1
    mapfile -t hosts < <(seq 0 $((${ranks:-4} - 1)))
    mkdir "$place"
    trap remove_hosts EXIT
    trap 'exit 130' INT TERM
    make_hosts
    for ((i = $1; i < ${#list[@]}; i += jobs)); do run_seed "${list[i]}"; done
}
clean_up() {
    local pid
    for pid in "${shares[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    wait
    if compgen -G "$work/seed-*" >/dev/null; then
        find "$work" -mindepth 1 -maxdepth 1 ! -name 'seed-*' -exec rm -rf {} +
        echo "kept: $work"
    else
        rm -rf "$work"
    fi
}
shares=()
trap clean_up EXIT
trap 'exit 130' INT TERM

"${CC:-cc}" -std=gnu17 -O2 -Wall -Wextra -Werror -o "$work/switch" "$here/chaos/switch.c"
"${CC:-cc}" -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$work/clock.so" "$here/chaos/clock.c"
make_plans
touch "$work/outcomes"
for ((job = 0; job < jobs; job++)); do
    (trap - EXIT && run_share "$job") &
    shares+=($!)
done
broken=0
for pid in "${shares[@]}"; do wait "$pid" || broken=1; done
shares=()

# How runs ended, by disturbance: a run with two kinds counts for both.
awk -F '\t' '
    function row(kind, n) { printf "%-10s %6d %6d %6d %6d %6d %6d %8.1f\n", kind, n, model[kind], named[kind], resumed[kind], other[kind], failed[kind], slowest[kind] / 1000 }
    function add(kind) {
        if ($1 ~ /^failed/) failed[kind]++
        else if ($1 == "model") model[kind]++
        else if ($1 == "named") named[kind]++
        else if ($1 == "named, resumed") resumed[kind]++
        else other[kind]++
        if ($2 > slowest[kind]) slowest[kind] = $2
        runs[kind]++
    }
    { split("", seen); n = split($3, kinds, " "); add("all")
      for (i = 1; i <= n; i++) if (!(kinds[i] in seen)) { seen[kinds[i]] = 1; add(kinds[i]) } }
    END {
        printf "%-10s %6s %6s %6s %6s %6s %6s %8s\n", "", "runs", "model", "named", "resumed", "parted", "failed", "slowest"
        n = split(order, kinds, " ")
        for (i = 1; i <= n; i++) if (kinds[i] in runs) row(kinds[i], runs[kinds[i]])
        row("all", runs["all"])
    }' order="none ${all_kinds[*]}" "$work/outcomes"
done_runs=$(wc -l <"$work/outcomes")
((done_runs == ${#list[@]} && broken == 0)) || { echo "only $done_runs of ${#list[@]} runs were made" >&2 && exit 1; }
! grep -q '^failed' "$work/outcomes"
