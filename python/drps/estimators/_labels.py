"""Labels: classes of any values, or numbers; and predictions of each."""
from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from ._base import Samples
from ._inputs import is_files


class Classes(ClassifierMixin):
    """Labels of classification: any values, sorted in `classes_`."""

    _binary_only = False

    def _labels(self, y: np.ndarray, first: bool) -> np.ndarray:
        check_classification_targets(y)
        if first and not hasattr(self, "classes_"):
            self._set_classes(np.unique(y))
        code = np.searchsorted(self.classes_, y)
        code = np.minimum(code, len(self.classes_) - 1)
        unknown = self.classes_[code] != y
        if np.any(unknown):
            raise ValueError(f"y has the label {np.asarray(y)[unknown][0]!r}, which is none of the classes {self.classes_!r}")
        return self._coded(code)

    def _coded(self, code: np.ndarray) -> np.ndarray:
        return code.astype(np.uint8 if len(self.classes_) < 200 else np.int32)

    def _set_classes(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes; there is one class: {classes[0]!r}")
        if self._binary_only and len(classes) > 2:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        self.classes_ = classes

    def _class_weights(self, weights: Any) -> Optional[str]:
        """class_weight as the setting class-weights."""
        if weights is None or weights == "balanced" or not hasattr(self, "classes_"):
            return weights
        if not isinstance(weights, Mapping):
            raise ValueError(f"class_weight={weights!r}: it may be None, 'balanced' or a dict of classes and weights")
        unknown = [c for c in weights if c not in self.classes_]
        if unknown:
            raise ValueError(f"class_weight: {unknown[0]!r} is none of the classes {self.classes_!r}")
        codes = self._coded(np.searchsorted(self.classes_, list(weights)))
        return ",".join(f"{code}={float(w)!r}" for code, w in zip(codes, weights.values()))

    def _refuse_weights(self, labels: np.ndarray, weight: Any) -> None:
        if weight is not None and len(np.unique(labels[np.asarray(weight) > 0])) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes; one class is left: all others weigh 0")

    def _after(self, samples: Samples) -> None:
        """Of files, classes are what the model says."""
        if samples.kind != "files" or hasattr(self, "classes_"):
            return
        if self.model_.classes is not None:
            self.classes_ = np.array([_number(c) for c in self.model_.classes])
        else:
            info = self.model_.info
            self.classes_ = np.array([_number(info.get("label_negative", 0)), _number(info.get("label_positive", 1))])

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Any:
        """Train on more samples, from the model so far: one epoch, unless ``epochs`` says otherwise.

        The optimizer's state is kept, and features that came before keep their weights.

        Parameters
        ----------
        X, y, sample_weight : as of :meth:`fit`
        classes : array, optional
            All classes that will come; needed at the first call where `y` does not have all of them.

        Returns
        -------
        self
        """
        all_labels = None
        if not hasattr(self, "_folder"):
            self._forget()
            if classes is not None:
                self._set_classes(np.unique(classes))
                all_labels = self._coded(np.arange(len(self.classes_)))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} are not those of earlier calls: {self.classes_!r}")
        return self._more(X, y, sample_weight, all_labels)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: above 0 for ``classes_[1]``; of several classes one each.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._scores(X, True)

    def _probabilities(self, X: Any) -> np.ndarray:
        p = self._scores(X, False)
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each sample.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        if is_files(X):
            scores = self._scores(X, False)
            if scores.dtype.kind == "U":
                return np.array([_number(s) for s in scores])
            if scores.ndim == 2:
                return self.classes_[np.argmax(scores, axis=1)]
            return self.classes_[(scores > self._even).astype(int)]
        scores = self._scores(X, True)
        return self.classes_[np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0).astype(int)]

    _even = 0.5  # of a file's scores: between the two classes

    def _more_tags(self) -> dict:
        return {"binary_only": self._binary_only, "_xfail_checks": self._xfail}


class Numbers(RegressorMixin):
    """Labels of regression."""

    _y_checks = {"y_numeric": True}

    def _labels(self, y: np.ndarray, first: bool) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        if not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity")
        if first:
            self._spread = float(np.std(y))
        return y

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on more samples, from the model so far: one epoch, unless ``epochs`` says otherwise.

        The optimizer's state is kept, and features that came before keep their weights.

        Parameters
        ----------
        X, y, sample_weight : as of :meth:`fit`

        Returns
        -------
        self
        """
        if not hasattr(self, "_folder"):
            self._forget()
        return self._more(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The value of each sample.

        Parameters
        ----------
        X : as of :meth:`fit`

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        return self._scores(X, False)

    def _more_tags(self) -> dict:
        return {"_xfail_checks": self._xfail}


def _number(text: Any) -> Any:
    """A class's name as the number that it is, if it is one."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return text
    return int(value) if value.is_integer() else value
