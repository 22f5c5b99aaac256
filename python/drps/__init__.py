"""Sparse models that need not fit the memory: drps from Python.

Functions that do what the tools do, on files and on matrices in memory::

    drps.index("clicks.libsvm", "clicks.plan", algo="lor")
    drps.train("clicks.plan", "clicks.model", memory="512M")
    model = drps.Model("clicks.model")

and estimators for scikit-learn: ``drps.LogisticRegression().fit(X, y)``.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._library import version as library_version
from ._matrix import Matrix
from ._settings import names as settings
from .errors import (
    DamagedError, DataError, Error, ExistsError, LibraryMissingError, MemoryBudgetError, NotFoundError, SettingError, StoppedError,
)
from ._history import forecast, history
from .model import Model, Row
from .progress import Progress
from .tools import describe, index, predict, recommend, train

if TYPE_CHECKING:
    from . import plot
    from .estimators import (
        FFMClassifier, FMClassifier, FMRegressor, LinearRegression, LinearSVC, LogisticRegression, MatrixFactorization,
        NetClassifier, NetRegressor, SGDClassifier, SGDRegressor,
    )

__version__ = "0.1.0"

_ESTIMATORS = (
    "FFMClassifier", "FMClassifier", "FMRegressor", "LinearRegression", "LinearSVC", "LogisticRegression", "MatrixFactorization",
    "NetClassifier", "NetRegressor", "SGDClassifier", "SGDRegressor",
)

__all__ = [
    "DamagedError", "DataError", "Error", "ExistsError", "LibraryMissingError", "Matrix", "MemoryBudgetError", "Model",
    "NotFoundError", "Progress", "Row", "SettingError", "StoppedError", "describe", "forecast", "history", "index",
    "library_version", "plot", "predict", "recommend", "settings", "train", *_ESTIMATORS,
]


def __getattr__(name: str) -> Any:
    """Estimators need scikit-learn, and plots matplotlib: they are loaded when they are asked for."""
    import importlib

    if name == "plot":
        return importlib.import_module(".plot", __name__)
    if name in _ESTIMATORS:
        try:
            module = importlib.import_module(".estimators", __name__)
        except ImportError as why:
            raise ImportError(f"drps.{name} needs scikit-learn: {why}") from why
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
