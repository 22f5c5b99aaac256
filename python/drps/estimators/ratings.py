"""Matrix factorization: ratings, and implicit feedback such as clicks and purchases."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._matrix import Matrix
from ..model import NO_ITEM
from ._base import DrpsEstimator, Samples
from ._inputs import is_files
from .linear import _documented, _STEPS

_ALGORITHMS = {"squared": "lmf", "bpr": "bpr", "warp": "warp", "wmf": "wmf"}


class Numbering:
    """Users or items, of any hashable values, as numbers in the order in which they come."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}
        self.values: list[Any] = []

    def codes(self, values: Any, add: bool) -> np.ndarray:
        """The number of each value; of one that is not known, one more than the largest, unless it is added."""
        distinct, place = np.unique(np.asarray(values), return_inverse=True)
        codes = np.empty(len(distinct), np.int64)
        for i, value in enumerate(distinct.tolist()):
            if value not in self.number and add:
                self.number[value] = len(self.values)
                self.values.append(value)
            codes[i] = self.number.get(value, -1)
        codes[codes < 0] = len(self.values)
        return codes[place]


@_documented(_STEPS, scales=False)
class MatrixFactorization(DrpsEstimator):
    """Matrix factorization of ratings, with biases, or of implicit feedback.

    Parameters
    ----------
    factors : int
        Factors of a user and of an item.
    loss : {"squared", "bpr", "warp", "wmf"}
        "squared": predict ratings. The others take what users have chosen, and rank items: Bayesian personalised ranking,
        weighted approximate-rank pairwise loss, weighted matrix factorization.
    l2 : float
        Penalty of factors and biases, added with every rating.
    init_scale : float, optional
        Factors start between minus and plus this.
    COMMON

    Attributes
    ----------
    users_, items_ : numpy.ndarray
        Values of users and items, in the order of their numbers; of a matrix its row and column numbers.
    model_, training_, history_, n_iter_ : as of LogisticRegression

    Notes
    -----
    A pair that comes twice counts as the mean of its ratings. scikit-learn's estimator checks are of matrices of numbers; X has
    two columns of names here, which the tag ``X_types`` says.

    Examples
    --------
    >>> import numpy as np
    >>> from drps import MatrixFactorization
    >>> X = [["ann", "tea"], ["ann", "jam"], ["bob", "tea"], ["cy", "jam"]] * 10
    >>> m = MatrixFactorization(factors=2, epochs=100).fit(X, [5, 1, 5, 1] * 10)
    >>> m.predict([["ann", "jam"], ["bob", "tea"]]).round().tolist()
    [1.0, 5.0]
    """

    _estimator_type = "regressor"

    def __init__(
        self, factors: int = 16, *, loss: str = "squared", l2: float = 0.0, init_scale: Optional[float] = None,
        epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None, batch_size: Optional[int] = None,
        patience: Optional[int] = None, validation_fraction: Optional[float] = None, memory: Any = None, threads: int = 1,
        random_state: Any = None, verbose: bool = False, work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.factors = factors
        self.loss = loss
        self.l2 = l2
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    def _algorithm(self) -> dict[str, Any]:
        if self.loss not in _ALGORITHMS:
            raise ValueError(f"loss={self.loss!r}: it may be one of {', '.join(_ALGORITHMS)}")
        return {"algo": _ALGORITHMS[self.loss], "factors": self.factors}

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l2": self.l2 or None, "init_scale": self.init_scale}

    def fit(self, X: Any, y: Any = None, eval_set: Any = None) -> "MatrixFactorization":  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array or DataFrame of shape (n_ratings, 2), CSR matrix of shape (n_users, n_items), or paths of files
            Users and items, of any values; or a matrix whose entries are ratings, or say what users have chosen.
        y : array of shape (n_ratings,), optional
            Ratings; not of a matrix.
        eval_set : tuple (X, y), or a matrix, or a path, optional
            Held-out ratings.

        Returns
        -------
        self
        """
        return super().fit(X, y, None, eval_set)

    def partial_fit(self, X: Any, y: Any = None) -> "MatrixFactorization":  # type: ignore[override]
        """Train on more ratings, from the model so far: one epoch. Not of implicit feedback.

        Parameters
        ----------
        X, y : as of :meth:`fit`

        Returns
        -------
        self
        """
        if self.loss != "squared":
            raise ValueError(f"partial_fit: loss={self.loss!r} draws what users have not chosen from all items; fit all data again")
        if not hasattr(self, "_folder"):
            self._forget()
        return self._more(X, y, None)

    def _forget(self) -> None:
        super()._forget()
        for name in ("_users", "_items"):
            self.__dict__.pop(name, None)

    def _samples(self, X: Any, y: Any, weight: Any, eval_set: Any, first: bool, all_labels: Any = None) -> Samples:
        if is_files(X):
            if y is not None:
                raise ValueError("files have their ratings: leave y out")
            return Samples("files", X, None, eval_set, **({"format": "ratings"} if first else {}))
        if first:
            self._users, self._items = Numbering(), Numbering()
        ratings = self._ratings(X, y, True)
        test = None
        if eval_set is not None:
            X_t, y_t = eval_set if isinstance(eval_set, tuple) else (eval_set, None)
            test = Matrix(self._ratings(X_t, y_t, True))
        return Samples("matrix", Matrix(ratings), ratings.nnz, test)

    def _ratings(self, X: Any, y: Any, add: bool) -> sparse.csr_matrix:
        """Ratings as users x items; a CSR matrix of numbers is taken as it is."""
        if sparse.issparse(X):
            if y is not None:
                raise ValueError("the entries of a matrix are its ratings: leave y out")
            self.n_features_in_ = X.shape[1]
            for numbering, n in ((self._users, X.shape[0]), (self._items, X.shape[1])):
                numbering.codes(np.arange(n), add)
            X = X.tocsr()
            if not np.all(np.isfinite(X.data)):
                raise ValueError("Input X contains NaN or infinity")
            return X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
        users, items = self._pairs(X)
        y = np.ones(len(users)) if y is None and self.loss != "squared" else y
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = column_or_1d(y).astype(np.float64)
        if len(y) != len(users):
            raise ValueError(f"X has {len(users)} ratings, y has {len(y)}")
        if not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity")
        rows, columns = self._users.codes(users, add), self._items.codes(items, add)
        order = np.lexsort((columns, rows))
        rows, columns = rows[order], columns[order]
        shape = (len(self._users.values), len(self._items.values))
        twice = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
        if twice.any():  # the mean of what a user has said of an item
            keep = np.concatenate([[True], ~twice])
            group = np.cumsum(keep) - 1
            mean = np.bincount(group, y[order]) / np.bincount(group)
            return sparse.csr_matrix((mean, (rows[keep], columns[keep])), shape=shape)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        return sparse.csr_matrix((y[order], columns, starts), shape=shape)

    @staticmethod
    def _pairs(X: Any) -> tuple[np.ndarray, np.ndarray]:
        if hasattr(X, "iloc"):
            if X.shape[1] != 2:
                raise ValueError(f"X has {X.shape[1]} columns; two are needed: user and item")
            return X.iloc[:, 0].to_numpy(), X.iloc[:, 1].to_numpy()
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"X has the shape {X.shape}; two columns are needed: user and item")
        return X[:, 0], X[:, 1]

    @property
    def users_(self) -> np.ndarray:
        check_is_fitted(self, "n_iter_")
        return np.array(self._users.values)

    @property
    def items_(self) -> np.ndarray:
        check_is_fitted(self, "n_iter_")
        return np.array(self._items.values)

    def predict(self, X: Any) -> np.ndarray:
        """The rating, or the liking, of each pair. Of a user or an item that training has not seen what is known counts.

        Parameters
        ----------
        X : array or DataFrame of shape (n_pairs, 2), or paths of files

        Returns
        -------
        numpy.ndarray of shape (n_pairs,)
        """
        check_is_fitted(self, "n_iter_")
        if is_files(X):
            return self._file_scores(X)
        users, items = self._pairs(X)
        entries = np.empty(2 * len(users), np.int64)
        entries[0::2], entries[1::2] = self._users.codes(users, False), self._items.codes(items, False)
        columns = max(len(self._users.values), len(self._items.values)) + 1
        starts = np.arange(0, 2 * len(users) + 1, 2)
        return self.model_.score(Matrix(_rows_of(entries, starts, columns)))

    def score(self, X: Any, y: Any) -> float:
        """The coefficient of determination, R², of ratings.

        Parameters
        ----------
        X, y : as of :meth:`fit`

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        return r2_score(y, self.predict(X))

    def recommend(
        self, userid: Any, user_items: Any = None, N: int = 10, filter_already_liked_items: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best items of a user, or of each of several.

        Parameters
        ----------
        userid : value, or sequence of values
            As in training; of a matrix, numbers of rows.
        user_items : CSR matrix of shape (n_users, n_items), optional
            What these users have chosen, in the order of `userid`; columns as in `items_`.
        N : int
        filter_already_liked_items : bool
            Leave out what `user_items` has.

        Returns
        -------
        items, scores : numpy.ndarray of shape (N,) or (n_users, N)
            Items best first; where there are less than N, scores of the last are NaN.
        """
        check_is_fitted(self, "n_iter_")
        one = np.ndim(userid) == 0
        users = self._known(self._users, [userid] if one else list(userid), "user")
        seen = None
        if user_items is not None and filter_already_liked_items:
            seen = sparse.csr_matrix(user_items)
            if seen.shape[0] != len(users):
                raise ValueError(f"user_items has {seen.shape[0]} rows for {len(users)} users")
            seen = Matrix(seen if seen.dtype.kind == "f" else seen.astype(np.float32))
        return self._named(*self.model_.best_numbers(users, N, seen, self._call("recommend")), one)

    def similar_items(self, itemid: Any, N: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The items most like an item, or like each of several, by the cosine of their factors.

        Parameters
        ----------
        itemid : value, or sequence of values
        N : int

        Returns
        -------
        items, scores : as of :meth:`recommend`
        """
        check_is_fitted(self, "n_iter_")
        one = np.ndim(itemid) == 0
        items = self._known(self._items, [itemid] if one else list(itemid), "item")
        return self._named(*self.model_.best_numbers(items, N, False, self._call("similar")), one)

    @staticmethod
    def _call(name: str) -> Any:
        from .._library import lib

        return getattr(lib, "drps_predictor_" + name)

    @staticmethod
    def _known(numbering: Numbering, values: list, what: str) -> list[int]:
        values = [v.item() if hasattr(v, "item") else v for v in values]
        for value in values:
            if value not in numbering.number:
                raise KeyError(f"there was no {what} {value!r} in training")
        return [numbering.number[value] for value in values]

    def _named(self, numbers: np.ndarray, scores: np.ndarray, one: bool) -> tuple[np.ndarray, np.ndarray]:
        """Items by their values; the model's own numbers are those of its rows."""
        own = np.array([int(name.split("=")[-1]) for name in self.model_.items] or [0])
        missing = numbers == NO_ITEM
        items = self.items_[own[np.where(missing, 0, numbers)]]
        scores = np.where(missing, np.nan, scores)
        return (items[0], scores[0]) if one else (items, scores)

    @property
    def user_factors_(self) -> np.ndarray:
        """Rows of users, (n_users, 1 + factors): the bias, then factors; NaN where training has not seen the user."""
        return self._rows("user", len(self.users_))

    @property
    def item_factors_(self) -> np.ndarray:
        """Rows of items, as `user_factors_`."""
        return self._rows("item", len(self.items_))

    def _rows(self, table: str, n: int) -> np.ndarray:
        rows = [r for r in self.model_.rows() if r.table == table]
        array = np.full((n, len(rows[0].params) if rows else 0), np.nan, np.float32)
        for row in rows:
            array[int(row.name.split("=")[-1])] = row.params
        return array

    def _more_tags(self) -> dict:
        return {"X_types": ["categorical"], "requires_y": self.loss == "squared"}


def _rows_of(entries: np.ndarray, starts: np.ndarray, columns: int) -> sparse.csr_matrix:
    """Samples whose entries keep their order, which scipy would not promise."""
    csr = sparse.csr_matrix((len(starts) - 1, columns), dtype=np.float32)
    csr.data, csr.indices, csr.indptr = np.ones(len(entries), np.float32), entries, starts
    return csr
