"""What all estimators share: from X and y to a plan and a model, and back to scores."""
from __future__ import annotations

import os
import shutil
import warnings
from typing import Any, Optional

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import _settings, tools
from .._matrix import Matrix
from ..errors import SettingError
from .._history import history
from ..model import Model
from ._folder import Folder
from ._inputs import LABEL, WEIGHT, Scaler, frame_columns, frame_texts, is_files, is_mixed_frame, write_frame

SMALL = 5000  # samples; below, batches are smaller than those of drps-index, and there are more epochs
STEPS = 2000  # that small data are trained for


class Samples:
    """Samples on their way into a plan: `data` as tools.index takes it, how many there are, and settings that go with them."""

    def __init__(self, kind: str, data: Any, n: Optional[int], test: Any = None, **settings: Any) -> None:
        self.kind, self.data, self.n, self.test, self.settings = kind, data, n, test, settings


class DrpsEstimator(BaseEstimator):
    """Base of the estimators; not for use by itself."""

    _folder: Folder  # of the plan and the model; there is none before the first fit
    _scaler: Optional[Scaler]  # of matrices; None: of frames

    # ---- What a kind of model says of itself ----

    def _algorithm(self) -> dict[str, Any]:
        """Settings of drps-index that choose the model."""
        raise NotImplementedError

    def _learning(self, n: Optional[int]) -> dict[str, Any]:
        """Settings of drps-train beyond those of all; n samples, None: not known."""
        return {}

    def _labels(self, y: np.ndarray, first: bool) -> np.ndarray:
        """Labels as the library takes them."""
        raise NotImplementedError

    def _fields(self) -> Any:
        return None

    #: Checks of scikit-learn that are left out, and why.
    _xfail = {"check_sample_weights_invariance": "batches are cut by samples, so a sample of weight 0 moves others to other batches"}

    # ---- Fitting ----

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (n_samples, n_features); or a path, or a list of paths
            CSR matrices are not copied. DataFrames may have categories, texts and dates. Files are read by the C library, in
            any format of ``drps-index``; then `y` and `sample_weight` are left out.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A sample of weight n counts as n copies.
        eval_set : tuple (X, y) or (X, y, sample_weight), or a path, optional
            Held-out samples, which measure every epoch; with ``patience`` they end training.

        Returns
        -------
        self
        """
        self._forget()
        samples = self._samples(X, y, sample_weight, eval_set, True)
        self._folder = Folder(self.work_dir)
        self._run(samples, {}, self._learn(samples.n))
        return self

    def _more(self, X: Any, y: Any, sample_weight: Any, all_labels: Any = None) -> Any:
        """partial_fit; all_labels: those that will come, None: those of y."""
        first = not hasattr(self, "_folder")
        samples = self._samples(X, y, sample_weight, None, first, all_labels)
        learning = self._learn(samples.n, one_epoch=True)
        if learning.get("optimizer") in ("lbfgs", "bfgs", "dfp", "sr1", "broyden"):
            learning.update(optimizer="adagrad", l2=None, tolerance=None)
        learning.update(keep_checkpoints=True, patience=None)
        settings = {}
        if first:
            self._folder = Folder(self.work_dir)
        else:
            if not self._folder.has_plan:
                raise ValueError(
                    "partial_fit: this estimator was pickled after fit, without its data; begin with partial_fit, or fit again"
                )
            number = self._folder.number
            settings["base"] = self._folder.plan(number)
            learning["from_"] = self._folder.model_path()
        self._folder.keeps_state = True
        self._run(samples, settings, learning)
        return self

    def _forget(self) -> None:
        for name in ("_folder", "_scaler", "classes_", "n_features_in_", "feature_names_in_", "training_", "plan_", "_coefficients"):
            self.__dict__.pop(name, None)

    def _run(self, samples: Samples, index: dict, learning: dict) -> None:
        """Compile and train. After Ctrl-C the model so far is there, if there is one."""
        folder = self._folder
        number = folder.number + 1
        index = {**index, **samples.settings}
        if "base" not in index:
            index = {**self._algorithm(), **index}
        index.update(
            memory=self.memory, seed=self._seed(), batch_size=self._batch_size(samples.n), test_fraction=self.validation_fraction
        )
        mine, learn = self._own_settings()
        index.update(mine)
        learning = {**learning, **learn}
        if learning.get("patience") and samples.test is None and not any(index.get(name) for name in ("test", "test_fraction")):
            raise ValueError("patience needs held-out samples: give fit an eval_set, or set validation_fraction")
        plan, model = folder.plan(number), folder.model_path(number)
        show = bool(self.verbose)
        try:
            self.plan_ = tools.index(samples.data, plan, test=samples.test, progress=show, **index)
            self.training_ = tools.train(plan, model, progress=show, **learning)
        except KeyboardInterrupt:
            if os.path.exists(os.path.join(model, "model.json")):
                self.training_ = tools.describe(model).get("training", {})
                self._finish(number, samples)
            else:
                shutil.rmtree(plan, ignore_errors=True)
                if folder.number == 0:
                    self._forget()
            raise
        except BaseException:
            shutil.rmtree(plan, ignore_errors=True)
            if folder.number == 0:
                self._forget()
            raise
        self._finish(number, samples)

    def _finish(self, number: int, samples: Samples) -> None:
        self._folder.done(number)
        self.__dict__.pop("_coefficients", None)
        self.n_iter_ = len(self.training_.get("epochs", []))
        if self.training_.get("ended") == "epochs" and self.epochs is None:
            warnings.warn(
                f"{type(self).__name__}: {self.n_iter_} epochs have not come to the optimum; scale the data, or set more epochs",
                ConvergenceWarning, stacklevel=4,
            )
        if self.training_.get("ended") == "stalled" and not any(e["accepted"] for e in self.training_["epochs"][1:]):
            warnings.warn(
                f"{type(self).__name__}: no step was found that makes the loss smaller, so nothing was learnt; scale the data",
                ConvergenceWarning, stacklevel=4,
            )
        self._after(samples)

    def _after(self, samples: Samples) -> None:
        """A model is there: what else can be said of it."""

    def _seed(self) -> int:
        """The seed of the shuffle and of factors; 1 where random_state is None, so that a fit can be repeated."""
        if self.random_state is None:
            return 1
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state) & (2**63 - 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _batch_size(self, n: Optional[int]) -> Optional[int]:
        if self.batch_size is not None or n is None or n >= SMALL or self.optimizer == "lbfgs":
            return self.batch_size
        return max(1, min(100, n // 50))

    def _learn(self, n: Optional[int], one_epoch: bool = False) -> dict[str, Any]:
        """Settings of drps-train."""
        epochs = self.epochs
        if epochs is None and one_epoch:
            epochs = 1
        elif epochs is None and self.optimizer != "lbfgs":
            batch = self._batch_size(n) or 100
            epochs = 3 if n is None else int(np.clip(STEPS // max(1, n // batch), 3, 200))
        named = ("optimizer", "lr", "patience", "memory", "threads")
        learning = {name: getattr(self, name, None) for name in named}
        learning.update(epochs=epochs, seed=self._seed())
        if isinstance(learning["lr"], str):
            if learning["lr"] != "auto":
                raise ValueError(f"lr={learning['lr']!r}: it is a number, 'auto' or None")
            learning.update(lr=None, auto=True)
        learning.update(self._learning(n))
        return learning

    def _own_settings(self) -> tuple[dict, dict]:
        """The user's own settings, by the tool that has them."""
        index, train = _settings.names("index"), _settings.names("train")
        mine: dict[str, Any] = {}
        learn: dict[str, Any] = {}
        for name, value in (self.settings or {}).items():
            if name not in index and name not in train:
                raise SettingError(f"settings: neither drps-index nor drps-train has {name!r}")
            if name in index:
                mine[name] = value
            if name in train:
                learn[name] = value
        return mine, learn

    # ---- Inputs ----

    def _samples(self, X: Any, y: Any, weight: Any, eval_set: Any, first: bool, all_labels: Any = None) -> Samples:
        """Checked samples of whatever kind."""
        if is_files(X):
            if y is not None or weight is not None:
                raise ValueError(
                    "X is a path or a list of them, and files have their labels and weights: leave y and sample_weight out; "
                    "if these are texts of documents, make a matrix of them first, for instance by TfidfVectorizer"
                )
            test = None if eval_set is None else eval_set
            return Samples("files", X, None, test, **({} if self._fields() is None else {}))
        if is_mixed_frame(X):
            return self._frame_samples(X, y, weight, eval_set, first, all_labels)
        X, y = self._checked(X, y, first)
        weight = None if weight is None else _check_sample_weight(weight, X, dtype=X.dtype)
        labels = self._labels(y, first)
        self._refuse_weights(labels, weight)
        scaler = self._scaler = Scaler(X, self.scale) if first or self._scaler is None else self._scaler
        test = None
        if eval_set is not None:
            X_t, y_t, *w_t = self._pair(eval_set)
            X_t, y_t = self._checked(X_t, y_t, False)
            test = Matrix(scaler(X_t), self._labels(y_t, False), w_t[0] if w_t else None, self._fields())
        csr = scaler(X)
        if all_labels is not None:
            csr, labels, weight = _with_prior(csr, labels, weight, all_labels)
        return Samples("matrix", Matrix(csr, labels, weight, self._fields()), X.shape[0], test)

    def _frame_samples(self, X: Any, y: Any, weight: Any, eval_set: Any, first: bool, all_labels: Any) -> Samples:
        """A DataFrame with columns that are no numbers goes through a file of CSV."""
        self._check_feature_names(X, reset=first)
        self._check_n_features(X, reset=first)
        kinds = frame_columns(X)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = self._labels(self._checked_y(y, len(X)), first)
        if all_labels is not None and len(np.setdiff1d(all_labels, labels)):
            raise ValueError("partial_fit: the first samples of a DataFrame with categories need a sample of each class")
        weight = None if weight is None else _check_sample_weight(weight, np.empty((len(X), 1)))
        self._scaler = None
        folder = Folder(self.work_dir)  # goes with the samples
        data = os.path.join(folder.path, "data.csv")
        write_frame(data, X, labels, weight)
        test = None
        if eval_set is not None:
            X_t, y_t, *w_t = self._pair(eval_set)
            self._check_feature_names(X_t, reset=False)
            test = os.path.join(folder.path, "test.csv")
            w = np.ones(len(X_t)) if weight is not None and not w_t else (w_t[0] if w_t else None)
            write_frame(test, X_t, self._labels(self._checked_y(y_t, len(X_t)), False), w)
        settings: dict[str, Any] = {"weight": WEIGHT} if weight is not None else {}
        if first:
            settings.update(format="csv", label=LABEL, columns=kinds, header=True, separator=",")
        samples = Samples("frame", data, len(X), test, **settings)
        samples.folder = folder  # type: ignore[attr-defined]
        return samples

    @staticmethod
    def _pair(eval_set: Any) -> tuple:
        """(X, y) or (X, y, sample_weight); a list with one such pair is taken, too."""
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set: a tuple (X, y) or (X, y, sample_weight) is needed")
        return eval_set

    def _checked(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        """X and y as scikit-learn checks them."""
        X, y = self._validate_data(X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first, **self._y_checks)
        return X, self._checked_y(y, X.shape[0])

    _y_checks: dict[str, Any] = {}

    def _checked_y(self, y: Any, n: int) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        if len(y) != n:
            raise ValueError(f"X has {n} samples, y has {len(y)}")
        return y

    def _refuse_weights(self, labels: np.ndarray, weight: Any) -> None:
        if weight is not None and not np.any(weight > 0):
            raise ValueError("sample_weight: no sample weighs more than 0")

    # ---- Scores ----

    def _scores(self, X: Any, raw: bool) -> np.ndarray:
        """Scores of the model, of a matrix, a frame or files."""
        check_is_fitted(self, "n_iter_")
        if is_files(X):
            return self._file_scores(X)
        if is_mixed_frame(X) or (getattr(self, "_scaler", None) is None and hasattr(X, "columns")):
            self._check_feature_names(X, reset=False)
            self._check_n_features(X, reset=False)
            parts = [self.model_.score_text(text, raw) for text in frame_texts(X)]
            return np.concatenate(parts) if parts else np.empty(0)
        return self.model_.score(self._matrix(X), raw)

    def _matrix(self, X: Any) -> Matrix:
        if hasattr(self, "n_features_in_"):
            X = self._validate_data(X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scaler = getattr(self, "_scaler", None)
        return Matrix(X if scaler is None else scaler(X), fields=self._fields())

    def _file_scores(self, X: Any) -> np.ndarray:
        """Scores that the library writes for files: numbers, or texts where the model has names of classes."""
        with_names = self.model_.classes is not None
        folder = Folder()
        out = os.path.join(folder.path, "scores")
        names = self.model_.info.get("loss") == "softmax"
        tools.predict(self._folder.model_path(), X, out, memory=self.memory, probabilities=True if names else None)
        if with_names and not names:
            with open(out, encoding="utf-8") as file:
                return np.array(file.read().splitlines())
        return np.loadtxt(out, ndmin=2 if names else 1, skiprows=1 if names else 0, delimiter="\t")

    @property
    def model_(self) -> Model:
        """The model: :class:`drps.Model`."""
        check_is_fitted(self, "n_iter_")
        return self._folder.model(self.memory)

    @property
    def model_path_(self) -> str:
        """The model's folder, for the tools. It goes with the estimator, unless `work_dir` says where it lies."""
        check_is_fitted(self, "n_iter_")
        return self._folder.model_path()

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """Epochs as arrays: ``train_loss``, ``test_loss`` ..."""
        check_is_fitted(self, "n_iter_")
        return history(self.training_)

    def explain(self, X: Any, most: int = 10) -> list[dict]:
        """What adds up to the raw score of each sample, as :meth:`drps.Model.explain`.

        Features of a matrix are named by `feature_names_in_` where there are such names. Values are those after scaling.

        Parameters
        ----------
        X : as of :meth:`fit`, but for paths
        most : int
            Features of a sample, the largest parts first.

        Returns
        -------
        list of dict
        """
        check_is_fitted(self, "n_iter_")
        if is_mixed_frame(X):
            return [row for text in frame_texts(X) for row in self.model_.explain(text, most)]
        rows = self.model_.explain(self._matrix(X), most)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            for feature in (f for row in rows for f in row["features"]):
                feature["feature"] = names[int(feature["feature"])]
        return rows


def _with_prior(csr: Any, labels: np.ndarray, weight: Any, all_labels: np.ndarray) -> tuple:
    """Empty samples of the labels that have not come yet, behind the others, so that all are known. Entries are not copied.

    Of two labels there are as many of the missing one as of the other: the intercept, which begins at the log-odds, then begins
    at 0. Of more labels intercepts begin at 0; one sample is enough, which weighs next to nothing.
    """
    missing = np.setdiff1d(all_labels, labels)
    if not len(missing):
        return csr, labels, weight
    n, columns = csr.shape
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    if len(all_labels) == 2:
        more, weighs = np.repeat(missing, n), weight
    else:
        more, weighs = missing, np.full(len(missing), 1e-6)
    starts = np.concatenate([csr.indptr, np.full(len(more), csr.indptr[-1], csr.indptr.dtype)])
    longer = sparse.csr_matrix((csr.data, csr.indices, starts), shape=(n + len(more), columns), copy=False)
    return longer, np.concatenate([labels, more.astype(labels.dtype)]), np.concatenate([weight, weighs])
