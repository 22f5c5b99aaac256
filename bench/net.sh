#!/usr/bin/env bash
# bench_net between two network namespaces over a link of 1 Gbit/s (or the rate that is given, as tc writes it): plain TCP
# sockets, ZeroMQ, ZeroMQ with keys. Both ends share this machine's cores: bench_net says how much of them each took.
# Needs root, ip and tc. Everything it makes goes away at the end.
#   bench/net.sh [RATE [BYTES]]
set -euo pipefail
. "$(dirname "$0")/rows.sh"
rate=${1:-1gbit}
bytes=${2:-64M}
bench=${DRPS_TOOLS:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/bin}/bench_net
[[ -x $bench ]] || { echo "net.sh: build drps first ($bench is missing)" >&2; exit 1; }
((EUID == 0)) || { echo "net.sh: network namespaces need root" >&2; exit 1; }
for tool in ip tc; do
    command -v "$tool" >/dev/null || { echo "net.sh: install iproute2 ($tool is missing)" >&2; exit 1; }
done

folder=$(mktemp -d "${TMPDIR:-/tmp}/drps-net.XXXXXX")
space=drps$$ # two namespaces, with a link of the same names between them
others=" $(pgrep -P $$ | tr '\n' ' ')" # children of a shell whose place this script has taken
clean_up() {
    for pid in $(pgrep -P $$); do [[ $others = *" $pid "* ]] || kill -KILL "$pid" 2>/dev/null || true; done
    for r in 0 1; do ip netns del "$space-$r" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap clean_up EXIT

for r in 0 1; do ip netns add "$space-$r"; done
ip link add "$space-0" netns "$space-0" type veth peer name "$space-1" netns "$space-1"
for r in 0 1; do
    ip -n "$space-$r" addr add "10.99.0.$((r + 1))/24" dev "$space-$r"
    ip -n "$space-$r" link set "$space-$r" up
    ip -n "$space-$r" link set lo up
    tc -n "$space-$r" qdisc add dev "$space-$r" root tbf rate "$rate" burst 128kb latency 20ms
    echo "10.99.0.$((r + 1)):7000 $("$bench" keys "$folder/$r")" >>"$folder/peers"
done

ip netns exec "$space-1" "$bench" rank 1 "$folder" "$bytes" &
other=$!
ip netns exec "$space-0" "$bench" rank 0 "$folder" "$bytes" | tee "$folder/figures"
while IFS=$'\t' read -r how size stream shares; do
    record "net|$size|$how" "$stream"
    record "net|$size|$how: percent of a core, sender and receiver, and of the machine" "$shares"
done < <(awk '$1 != "transport" {
    how = substr($0, 1, 14); size = substr($0, 16, 9); gsub(/^ +| +$/, "", how); gsub(/^ +/, "", size)
    split(substr($0, 26), figure, " ") # pull us, stream, least, most, shares
    printf "%s\t%s\t%s (%s to %s)\t%s, %s, %s\n", how, size, figure[2], figure[3], figure[4], figure[5], figure[6], figure[7] }' "$folder/figures")
wait "$other"
