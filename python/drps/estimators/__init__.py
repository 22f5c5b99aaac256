"""Estimators for scikit-learn."""
from .factorization import FFMClassifier, FMClassifier, FMRegressor
from .linear import LinearRegression, LinearSVC, LogisticRegression, SGDClassifier, SGDRegressor
from .nets import NetClassifier, NetRegressor
from .ratings import MatrixFactorization

__all__ = [
    "FFMClassifier", "FMClassifier", "FMRegressor", "LinearRegression", "LinearSVC", "LogisticRegression", "MatrixFactorization",
    "NetClassifier", "NetRegressor", "SGDClassifier", "SGDRegressor",
]
