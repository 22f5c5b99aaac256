"""Estimators for scikit-learn."""
from .factorization import FFMClassifier, FMClassifier, FMRegressor
from .linear import LinearRegression, LinearSVC, LogisticRegression, SGDClassifier, SGDRegressor
from .ratings import MatrixFactorization

__all__ = [
    "FFMClassifier", "FMClassifier", "FMRegressor", "LinearRegression", "LinearSVC", "LogisticRegression", "MatrixFactorization",
    "SGDClassifier", "SGDRegressor",
]
