"""Linear models: logistic and softmax regression, least squares, support vector machines."""
from __future__ import annotations

import re
from typing import Any, Callable, Optional

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._base import DrpsEstimator
from ._labels import Classes, Numbers

_COMMON = """
    epochs : int, optional
        Passes over the samples. None: as many as small data need for some 2,000 steps, 3 to 200; of "lbfgs" 100 at most.
    optimizer : str
        {optimizers}
    lr : float or "auto", optional
        Learning rate. None: that of ``drps-train``; "auto" tries several on a share of the data.
    batch_size : int, optional
        Samples a step. None: that of ``drps-index``, and less where there are fewer than 5,000 samples.
    patience : int, optional
        End after so many epochs without a better loss of the held-out samples, and keep the best epoch. Not with "lbfgs".
    validation_fraction : float, optional
        Hold out this share of the samples, where `fit` is given no `eval_set`.
    scale : {{None, "auto", "standard"}}
        Dense data: "auto" standardises columns whose root mean square is above 10, "standard" all. Sparse data stay as they are.
    memory : int or str, optional
        Memory for compiling, for training and for the model in use, as in "512M". Parameters that do not fit lie on disk.
    threads : int
        With one, equal data and settings give the same model, bit for bit.
    random_state : int, RandomState or None
        Order of the samples. None is 1.
    verbose : bool
        Show progress.
    work_dir : path, optional
        Where plan and model lie, and stay. None: in a temporary folder that goes with the object.
    settings : dict, optional
        More options of ``drps-index`` and ``drps-train``: see :func:`drps.settings`.
"""
_STEPS = '"adagrad", "adam", "sgd", or "ftrl" (with `l1` for sparse weights).'
_ANY = '"lbfgs" converges to the optimum; "adagrad", "adam", "sgd" and "ftrl" step after each batch, for large data.'


def _documented(optimizers: str, scales: bool = True) -> Callable[[type], type]:
    """A decorator: the parameters that all have are put in place of COMMON."""

    def put(cls: type) -> type:
        common = _COMMON.format(optimizers=optimizers).lstrip("\n")
        if not scales:
            common = re.sub(r"    scale : .*\n        .*\n", "", common)
        cls.__doc__ = (cls.__doc__ or "").replace("    COMMON\n", common)
        return cls

    return put


class _Linear(DrpsEstimator):
    """Coefficients of a linear model."""

    _coefficients: Optional[tuple[np.ndarray, np.ndarray]] = None

    def _coefficients_of(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of shape (outputs, n_features) and intercepts, in the units of the data."""
        check_is_fitted(self, "n_iter_")
        if self._coefficients is None:
            if not hasattr(self, "n_features_in_") or self.model_.info.get("format") in ("csv", "jsonl"):
                raise AttributeError("coef_: the data have names, not columns of a matrix: model_.weights() has them")
            outputs = self.model_.outputs
            coef, intercept = np.zeros((outputs, self.n_features_in_)), np.zeros(outputs)
            for row in self.model_.rows():
                if row.table == "bias":
                    intercept[:] = row.params
                else:
                    coef[:, int(row.name)] = row.params
            if self._scaler is not None and self._scaler.shift is not None:
                coef /= self._scaler.unit
                intercept = intercept - coef @ self._scaler.shift
            self._coefficients = coef, intercept
        return self._coefficients


class _LinearClasses(Classes, _Linear):
    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (1, n_features), or (n_classes, n_features)."""
        return self._coefficients_of()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of shape (1,) or (n_classes,)."""
        return self._coefficients_of()[1]

    def _several(self) -> bool:
        return len(getattr(self, "classes_", ())) > 2


class _LinearNumbers(Numbers, _Linear):
    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (n_features,)."""
        return self._coefficients_of()[0][0]

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._coefficients_of()[1][0])


@_documented(_ANY)
class LogisticRegression(_LinearClasses):
    """Logistic regression; of several classes softmax regression.

    With "lbfgs" the objective is that of scikit-learn's class: the sum of losses, and ``1 / C`` times half the squared norm of
    the weights.

    Parameters
    ----------
    C : float
        Inverse of the strength of the L2 penalty.
    fit_intercept : bool
    class_weight : {None, "balanced"} or dict
        A dict has weights of classes.
    COMMON

    Attributes
    ----------
    classes_ : numpy.ndarray
    coef_, intercept_ : numpy.ndarray
    model_ : drps.Model
    training_ : dict
        What training did, as ``drps-train --json`` prints it.
    history_ : dict of numpy.ndarray
        Epochs as arrays.
    n_iter_ : int
        Epochs that were done.

    Examples
    --------
    >>> from drps import LogisticRegression
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool(LogisticRegression(scale="standard").fit(X, y).score(X, y) > .98)
    True
    """

    def __init__(
        self, C: float = 1.0, *, fit_intercept: bool = True, class_weight: Any = None, epochs: Optional[int] = None,
        optimizer: str = "lbfgs", lr: Any = None, batch_size: Optional[int] = None, patience: Optional[int] = None,
        validation_fraction: Optional[float] = None, scale: Optional[str] = None, memory: Any = None, threads: int = 1,
        random_state: Any = None, verbose: bool = False, work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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
        return {
            "algo": "mlr" if self._several() else "lor", "no_bias": not self.fit_intercept,
            "class_weights": self._class_weights(self.class_weight),
        }

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l2": _l2(self.C, n, self.optimizer)}

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)


def _l2(C: float, n: Optional[int], optimizer: str) -> Optional[float]:
    """The setting for a penalty 1 / C of the sum of losses. Other optimizers than lbfgs add it with every sample."""
    if not C > 0:
        raise ValueError(f"C={C!r}: it has to be above 0")
    if np.isinf(C):
        return None
    return 1.0 / C if optimizer == "lbfgs" else None if n is None else 1.0 / (C * n)


@_documented(_ANY)
class LinearRegression(_LinearNumbers):
    """Least squares with an L2 penalty: ``|y - Xw|^2 + alpha |w|^2``, as scikit-learn's Ridge has it.

    Parameters
    ----------
    alpha : float
        Strength of the penalty. It is exact with "lbfgs".
    fit_intercept : bool
    COMMON

    Attributes
    ----------
    coef_, intercept_ : numpy.ndarray
    model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import LinearRegression
    >>> X = np.arange(20.).reshape(10, 2)[:, :1]
    >>> LinearRegression().fit(X, 3 * X[:, 0] + 1).predict([[4]]).round(3)
    array([13.])
    """

    def __init__(
        self, alpha: float = 0.0, *, fit_intercept: bool = True, epochs: Optional[int] = None, optimizer: str = "lbfgs",
        lr: Any = None, batch_size: Optional[int] = None, patience: Optional[int] = None,
        validation_fraction: Optional[float] = None, scale: Optional[str] = None, memory: Any = None, threads: int = 1,
        random_state: Any = None, verbose: bool = False, work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
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
        return {"algo": "lir", "no_bias": not self.fit_intercept}

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r}: it may not be below 0")
        return {"l2": self.alpha if self.optimizer == "lbfgs" else None if n is None else self.alpha / n}


def _has_probabilities(self: Any) -> bool:
    if self.loss != "logistic":
        raise AttributeError(f"predict_proba: loss={self.loss!r} has no probabilities")
    return True


@_documented(_STEPS)
class SGDClassifier(_LinearClasses):
    """Linear classification by steps after each batch: for data and models of any size.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared-hinge"}
        "logistic" is softmax regression where there are several classes; the others are support vector machines, of several
        classes each against the rest.
    l1, l2 : float
        Penalties, added with every sample that has the feature.
    fit_intercept : bool
    class_weight : {None, "balanced"} or dict
    COMMON

    Attributes
    ----------
    classes_, coef_, intercept_, model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import SGDClassifier
    >>> X, y = np.array([[0.], [1.], [2.], [3.]]), ["low", "low", "high", "high"]
    >>> SGDClassifier(lr=.5).fit(X, y).predict([[0.], [3.]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self, loss: str = "logistic", *, l1: float = 0.0, l2: float = 0.0, fit_intercept: bool = True, class_weight: Any = None,
        epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None, batch_size: Optional[int] = None,
        patience: Optional[int] = None, validation_fraction: Optional[float] = None, scale: Optional[str] = "auto",
        memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False, work_dir: Any = None,
        settings: Optional[dict] = None,
    ) -> None:
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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

    @property
    def _even(self) -> float:  # type: ignore[override]
        return 0.5 if self.loss == "logistic" else 0.0

    def _algorithm(self) -> dict[str, Any]:
        more = {"no_bias": not self.fit_intercept, "class_weights": self._class_weights(self.class_weight)}
        if self.loss == "logistic":
            return {"algo": "mlr" if self._several() else "lor", **more}
        return {"algo": "svm", "loss": self.loss, **more}

    def _coded(self, code: np.ndarray) -> np.ndarray:
        """Several classes of a support vector machine are numbers from 10: no labels of two classes are, so they are names."""
        coded = super()._coded(code)
        return coded + 10 if self.loss != "logistic" and self._several() else coded

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l1": self.l1 or None, "l2": self.l2 or None}

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, with the logistic loss.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)


@_documented(_STEPS)
class LinearSVC(SGDClassifier):
    """Linear support vector machine; several classes each against the rest.

    Parameters
    ----------
    C : float
        Inverse of the strength of the L2 penalty of the sum of losses. Features that only some samples have are penalised less.
    loss : {"squared-hinge", "hinge"}
    fit_intercept : bool
    class_weight : {None, "balanced"} or dict
    COMMON

    Attributes
    ----------
    classes_, coef_, intercept_, model_, training_, history_, n_iter_ : as of LogisticRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import LinearSVC
    >>> X, y = np.array([[-2.], [-1.], [1.], [2.]]), [0, 0, 1, 1]
    >>> LinearSVC().fit(X, y).predict([[-3.], [3.]]).tolist()
    [0, 1]
    """

    def __init__(
        self, C: float = 1.0, *, loss: str = "squared-hinge", fit_intercept: bool = True, class_weight: Any = None,
        epochs: Optional[int] = None, optimizer: str = "adagrad", lr: Any = None, batch_size: Optional[int] = None,
        patience: Optional[int] = None, validation_fraction: Optional[float] = None, scale: Optional[str] = "auto",
        memory: Any = None, threads: int = 1, random_state: Any = None, verbose: bool = False, work_dir: Any = None,
        settings: Optional[dict] = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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
        return {"l2": _l2(self.C, n, self.optimizer)}


@_documented(_STEPS)
class SGDRegressor(_LinearNumbers):
    """Least squares by steps after each batch: for data and models of any size.

    Parameters
    ----------
    l1, l2 : float
        Penalties, added with every sample that has the feature.
    fit_intercept : bool
    COMMON

    Attributes
    ----------
    coef_, intercept_, model_, training_, history_, n_iter_ : as of LinearRegression

    Examples
    --------
    >>> import numpy as np
    >>> from drps import SGDRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> bool(SGDRegressor().fit(X, 2 * X[:, 0]).score(X, 2 * X[:, 0]) > .99)
    True
    """

    def __init__(
        self, *, l1: float = 0.0, l2: float = 0.0, fit_intercept: bool = True, epochs: Optional[int] = None,
        optimizer: str = "adagrad", lr: Any = None, batch_size: Optional[int] = None, patience: Optional[int] = None,
        validation_fraction: Optional[float] = None, scale: Optional[str] = "auto", memory: Any = None, threads: int = 1,
        random_state: Any = None, verbose: bool = False, work_dir: Any = None, settings: Optional[dict] = None,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
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
        return {"algo": "lir", "no_bias": not self.fit_intercept}

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        return {"l1": self.l1 or None, "l2": self.l2 or None, **self._rate(n)}

    def _rate(self, n: Optional[int]) -> dict[str, Any]:
        """AdaGrad's steps are as long as its rate: the usual one, 0.05, in units of the labels' spread."""
        if self.lr is not None or self.optimizer != "adagrad" or n is None or not self._spread > 0:
            return {}
        return {"lr": 0.05 * self._spread}
