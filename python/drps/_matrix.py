"""Samples in memory as the library takes them: struct drps_matrix over the caller's own arrays, nothing copied."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from scipy import sparse

from ._ffi import ffi
from ._library import lib

_NUMBERS = {
    np.dtype(np.float32): "DRPS_F32", np.dtype(np.float64): "DRPS_F64", np.dtype(np.int32): "DRPS_I32",
    np.dtype(np.int64): "DRPS_I64", np.dtype(np.uint8): "DRPS_U8",
}
_REAL = (np.float32, np.float64)
_INDEX = (np.int32, np.int64)
_ANY = _REAL + _INDEX + (np.uint8,)


def _usable(what: str, array: Any, types: tuple, length: Optional[int] = None) -> np.ndarray:
    """The array itself where its type is one of `types` and its numbers lie side by side; else a copy of the first such type."""
    array = np.asarray(array)
    if array.ndim != 1 or (length is not None and len(array) != length):
        raise ValueError(f"{what}: a vector of {length} numbers is needed, this one has the shape {array.shape}")
    if array.dtype.type not in types or not array.dtype.isnative:
        array = array.astype(types[-1] if types is _INDEX or array.dtype.kind == "f" else np.float64)
    return np.ascontiguousarray(array)


class Matrix:
    """Rows of features, in compressed sparse rows, with labels and weights.

    Parameters
    ----------
    X : scipy.sparse matrix or array of shape (n_samples, n_columns)
        CSR matrices of float32 or float64 with int32 or int64 indices are used as they are. Others are turned into that.
    y : array of shape (n_samples,), optional
        Labels: numbers.
    sample_weight : array of shape (n_samples,), optional
    fields : array of shape (n_columns,), optional
        Field of each column, for ``ffm`` and nets that look at fields.

    Notes
    -----
    The arrays have to stay as they are while a call of the library reads them.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, fields: Any = None) -> None:
        csr = sparse.csr_matrix(X) if not (sparse.issparse(X) and X.format == "csr") else X
        self.shape = csr.shape
        samples, columns = csr.shape
        self._arrays: dict[str, Any] = {
            "starts": _usable("indptr", csr.indptr, _INDEX, samples + 1),
            "indices": _usable("indices", csr.indices, _INDEX),
            "values": _usable("data", csr.data, _REAL),
            "labels": None if y is None else _usable("y", y, _ANY, samples),
            "weights": None if sample_weight is None else _usable("sample_weight", sample_weight, _REAL, samples),
            "fields": None if fields is None else _usable("fields", fields, _INDEX, columns),
        }
        entries = len(self._arrays["indices"])
        if len(self._arrays["values"]) != entries:
            raise ValueError(f"the matrix has {entries} indices and {len(self._arrays['values'])} values")
        self.struct = ffi.new("struct drps_matrix *")
        self.struct.samples, self.struct.columns, self.struct.entries = samples, columns, entries
        self._buffers = []
        for name, array in self._arrays.items():
            if array is None:
                continue
            member = getattr(self.struct, name)
            member.type = getattr(lib, _NUMBERS[array.dtype])
            buffer = ffi.from_buffer(array) if len(array) else ffi.new("char[8]")  # no array is not an empty one
            self._buffers.append(buffer)
            member.data = buffer

    @classmethod
    def of(cls, data: Any) -> "Matrix":
        """Data that is a Matrix already, or a tuple (X, y) or (X, y, sample_weight), or X alone."""
        if isinstance(data, cls):
            return data
        return cls(*data) if isinstance(data, tuple) else cls(data)


def is_samples(data: Any) -> bool:
    """True of samples in memory, False of paths of files."""
    return isinstance(data, (Matrix, tuple, np.ndarray)) or sparse.issparse(data)
