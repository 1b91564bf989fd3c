"""Estimators with scikit-learn's interface."""

from shine.errors import InterruptedFitWarning
from shine.estimators.classifier import SymbolicClassifier
from shine.estimators.regressor import SymbolicRegressor
from shine.estimators.transformer import SymbolicTransformer

__all__ = ["InterruptedFitWarning", "SymbolicClassifier", "SymbolicRegressor", "SymbolicTransformer"]


def __dir__() -> list[str]:
    return sorted(__all__)
