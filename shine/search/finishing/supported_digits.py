"""Significant digits of constants that the data support.

A constant is known up to its standard error: further digits are noise. Rounding all constants to so many digits that
the predictions move little beside the errors costs next to no likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED, exp
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.lang.forms.rounding import ALL_DIGITS, rounded_tree
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.presentation import presented
from shine.search.models.model import Model

FEWEST = 2
"""Fewest digits that are shown, even of constants that the data hardly determine."""

ROWS = 1000
"""Rows that the change of the predictions is measured on."""

_FLAT = 700.0
"""Log-odds beyond which a class is certain; the exponential of more would overflow."""

Weighing = Callable[[Dataset, Floats], Floats]
"""For each row, given the predictions: the root of the log-likelihood that a change of its prediction by 1 costs."""


def with_supported_digits(
    models: Iterable[Model], dataset: Dataset, weighing: Weighing | None = None, rows: float | None = None
) -> tuple[Model, ...]:
    """The models, each with the number of digits that the rows support.

    Parameters
    ----------
    models : iterable of Model
        Formulas of the data set's features.
    dataset : Dataset
    weighing : callable, optional
        What a change costs in each row; by default that of errors as large as the model's own.
    rows : float, optional
        Effective number of rows, if the data set is a sample of them.
    """
    sample = dataset.sampled(ROWS, np.random.default_rng(0))
    weigh = by_own_errors if weighing is None else weighing
    return tuple(
        replace(model, digits=_digits(model.tree, sample, rows or dataset.effective_rows, weigh)) for model in models
    )


def by_own_errors(sample: Dataset, predictions: Floats) -> Floats:
    """Normal errors of the size that the predictions have; their mean absolute size, which outliers hardly change."""
    roots = np.sqrt(sample.row_weights / np.max(sample.row_weights))
    there = np.isfinite(predictions)
    errors = np.where(there, roots * np.abs(sample.target - predictions), 0.0)
    spread = float(stable_sum(errors)) / max(int(there.sum()), 1)
    # Error of each prediction, as a share of the largest target, that is rounding anyway.
    least = (8 * 2.0**-53) * float(np.max(np.abs(sample.target), initial=0.0))
    # The mean absolute error of normal noise is its standard deviation times sqrt(2/pi).
    return roots / (max(spread, least, float(np.finfo(np.float64).tiny)) * math.sqrt(math.pi))


def by_odds(sample: Dataset, predictions: Floats) -> Floats:
    """Log-loss of classes: its curvature is the variance of the class, for predictions of log-odds."""
    shares = 1 / (1 + exp(-np.clip(predictions, -_FLAT, _FLAT)))
    return np.sqrt(sample.row_weights / np.mean(sample.row_weights) * shares * (1 - shares) / 2)


def _digits(tree: Tree, sample: Dataset, rows: float, weigh: Weighing) -> int:
    """The least number of digits that is as good as all."""
    # Log-likelihood that rounding may cost for each constant: what an error of a third of its standard error costs.
    allowed = 0.05 * sum(kind == "constant" for kind, _ in tree.tokens[1:])
    # The sample lacks columns that no formula may use.
    written = replace(presented(tree), parameters=sample.features)
    values = partial(evaluate, columns=list(sample.columns), functions=COMPILED)
    with np.errstate(all="ignore"):
        exact = values(written)
        there = np.isfinite(exact)
        costs = np.where(there, weigh(sample, exact), 0.0)
        for digits in range(FEWEST, ALL_DIGITS):
            change = np.where(there, values(rounded_tree(written, digits)) - exact, 0.0)
            if rows * float(stable_sum((costs * change) ** 2)) <= allowed * len(exact):
                return digits
    return ALL_DIGITS
