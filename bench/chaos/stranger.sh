#!/usr/bin/env bash
# A stranger who connects to a port, for bench/chaos.sh, until it is told to end: MANY times, and then says nothing, says a
# byte of ZeroMQ's greeting now and then, or sends random bytes that follow from SALT, after the greeting or instead of it.
#   stranger.sh HOST PORT silent|slow|noise MANY SALT
host=$1 port=$2 kind=$3 many=$4 salt=$5
greeting='\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
ready='\4\x1a\5READY\xbSocket-Type\0\0\0\4PUSH'
random() { # SALT: up to 20,000 bytes
    LC_ALL=C awk -v salt="$1" 'BEGIN {srand(salt); n = rand() * 20000; while (n-- > 0) printf "%c", int(rand() * 256)}'
}
all=()
for ((i = 0; i < many; i++)); do
    { exec {fd}<>"/dev/tcp/$host/$port"; } 2>/dev/null || continue
    all+=("$fd")
    [[ $kind = noise ]] || continue
    (((salt + i) % 3 == 0)) || printf '%b' "$greeting" >&"$fd"
    (((salt + i) % 3 != 2)) || printf '%b' "$ready" >&"$fd"
    random $((salt + i)) >&"$fd"
done 2>/dev/null
trap '' PIPE
while ((${#all[@]})); do
    for fd in "${all[@]}"; do
        [[ $kind != slow ]] || printf '\xff' >&"$fd"
        read -r -t 0.1 -N 1 -u "$fd" _
    done 2>/dev/null
done
