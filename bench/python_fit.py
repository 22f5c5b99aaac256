"""What bench/python.sh runs: fits estimators to a CSR matrix, and prints the seconds of each.

    python_fit.py make DATA.svm MATRIX.npz      reads libsvm text once
    python_fit.py fit MATRIX.npz ALGO EPOCHS FOLDER CONTENT
                                                seconds of fit(); CONTENT: the hash that the model's parameters must have
"""
import sys
import time

import numpy as np
from scipy import sparse


def make(text, target):
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(text, dtype=np.float32, zero_based=True)
    sparse.save_npz(target, X, compressed=False)
    np.save(target + ".labels.npy", y)


def fit(source, algo, epochs, folder, content):
    import drps

    X, y = sparse.load_npz(source), np.load(source + ".labels.npy")
    kind = {"lor": drps.SGDClassifier, "fm": drps.FMClassifier}[algo]
    estimator = kind(epochs=int(epochs), batch_size=1000, work_dir=folder)
    began = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - began
    found = drps.describe(estimator.model_path_)["content"]
    if found != content:
        sys.exit(f"the model's parameters are {found}, those of the tools {content}")
    print(f"{seconds:.4f}")


if __name__ == "__main__":
    {"make": make, "fit": fit}[sys.argv[1]](*sys.argv[2:])
