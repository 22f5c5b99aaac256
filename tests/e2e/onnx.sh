#!/usr/bin/env bash
# Exports as ONNX: files that ONNX's checker accepts, and whose graphs, evaluated operator by operator, predict what drps-predict does.
. "$(dirname "$0")/lib.sh"

export_model() { "$tools/drps-stat" "$1" --export "$1.onnx" --force --quiet; }
train() { "$tools/drps-train" "$@" --epochs 2 --quiet --force; }
index() { "$tools/drps-index" "$@" --quiet --force; }

"$tools/drps-gen" ctr --samples 2K --fields 6 --rows 900 --seed 5 -o ctr.svm --quiet
awk '{printf "%s", $1; for (i = 2; i <= NF; i++) {split($i, a, ":"); printf " %s:%.3f", a[1], a[2] * i / 3} print ""}' ctr.svm >values.svm
for algo in lor fm svm lir; do
    index values.svm --algo $algo $([[ $algo != fm ]] || echo --factors 5) -o plan
    train plan -o $algo --lr 0.01
done
"$tools/drps-gen" matrix --users 60 --items 30 --ratings 2K --seed 3 -o ratings.tsv --quiet
index ratings.tsv --algo lmf --factors 4 -o plan
train plan -o lmf
five_classes
index train.svm --algo mlr -o plan
train plan -o mlr
index train.svm --algo svm -o plan
train plan -o classes
index ctr.svm --algo expr --loss 'square(y - w*x)' -o plan
train plan -o expr --lr 0.001

# What is refused, and why.
index ratings.tsv --algo ffm --factors 2 -o plan
train plan -o ffm
fails 2 'algorithm ffm, which is not exported as ONNX' "$tools/drps-stat" ffm --export never.onnx
"$tools/drps-predict" svm values.svm --calibrate isotonic --quiet
fails 2 'isotonic regression, which is not exported' "$tools/drps-stat" svm --export never.onnx
"$tools/drps-predict" svm values.svm --calibrate platt --quiet
fails 2 'no place for two' "$tools/drps-stat" lor --export - --as onnx
absent never.onnx
absent never.onnx.names

python=
for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import onnx, numpy' 2>/dev/null; then python=$candidate && break; fi
done
for model in lor fm svm lir lmf mlr classes expr; do
    export_model $model || fail "$model is not exported"
    [[ $(wc -l <$model.onnx.names) = $(($("$tools/drps-stat" $model --json | value rows) - 1)) ]] || fail "$model: not a name a feature"
done
[[ -n $python ]] || skip "python3-onnx and python3-numpy are not installed: exported files were not read"

cat >evaluate.py <<'TEXT'
"""evaluate.py MODEL.onnx DATA: checks the model, evaluates its graph for libsvm or ratings, and prints a line a sample."""
import sys
import numpy as np
import onnx
from onnx import numpy_helper

model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
names = {name: i for i, name in enumerate(open(sys.argv[1] + ".names").read().split("\n")[:-1])}
samples = []
for line in open(sys.argv[2]):
    words = line.split()
    if sys.argv[2].endswith(".tsv"):
        features = [("user=" + words[0], 1.0), ("item=" + words[1], 1.0)]
    else:
        features = [(a, float(b)) for a, b in (w.split(":") for w in words[1:])]
    samples.append([(names[n], v) for n, v in features if n in names])
most = max(len(s) for s in samples)
known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
known["ids"] = np.array([[i for i, _ in s] + [0] * (most - len(s)) for s in samples], dtype=np.int64)
known["values"] = np.array([[v for _, v in s] + [0] * (most - len(s)) for s in samples], dtype=np.float32)
assert [i.name for i in model.graph.input] == ["ids", "values"]
for node in model.graph.node:
    of = [known[i] for i in node.input]
    operator = {
        "Gather": lambda: of[0][of[1]],
        "Unsqueeze": lambda: np.expand_dims(of[0], int(of[1][0])),
        "Squeeze": lambda: np.squeeze(of[0], int(of[1][0])),
        "Mul": lambda: of[0] * of[1],
        "Add": lambda: of[0] + of[1],
        "Sub": lambda: of[0] - of[1],
        "MatMul": lambda: of[0] @ of[1],
        "ReduceSum": lambda: of[0].sum(axis=int(of[1][0]), dtype=np.float32),
        "Sigmoid": lambda: 1 / (1 + np.exp(-of[0])),
        "Softmax": lambda: np.exp(of[0]) / np.exp(of[0]).sum(axis=1, keepdims=True),
    }[node.op_type]
    known[node.output[0]] = operator()
assert len(model.graph.output) == 1
result = known[model.graph.output[0].name]
classes = {p.key: p.value for p in model.metadata_props}.get("classes", "").split("\n")[:-1]
for row in result.reshape(len(samples), -1):
    if model.graph.output[0].name == "scores" and classes:
        print(classes[int(row.argmax())])
    else:
        print("\t".join("%.7g" % v for v in row))
TEXT
for case in lor:values.svm fm:values.svm svm:values.svm lir:values.svm lmf:ratings.tsv mlr:test.svm classes:test.svm expr:ctr.svm; do
    model=${case%:*} data=${case#*:}
    "$python" evaluate.py $model.onnx "$data" >theirs.txt || fail "$model.onnx is not what ONNX expects"
    "$tools/drps-predict" $model "$data" -o ours.txt --force --quiet $([[ $model != mlr ]] || echo --probabilities)
    if [[ $model = classes ]]; then
        cmp theirs.txt ours.txt || fail "$model: other classes"
        continue
    fi
    [[ $model != mlr ]] || sed -i 1d ours.txt
    paste theirs.txt ours.txt | awk -v n="$(wc -l <ours.txt)" '{for (i = 1; i <= NF / 2; i++) {d = $i - $(i + NF / 2); if (d * d > 1e-10 * (1 + $i * $i)) exit 1}} END {exit NR != n || !NR}' ||
        fail "$model: other predictions: $(paste theirs.txt ours.txt | head -2)"
done
echo "ok onnx"
