"""Factorization machines, also field-aware ones."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._base import DrpsEstimator
from ._labels import Classes, Numbers
from .linear import _documented, _STEPS

MOST_FIELDS = 256  # that columns are taken for where nobody says which fields they are of


def fields_of_columns(fields: Any, columns: int, most: int = MOST_FIELDS) -> np.ndarray:
    """The field of each column, as the user says; None: each is a field of its own."""
    if fields is None:
        if columns > most:
            raise ValueError(f"fields: {columns} columns are too many for a field each: say which field each column is of")
        return np.arange(columns, dtype=np.int32)
    fields = np.asarray(fields)
    if fields.shape != (columns,) or fields.dtype.kind not in "iu":
        raise ValueError(f"fields: {columns} whole numbers are needed, a field for each column")
    return fields.astype(np.int32)


class _Factors(DrpsEstimator):
    _name = "fm"
    _task = "classification"

    def _algorithm(self) -> dict[str, Any]:
        return {
            "algo": self._name, "task": self._task, "factors": self.factors, "no_bias": not self.fit_intercept,
            "class_weights": self._class_weights(self.class_weight) if hasattr(self, "class_weight") else None,
        }

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l2": self.l2 or None, "init_scale": self.init_scale}


@_documented(_STEPS)
class FMClassifier(Classes, _Factors):
    """Factorization machine for two classes: a weight a feature, and products of features by factors.

    Parameters
    ----------
    factors : int
        Factors a feature.
    l2 : float
        Penalty of weights and factors, added with every sample that has the feature.
    fit_intercept : bool
    class_weight : {None, "balanced"} or dict
    init_scale : float, optional
        Factors start between minus and plus this.
    COMMON

    Attributes
    ----------
    classes_, model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import FMClassifier
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50, dtype=float); y = X[:, 0] != X[:, 1]  # no linear model learns this
    >>> FMClassifier(factors=4, lr=.1).fit(X, y).predict([[0, 1], [1, 1]]).tolist()
    [True, False]
    """

    _binary_only = True

    def __init__(
        self, factors: int = 16, *, l2: float = 0.0, fit_intercept: bool = True, class_weight: Any = None,
        init_scale: Optional[float] = None, epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None,
        batch_size: Optional[int] = None, patience: Optional[int] = None, validation_fraction: Optional[float] = None,
        scale: Optional[str] = "auto", memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False,
        work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.factors = factors
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the two classes.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples, 2)
        """
        return self._probabilities(X)


@_documented(_STEPS)
class FMRegressor(Numbers, _Factors):
    """Factorization machine for numbers: a weight a feature, and products of features by factors.

    Parameters
    ----------
    factors : int
        Factors a feature.
    l2 : float
        Penalty of weights and factors, added with every sample that has the feature.
    fit_intercept : bool
    init_scale : float, optional
        Factors start between minus and plus this.
    COMMON

    Attributes
    ----------
    model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import FMRegressor
    >>> X = np.array([[a, b] for a in (-1., 0, 1) for b in (-1., 0, 1)] * 20); y = X[:, 0] * X[:, 1]
    >>> bool(FMRegressor(factors=4, lr=.05).fit(X, y).score(X, y) > .9)
    True
    """

    _task = "regression"

    def __init__(
        self, factors: int = 16, *, l2: float = 0.0, fit_intercept: bool = True, init_scale: Optional[float] = None,
        epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None, batch_size: Optional[int] = None,
        patience: Optional[int] = None, validation_fraction: Optional[float] = None, scale: Optional[str] = "auto",
        memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False, work_dir: Any = None,
        settings: Optional[dict] = None,
    ) -> None:
        self.factors = factors
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        """AdaGrad's steps are as long as its rate: the usual one, 0.01, grows with the labels' spread, as factors are multiplied
        with its root."""
        learning = super()._learning(n)
        if self.lr is None and self.optimizer == "adagrad" and n is not None and self._spread > 0:
            learning["lr"] = 0.01 * max(1.0, self._spread)
        return learning


@_documented(_STEPS)
class FFMClassifier(FMClassifier):
    """Field-aware factorization machine for two classes: each feature has factors for every field.

    Parameters
    ----------
    factors : int
        Factors a feature, for each field.
    fields : array of shape (n_features,), optional
        The field of each column, from 0. None: each column is a field of its own, as a column of a table is. Columns of a
        DataFrame with categories are fields, too.
    normalize : bool
        Divide each sample by its length.
    l2 : float
        Penalty of weights and factors, added with every sample that has the feature.
    fit_intercept : bool
    class_weight : {None, "balanced"} or dict
    init_scale : float, optional
        Factors start between minus and plus this.
    COMMON

    Attributes
    ----------
    classes_, model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import FFMClassifier
    >>> X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]] * 50, dtype=float)
    >>> y = X[:, 0] == X[:, 2]
    >>> bool(FFMClassifier(fields=[0, 0, 1, 1]).fit(X, y).score(X, y) == 1)
    True
    """

    _name = "ffm"

    def __init__(
        self, factors: int = 4, *, fields: Any = None, normalize: bool = True, l2: float = 0.0, fit_intercept: bool = True,
        class_weight: Any = None, init_scale: Optional[float] = None, epochs: Optional[int] = None, optimizer: str = "adagrad",
        lr: Any = None, batch_size: Optional[int] = None, patience: Optional[int] = None,
        validation_fraction: Optional[float] = None, scale: Optional[str] = "auto", memory: Any = None, threads: int = 1,
        random_state: Any = None, verbose: bool = False, work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.factors = factors
        self.fields = fields
        self.normalize = normalize
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.init_scale = init_scale
        self.epochs = epochs
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.scale = scale
        self.memory = memory
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose
        self.work_dir = work_dir
        self.settings = settings

    def _algorithm(self) -> dict[str, Any]:
        return {**super()._algorithm(), "no_normalize": not self.normalize}

    def _fields(self) -> Any:
        columns = getattr(self, "n_features_in_", None)
        if columns is None:
            return None
        return fields_of_columns(self.fields, columns)
