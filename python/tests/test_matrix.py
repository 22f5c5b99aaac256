"""Arrays are handed to the library as they are."""
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import drps
from conftest import clicks


def address(member):
    from drps._ffi import ffi

    return int(ffi.cast("uintptr_t", member.data))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_csr_matrix_is_not_copied(dtype, index):
    X, y = clicks(dtype=dtype, index=index)
    weight = np.ones(len(y))
    m = drps.Matrix(X, y, weight)
    for member, array in (("values", X.data), ("indices", X.indices), ("starts", X.indptr), ("labels", y), ("weights", weight)):
        assert address(getattr(m.struct, member)) == array.ctypes.data, member


@pytest.mark.parametrize("dtype, index", [(np.float32, np.int32), (np.float64, np.int64)])
def test_fitting_takes_no_memory_of_the_size_of_the_data(dtype, index):
    n, each = 60_000, 20
    rng = np.random.default_rng(1)
    indices = (np.arange(each) * 25 + rng.integers(0, 25, (n, each))).astype(index).ravel()
    X = sparse.csr_matrix((n, 500), dtype=dtype)
    X.data, X.indices, X.indptr = np.ones(n * each, dtype), indices, np.arange(0, n * each + 1, each, dtype=index)
    y = (indices[::each] > 12).astype(np.int64)
    size = X.data.nbytes + X.indices.nbytes
    drps.LogisticRegression().fit(*clicks(100))  # loads what it needs
    m = drps.LogisticRegression(optimizer="adagrad", epochs=1, batch_size=1000)
    tracemalloc.start()
    m.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 3, f"{peak} bytes of Python for data of {size}"


def test_other_matrices_are_turned_into_csr():
    X, y = clicks()
    for other in (X.tocsc(), X.tocoo(), X.toarray()):
        m = drps.Matrix(other, y)
        assert m.shape == X.shape


def test_an_empty_matrix_has_arrays():
    m = drps.Matrix(sparse.csr_matrix((3, 5), dtype=np.float32), np.zeros(3))
    assert m.struct.samples == 3 and address(m.struct.values) != 0


@pytest.mark.parametrize("what", [{"y": np.zeros(5)}, {"sample_weight": np.zeros(5)}, {"fields": np.zeros(5, int)}])
def test_wrong_lengths_are_refused(what):
    X, y = clicks()
    with pytest.raises(ValueError, match=next(iter(what))):
        drps.Matrix(X, **{"y": y, **what})
