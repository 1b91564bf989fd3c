"""The rows as a loss takes them: its further columns, and the weights that are left for the sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.row_loss import SIGMA, WEIGHT, RowLoss
from shine.lang.forms.names import shown


def loss_columns(dataset: Dataset, kind: RowLoss) -> tuple[Floats, ...]:
    """The columns that a loss reads, each of shape (n_rows,), float64.

    Columns beside the features come before the sample weights and the standard deviations that a data set has itself.

    Raises
    ------
    DataError
        If the data have no such column.
    """
    known = dict(dataset.beside)
    for name in set(kind.columns) - known.keys():
        if name == WEIGHT:
            known[name] = dataset.sample_weights
        elif name == SIGMA and dataset.deviations is not None:
            known[name] = dataset.deviations
        else:
            has = ", ".join(map(shown, dataset.beside)) or "none"
            raise DataError(
                f"loss {shown(kind.name)} reads column {shown(name)}, which the data do not have beside the features;"
                f" there they have: {has}"
            )
    return tuple(np.ascontiguousarray(known[name], np.float64) for name in kind.columns)


def loss_rows(dataset: Dataset, kind: RowLoss) -> Dataset:
    """The data set with the weights that the errors of its rows are multiplied by.

    A function that reads the weights, or the deviations of the noise, takes care of them itself.
    """
    if SIGMA in kind.columns:
        dataset = dataset.without_deviations
    return replace(dataset, weights=None, deviations=None) if WEIGHT in kind.columns else dataset
