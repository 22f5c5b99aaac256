"""What users hand to an estimator: matrices, DataFrames, paths; and numbers scaled."""
from __future__ import annotations

import os
from typing import Any, Iterator, Optional

import numpy as np
from scipy import sparse

LABEL, WEIGHT = "drps_label", "drps_weight"
CHUNK = 50_000
BREAKS = r"[\r\n]+"  # a sample is a line


def is_files(X: Any) -> bool:
    """A path, or a list of paths."""
    return isinstance(X, (str, os.PathLike)) or (
        isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(x, (str, os.PathLike)) for x in X)
    )


def is_mixed_frame(X: Any) -> bool:
    """A DataFrame with a column that is not of numbers."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc") and hasattr(X, "columns") and any(
        _kind(dtype) != "number" for dtype in X.dtypes
    )


def _kind(dtype: Any) -> str:
    """A column's kind, as drps-index takes it."""
    if getattr(dtype, "kind", "O") == "M":
        return "date"
    if getattr(dtype, "kind", "O") in "iuf" and str(dtype) != "category":
        return "number"
    return "category"


def frame_columns(X: Any) -> dict[str, str]:
    """The kinds of a frame's columns. Names that the setting could not be written with are refused."""
    kinds = {}
    for name, dtype in X.dtypes.items():
        if not isinstance(name, str) or not name or any(c in name for c in ',:*"\r\n') or name in (LABEL, WEIGHT) or name in kinds:
            raise ValueError(f"column {name!r}: rename it: a name is a text, once, without commas, colons, quotes and asterisks")
        kinds[name] = _kind(dtype)
    return kinds


def _readable(X: Any) -> Any:
    """The frame with dates as drps-index reads them, line breaks in texts as blanks, and infinities refused."""
    changed = {}
    for name in X.columns:
        kind = _kind(X[name].dtype)
        if kind == "date":
            changed[name] = X[name].dt.strftime("%Y-%m-%d %H:%M:%S")
        elif kind == "number" and np.isinf(X[name].to_numpy(dtype=float, na_value=np.nan)).any():
            raise ValueError(f"column {name}: Input X contains infinity")
        elif kind == "category" and X[name].dtype.kind not in "biufcm":
            texts = X[name].astype("string")
            if texts.str.contains(BREAKS, na=False).any():
                changed[name] = texts.str.replace(BREAKS, " ", regex=True)
    return X.assign(**changed) if changed else X


def write_frame(path: str, X: Any, y: Any, weight: Any) -> None:
    """A frame as a CSV file, with labels and weights as columns of their own."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        for begin in range(0, max(len(X), 1), CHUNK):
            part = _readable(X.iloc[begin : begin + CHUNK])
            part = part.assign(**{LABEL: np.asarray(y)[begin : begin + CHUNK]})
            if weight is not None:
                part = part.assign(**{WEIGHT: np.asarray(weight)[begin : begin + CHUNK]})
            part.to_csv(file, index=False, header=begin == 0)


def frame_texts(X: Any) -> Iterator[str]:
    """A frame as pieces of CSV text, each below its header line."""
    for begin in range(0, len(X), CHUNK):
        yield _readable(X.iloc[begin : begin + CHUNK]).to_csv(index=False)


class Scaler:
    """Shift and unit of each column of dense data: those with large numbers are standardised, others stay as they are.

    The rule is that of drps-index for columns of CSV: a column whose root mean square is above 10. `how` "standard" scales
    all columns, None none. A sparse matrix is never scaled, as its zeros would go, and it is not copied.
    """

    def __init__(self, X: Any, how: Optional[str]) -> None:
        if how not in (None, "auto", "standard"):
            raise ValueError(f"scale={how!r}: it may be None, 'auto' or 'standard'")
        if sparse.issparse(X) and how == "standard":
            raise ValueError("scale='standard': a sparse matrix is not centred; scale its columns, for instance by MaxAbsScaler")
        self.shift: Any = None
        if sparse.issparse(X) or how is None:
            return
        numbers = X.astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            rms = np.sqrt(np.mean(numbers * numbers, axis=0))
        chosen = np.ones(X.shape[1], bool) if how == "standard" else rms > 10
        if not chosen.any():
            return
        self.shift = np.where(chosen, numbers.mean(axis=0), 0.0)
        deviation = numbers.std(axis=0)
        self.unit = np.where(chosen & (deviation > 0), deviation, 1.0)

    def __call__(self, X: Any) -> Any:
        """The samples as CSR."""
        if sparse.issparse(X):
            if self.shift is None:
                return X
            X = X.toarray()  # the model was fitted to dense data
        return sparse.csr_matrix(X if self.shift is None else (X - self.shift) / self.unit)
