#!/usr/bin/env bash
# The examples for Kubernetes, which were not run: each is read, compared with the types of Kubernetes' own interface, and its
# command is one that the tool takes.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import yaml' 2>/dev/null || skip "no YAML module of Python to read the examples for Kubernetes with"

# ---- Types: each key is one that Kubernetes knows there, and its value is of the right kind ----

cat >types.py <<'END'
import re
import sys
import yaml
from kubernetes import client

KINDS = {"Job": "V1Job", "Service": "V1Service"}
NEWER = {"V1JobSpec": {"podFailurePolicy"}}  # than the types: Kubernetes 1.26


def check(value, type_name, where):
    inner = re.fullmatch(r"list\[(.*)\]", type_name)
    if inner:
        assert isinstance(value, list), f"{where} is no list"
        for i, v in enumerate(value):
            check(v, inner[1], f"{where}[{i}]")
        return
    inner = re.fullmatch(r"dict\(str, (.*)\)", type_name)
    if inner:
        assert isinstance(value, dict), f"{where} is no mapping"
        for k, v in value.items():
            check(v, inner[1], f"{where}.{k}")
        return
    if type_name in ("int", "bool", "str"):
        assert type(value).__name__ == type_name, f"{where} is {value!r}, and should be of {type_name}"
        return
    if type_name == "object":  # a number or a text
        assert isinstance(value, (int, str)), f"{where} is {value!r}"
        return
    model = getattr(client, type_name)
    names = {key: name for name, key in model.attribute_map.items()}
    assert isinstance(value, dict), f"{where} is no mapping"
    for key, v in value.items():
        if key in NEWER.get(type_name, ()):
            continue
        assert key in names, f"{where}.{key}: {type_name} has no such key"
        check(v, model.openapi_types[names[key]], f"{where}.{key}")
    built = {names[k]: v for k, v in value.items() if k in names}
    model(**built, local_vars_configuration=client.Configuration())  # it knows which keys must be there


for document in yaml.safe_load_all(open(sys.argv[1])):
    check(document, KINDS[document["kind"]], document["kind"])
END
if $python -c 'import kubernetes' 2>/dev/null; then
    for file in kubernetes kubernetes-index; do
        $python types.py "$source/examples/$file.yaml" || fail "examples/$file.yaml"
        # It sees what is wrong.
        sed 's/completionMode:/completionmode:/' "$source/examples/$file.yaml" >wrong.yaml
        ! $python types.py wrong.yaml 2>err.txt || fail "types.py takes any key"
        grep -q "completionmode: V1JobSpec has no such key" err.txt || fail "types.py: $(cat err.txt)"
        sed 's/completions: 4/completions: four/' "$source/examples/$file.yaml" >wrong.yaml
        ! $python types.py wrong.yaml 2>err.txt || fail "types.py takes any value"
        sed '/^  template:/,$d' "$source/examples/$file.yaml" >wrong.yaml
        ! $python types.py wrong.yaml 2>err.txt || fail "types.py takes a job without a template"
    done
    echo "ok types"
else
    echo "skipped: types: python3-kubernetes is not installed"
fi

# ---- What both say, and what only the one for training says ----

cat >form.py <<'END'
import sys
import yaml

service, job = yaml.safe_load_all(open(sys.argv[1]))
spec = job["spec"]
pod = spec["template"]["spec"]
rank = pod["containers"][0]
assert job["kind"] == "Job" and spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
assert service["spec"]["clusterIP"] == "None" and service["metadata"]["name"] == pod["subdomain"]
assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
assert {m["name"] for m in rank["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "drps-data"
assert pod["restartPolicy"] == "Never"  # what a podFailurePolicy needs
if job["metadata"]["name"] == "drps-index":
    assert "--shared" in rank["command"]
else:
    rules = spec["podFailurePolicy"]["rules"]
    assert rules[0]["action"] == "FailJob" and rules[0]["onExitCodes"]["values"] == [1, 2]
    assert rules[0]["onExitCodes"]["containerName"] == rank["name"]
    ports = {p.get("name"): p["containerPort"] for p in rank["ports"]}
    assert f"--metrics-port=0.0.0.0:{ports['metrics']}" in rank["command"]
    for probe in rank["startupProbe"], rank["livenessProbe"]:
        assert probe["httpGet"] == {"path": "/metrics", "port": "metrics"}
print(spec["completions"])
print("\n".join(rank["command"]))
END

# runs FILE STATUS PATTERN INDEX: its options are those of the tool, which gets as far as what is not there
runs() {
    local count command
    $python form.py "$source/examples/$1" >command.txt || fail "examples/$1"
    { read -r count && mapfile -t command; } < <(sed 's#/data/#nowhere/#' command.txt)
    ports "$count" >peers.txt
    command=("${command[@]/--peers=*/--peers=peers.txt}")
    command=("${command[@]/--metrics-port=*/--metrics-port=$(ports 1)}")
    fails "$2" "$3" env JOB_COMPLETION_INDEX="$4" "$tools/${command[@]}"
    echo "$count" >>counts.txt
    echo "ok $1, which was not run on a cluster"
}
runs kubernetes.yaml 1 "nowhere/fm.plan" 3
runs kubernetes-index.yaml 2 "Kubernetes indexed job says rank 4 of 4" 4
[[ $(sort -u counts.txt | wc -l) = 1 ]] || fail "the jobs have unequal numbers of pods: $(cat counts.txt)"
