"""What the tests share. DRPS_LIBRARY names the library, DRPS_TOOLS the folder of the tools."""
import os
import pathlib
import subprocess

import numpy as np
import pytest
from scipy import sparse

import drps


@pytest.fixture(autouse=True)
def _scratch(tmp_path, monkeypatch):
    """Temporary folders of estimators lie below the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def tool():
    """Runs a tool, and returns what it prints."""
    folder = os.environ.get("DRPS_TOOLS")
    if not folder:
        pytest.skip("DRPS_TOOLS does not name the folder of the tools")

    def run(name, *arguments):
        done = subprocess.run([os.path.join(folder, name), *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def clicks(n=1200, columns=300, each=6, seed=1, dtype=np.float32, index=np.int32):
    """A CSR matrix of samples with `each` features of value 1 or some other, and labels that a linear model tells apart."""
    rng = np.random.default_rng(seed)
    indices = np.sort(np.argsort(rng.random((n, columns)), axis=1)[:, :each], axis=1).astype(index)
    values = rng.choice(np.array([1, 1, .5, 2], dtype), size=n * each)
    starts = np.arange(0, n * each + 1, each, dtype=index)
    X = sparse.csr_matrix((n, columns), dtype=dtype)
    X.data, X.indices, X.indptr = values, indices.ravel(), starts
    weight = np.random.default_rng(99).normal(size=columns)
    y = (X @ weight + rng.normal(size=n) * .1 > 0).astype(np.int64)
    return X, y


def write_libsvm(path, X, y):
    """The same samples as a libsvm file whose ids count from 0."""
    with open(path, "w") as file:
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            file.write(f"{y[i]}" + "".join(f" {c}:{v:.9g}" for c, v in zip(X.indices[row], X.data[row])) + "\n")
    return path


@pytest.fixture
def trained(tmp_path):
    """A function: compiles and trains samples, and returns the model's folder."""
    def run(X, y, algo="lor", **settings):
        drps.index((X, y), tmp_path / "plan", algo=algo, force=True)
        drps.train(tmp_path / "plan", tmp_path / "model", force=True, **settings)
        return tmp_path / "model"

    return run


ROOT = pathlib.Path(__file__).resolve().parents[2]
