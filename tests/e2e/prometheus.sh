#!/usr/bin/env bash
# examples/grafana.json with a real Prometheus: it scrapes two ranks and drps-index on loopback while they run, and every expression
# of the dashboard gives data.
. "$(dirname "$0")/lib.sh"

command -v prometheus >/dev/null || skip "prometheus is not installed"
python=/usr/bin/python3
[[ -x $python ]] || skip "python3 is not installed"
"$tools/drps-gen" matrix --users 40K --items 500 --ratings 80K --seed 3 -o data.tsv --quiet
"$tools/drps-index" data.tsv --algo lmf --factors 64 --test-fraction 0.1 --workers 2 --order shuffled --partition range -o ranks --quiet

mapfile -t at < <(ports 4) # Prometheus, drps-index, and the ranks, whose ports follow each other
host=${at[0]%:*}
ranks_port=$((${at[3]##*:} + 1))
pids=()
end() {
    local pid
    for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
    wait || true
    rm -rf "$work"
}
trap end EXIT

# drps-index reads a pipe that stays open while Prometheus looks
mkfifo pipe
"$tools/drps-index" pipe --format ratings --algo lmf --factors 4 -o slow --quiet --metrics-port "${at[1]}" 2>index.txt &
pids+=($!)
exec 5>pipe
cat data.tsv >&5
"$tools/drps-train" ranks -o model --local 2 --store relay --memory 52M --epochs 100000 --checkpoint-every 1s --quiet \
    --metrics-port "$host:$ranks_port" 2>train.txt &
train=$!
pids+=("$train")

cat >prometheus.yml <<TEXT
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: drps
    static_configs: [{targets: ['${at[1]}', '$host:$ranks_port', '$host:$((ranks_port + 1))']}]
TEXT
prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="${at[0]}" --log.level=error 2>prometheus.txt &
pids+=($!)

# Asks until every expression has data, or the job has ended.
status=0
$python - "$source/examples/grafana.json" "http://${at[0]}" "$train" <<'PYTHON' || status=$?
import json, math, os, sys, time, urllib.error, urllib.parse, urllib.request

dashboard, server, job = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
expressions = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
assert len(expressions) > 20, expressions


def has_data(expression):
    """Whether Prometheus finds a number for it; one it refuses ends the test."""
    query = urllib.parse.urlencode({"query": expression.replace("$__rate_interval", "10s")})
    try:
        answer = json.load(urllib.request.urlopen(f"{server}/api/v1/query?{query}"))
    except urllib.error.HTTPError as e:
        if e.code == 400:
            sys.exit(f"FAILED: {expression}: {e.read().decode()}")
        return False
    except OSError:
        return False  # it has not begun
    values = [float(r["value"][1]) for r in answer["data"]["result"]]
    return any(not math.isnan(v) for v in values)


waiting, until = expressions, time.monotonic() + 300
while waiting:
    waiting = [e for e in waiting if not has_data(e)]
    if waiting and (time.monotonic() > until or not os.path.exists(f"/proc/{job}")):
        sys.exit("FAILED: no data for:\n" + "\n".join(waiting))
    if waiting:
        time.sleep(0.2)  # Prometheus scrapes once a second
print(f"ok {len(expressions)} expressions of the dashboard have data")
PYTHON
exec 5>&-
[[ $status = 0 ]] || fail "$(cat prometheus.txt train.txt index.txt)"
