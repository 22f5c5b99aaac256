"""A trained model in use: scores, explanations, rows with their names, recommendations."""
from __future__ import annotations

import json
import os
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._ffi import ffi
from ._library import check, lib, new_err, own_text, path_bytes, text_array
from ._matrix import Matrix

__all__ = ["Model", "Row"]

NO_ITEM = 2**32 - 1
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


class Row(NamedTuple):
    """A row of a model: `table` ("bias", "w", "user" ...), `name` of the feature, and `params` (weight, factors)."""

    table: str
    name: str
    params: np.ndarray


def bytes_of(memory: Union[None, int, str]) -> int:
    """A size as a number of bytes: 512M is 512 times 2**20.

    Examples
    --------
    >>> bytes_of("2K"), bytes_of(7), bytes_of(None)
    (2048, 7, 0)
    """
    if memory is None:
        return 0
    text = str(memory).strip().upper()
    shift = _UNITS.get(text[-1:], 0)
    try:
        number = float(text[:-1] if shift else text)
    except ValueError:
        raise ValueError(f"memory: {memory!r} is no size, such as 512M or 2G") from None
    if not 0 <= number < float("inf"):
        raise ValueError(f"memory: {memory!r} is no size, such as 512M or 2G")
    return int(number * (1 << shift))


class Model:
    """A model that :func:`drps.train` or ``drps-train`` has made.

    Parameters
    ----------
    path : path
        The model's folder.
    memory : int or str, optional
        For rows and names, as in "256M". Without it all are read into memory; what does not fit is read from disk by blocks.

    Attributes
    ----------
    path : str
    info : dict
        What the model is and how it was trained.
    outputs : int
        Scores of a sample: one, or one of each class.
    classes : list of str, or None
        Names of the classes; None where labels are numbers.

    Notes
    -----
    Any number of threads may use it at a time.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], memory: Union[None, int, str] = None) -> None:
        err, out = new_err(), ffi.new("struct drps_predictor **")
        self.path, self._memory = os.fspath(path), memory
        check(lib.drps_predictor_open(path_bytes(path), bytes_of(memory), out, err), err)
        self._p = ffi.gc(out[0], lib.drps_predictor_close)
        self.info: dict = json.loads(ffi.string(lib.drps_predictor_json(self._p)))
        self.outputs: int = lib.drps_predictor_outputs(self._p)
        first = lib.drps_predictor_class(self._p, 0)
        self.classes: Optional[list[str]] = None if first == ffi.NULL else [
            ffi.string(lib.drps_predictor_class(self._p, i)).decode("utf-8", "replace") for i in range(self.outputs)
        ]

    def __repr__(self) -> str:
        return f"Model({self.path!r}, algo={self.info.get('algo')!r}, rows={self.info.get('rows')})"

    def __reduce__(self) -> tuple:
        """A pickle has the path; the model is opened again."""
        return Model, (os.path.abspath(self.path), self._memory)

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the memory; the model cannot be used any more."""
        if self._p is not None:
            ffi.release(self._p)
            self._p = None

    def _handle(self) -> Any:
        if self._p is None:
            raise ValueError(f"{self.path}: this model was closed")
        return self._p

    def score(self, X: Any, raw: bool = False) -> np.ndarray:
        """Score samples in memory.

        Parameters
        ----------
        X : CSR matrix, array or Matrix of shape (n_samples, n_columns)
        raw : bool
            False: probabilities of the positive class, margins or values as ``drps-predict`` writes them; of classes the
            probability of each. True: what the loss is computed of, before that.

        Returns
        -------
        numpy.ndarray of shape (n_samples,), or (n_samples, outputs) where there are several
        """
        matrix = Matrix.of(X)
        scores = np.empty((matrix.shape[0], self.outputs))
        err = new_err()
        what = lib.DRPS_SCORE_RAW if raw else lib.DRPS_SCORE_USUAL
        check(lib.drps_predictor_score(self._handle(), matrix.struct, what, _doubles(scores), err), err)
        return scores[:, 0] if self.outputs == 1 else scores

    def score_text(self, text: Union[str, bytes], raw: bool = False) -> np.ndarray:
        """Score lines of text in the format of the training data; CSV begins with its header line.

        Parameters
        ----------
        text : str or bytes
        raw : bool
            As of :meth:`score`.

        Returns
        -------
        numpy.ndarray, as of :meth:`score`
        """
        data = text.encode() if isinstance(text, str) else bytes(text)
        most = data.count(b"\n") + 1
        scores = np.empty((most, self.outputs))
        err, n = new_err(), ffi.new("size_t *")
        what = lib.DRPS_SCORE_RAW if raw else lib.DRPS_SCORE_USUAL
        check(lib.drps_predictor_score_text(self._handle(), data, len(data), what, _doubles(scores), most, n, err), err)
        return scores[: n[0], 0] if self.outputs == 1 else scores[: n[0]]

    def explain(self, X: Any, most: int = 10) -> list[dict]:
        """What adds up to the raw score of each sample.

        Parameters
        ----------
        X : CSR matrix, array or Matrix; or str or bytes, lines of text as of :meth:`score_text`
        most : int
            Features of a sample, the largest parts first.

        Returns
        -------
        list of dict
            Each with ``score``, ``intercept``, ``features`` (dicts with ``feature``, ``value``, ``contribution``) and ``others``.
        """
        err, out = new_err(), ffi.new("char **")
        if isinstance(X, (str, bytes)):
            data = X.encode() if isinstance(X, str) else X
            check(lib.drps_predictor_explain_text(self._handle(), data, len(data), most, out, err), err)
        else:
            check(lib.drps_predictor_explain(self._handle(), Matrix.of(X).struct, most, out, err), err)
        return [json.loads(line) for line in own_text(out).splitlines()]

    @property
    def reads(self) -> tuple[int, int]:
        """Requests that have read rows and names from disk since the model was opened, and their bytes."""
        size = ffi.new("uint64_t *")
        n = lib.drps_predictor_reads(self._handle(), size)
        return n, size[0]

    def rows(self) -> list[Row]:
        """All rows with their names."""
        found: list[Row] = []
        raised: list[BaseException] = []

        def visit(_ctx: Any, row: Any) -> int:
            name = ffi.unpack(row.name, row.name_bytes).decode("utf-8", "replace") if row.name_bytes else ""
            params = np.frombuffer(ffi.buffer(row.params, 4 * row.dim), dtype=np.float32).copy() if row.dim else np.empty(0, "f4")
            found.append(Row(ffi.string(row.table).decode(), name, params))
            return 0

        def failed(_kind: Any, why: BaseException, _trace: Any) -> None:
            raised.append(why)

        err = new_err()
        call = ffi.callback("int(void *, const struct drps_row *)", visit, error=1, onerror=failed)
        code = lib.drps_predictor_rows(self._handle(), call, ffi.NULL, err)
        if raised:
            raise raised[0]
        check(code, err)
        return found

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def names(self) -> list[str]:
        """Names of all features, users or items that have a row, in the order of rows."""
        return [row.name for row in self.rows() if row.table != "bias"]

    def row(self, name: Any) -> np.ndarray:
        """The parameters of one feature, by name: weights, then factors. NotFoundError where the model does not have it."""
        err, dim = new_err(), ffi.new("size_t *")
        text = str(name).encode()
        check(lib.drps_predictor_row(self._handle(), text, ffi.NULL, 0, dim, err), err)
        params = np.empty(dim[0], np.float32)
        check(lib.drps_predictor_row(self._handle(), text, ffi.cast("float *", ffi.from_buffer(params)), len(params), dim, err), err)
        return params

    def weights(self) -> Any:
        """All rows as a table: ``table``, ``feature``, ``weight`` or a column for each parameter.

        Returns
        -------
        pandas.DataFrame, or without pandas a dict of arrays
        """
        rows = self.rows()
        widest = max((len(r.params) for r in rows), default=0)
        params = np.full((len(rows), widest), np.nan, np.float32)
        for i, r in enumerate(rows):
            params[i, : len(r.params)] = r.params
        columns: dict[str, Any] = {"table": [r.table for r in rows], "feature": [r.name for r in rows]}
        columns.update({("weight" if widest == 1 else f"p{j}"): params[:, j] for j in range(widest)})
        try:
            import pandas
        except ImportError:
            return {k: np.asarray(v) for k, v in columns.items()}
        return pandas.DataFrame(columns)

    @property
    def items(self) -> list[str]:
        """Names of the items, of models of users and items, in the order of their numbers."""
        n = lib.drps_predictor_items(self._handle())
        return [ffi.string(lib.drps_predictor_item(self._p, i)).decode("utf-8", "replace") for i in range(n)]

    def recommend(self, users: Union[Any, Sequence[Any]], n: int = 10, seen: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The n best items of each user.

        Parameters
        ----------
        users : name or sequence of names
            As in the data; of a matrix, numbers of rows.
        n : int
        seen : CSR matrix of shape (n_users, n_items), optional
            Items that each of these users does not get.

        Returns
        -------
        items : numpy.ndarray of shape (n_users, n)
            Names of items, best first; None where there are no more.
        scores : numpy.ndarray of shape (n_users, n)
        """
        return self._best(users, n, seen, lib.drps_predictor_recommend)

    def similar(self, items: Union[Any, Sequence[Any]], n: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The n items most like each of these, by the cosine of their factors. Results as of :meth:`recommend`."""
        return self._best(items, n, False, lib.drps_predictor_similar)

    def best_numbers(self, names: Sequence[Any], n: int, seen: Any, function: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same with numbers of items in the model's order, `NO_ITEM` where there are no more."""
        if n < 1:
            raise ValueError(f"N={n}: at least one item is needed")
        numbers = np.full((len(names), n), NO_ITEM, np.uint32)
        scores = np.full((len(names), n), np.nan)
        texts, _kept = text_array([str(name).encode() for name in names])
        err = new_err()
        more: tuple = ()
        if seen is not False:
            matrix = None if seen is None else Matrix.of(seen)
            more = (ffi.NULL if matrix is None else matrix.struct,)
        into = ffi.cast("uint32_t *", ffi.from_buffer(numbers)) if numbers.size else ffi.NULL
        check(function(self._handle(), texts, len(names), *more, n, into, _doubles(scores), err), err)
        return numbers, scores

    def _best(self, names: Any, n: int, seen: Any, function: Any) -> tuple[np.ndarray, np.ndarray]:
        one = isinstance(names, (str, bytes)) or np.ndim(names) == 0
        numbers, scores = self.best_numbers([names] if one else list(names), n, seen, function)
        known = np.array(self.items + [None], dtype=object)
        items = known[np.minimum(numbers, len(known) - 1)]
        return (items[0], scores[0]) if one else (items, scores)


def _doubles(array: np.ndarray) -> Any:
    return ffi.cast("double *", ffi.from_buffer(array)) if array.size else ffi.new("double[1]")
