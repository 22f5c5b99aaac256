# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what the script that sources this sets, and uses
# Hosts inside one machine: a network namespace and a memory cgroup each, joined by a bridge over links of `rate` Mbit/s each
# way. Source it after lib.sh, with `hosts`, `rate` and `memory` (MiB of each host) set, and `burst`, what an idle link lets pass
# at once (default 128kb); make_hosts makes them, and everything goes away at the end. Host r has the folder $work/host-$r and
# runs in the cgroup groups[r]; the processes of a job are in pids.
((EUID == 0)) || { echo "$(basename "$0"): network namespaces need root" >&2; exit 1; }
for tool in ip tc nsenter; do
    command -v $tool >/dev/null || { echo "$(basename "$0"): install iproute2 and util-linux ($tool is missing)" >&2; exit 1; }
done
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

space=drps$$ # namespaces: one a host, and one for the bridge
groups=() pids=()
kill_all() { # GROUP: what runs in this cgroup, until nothing does
    local members
    while mapfile -t members <"$1/cgroup.procs" && ((${#members[@]})); do kill -KILL "${members[@]}" 2>/dev/null || true; done
}
end_ranks() {
    local group
    for group in "${groups[@]}"; do kill_all "$group"; done
    wait
    pids=()
}
clean_up() {
    local r
    end_children
    end_ranks 2>/dev/null
    for ((r = 0; r < hosts; r++)); do ip netns del "$space-$r" 2>/dev/null || true; done
    ip netns del "$space-bridge" 2>/dev/null || true
    ((${#groups[@]} == 0)) || rmdir "${groups[@]}" || true
    remove_work
}
trap clean_up EXIT # after SIGTERM, too: see lib.sh
trap 'exit 130' INT

shape() { tc -n "$1" qdisc replace dev "$2" root tbf rate "${rate}mbit" burst "${burst:-128kb}" latency 20ms; }
make_hosts() {
    local r
    ip netns add "$space-bridge"
    ip -n "$space-bridge" link add bridge type bridge
    ip -n "$space-bridge" link set bridge up
    for ((r = 0; r < hosts; r++)); do
        ip netns add "$space-$r"
        ip link add eth0 netns "$space-$r" type veth peer name "port-$r" netns "$space-bridge"
        ip -n "$space-$r" addr add "10.99.0.$((r + 1))/24" dev eth0
        ip -n "$space-$r" link set lo up
        ip -n "$space-$r" link set eth0 up
        ip -n "$space-bridge" link set "port-$r" master bridge up
        shape "$space-$r" eth0
        shape "$space-bridge" "port-$r"
        groups+=("$(cgroup "$space-$r" "$(megabytes "$memory")")")
        mkdir "$work/host-$r"
        echo "10.99.0.$((r + 1)):7000" >>"$work/peers-insecure"
        echo "10.99.0.$((r + 1)):7000 $("$tools/drps-train" --make-keys "$work/host-$r/keys")" >>"$work/peers-keys"
    done
}

link() { ip -n "$space-bridge" link set "port-$1" "$2"; } # R up|down: as if its cable were pulled at the switch

# Bytes of packets of at most 1500 that the shapers let pass. (The interfaces' own counters see packets of up to 64 KiB, before
# they are cut up, and so fewer headers.)
passed() { tc -s -j -n "$1" qdisc show dev "$2" | jq '.[0].bytes'; }
link_bytes() { # every host's "sent received", a line each
    local r
    for ((r = 0; r < hosts; r++)); do echo "$(passed "$space-$r" eth0) $(passed "$space-bridge" "port-$r")"; done
}
