"""Estimators with scikit-learn's interface."""

from shine.base.errors import InterruptedFitWarning
from shine.faces.estimators.classifier import SymbolicClassifier
from shine.faces.estimators.regressor import SymbolicRegressor
from shine.faces.estimators.transformer import SymbolicTransformer

__all__ = ["InterruptedFitWarning", "SymbolicClassifier", "SymbolicRegressor", "SymbolicTransformer"]


def __dir__() -> list[str]:
    return sorted(__all__)
