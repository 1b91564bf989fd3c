"""Folds: parts of the rows, each of which is kept back once to judge what was learned from the others."""

from __future__ import annotations

import re

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Mask
from shine.data.datasets.dataset import Dataset

FOLD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
"""The first or a later one of so many folds: ``1/5``."""


def fold_problem(fold: str) -> str | None:
    """The problem with a fold's text; None if it names one."""
    match = FOLD.fullmatch(fold)
    if match and 1 <= int(match[1]) <= int(match[2]) and int(match[2]) >= 2:
        return None
    return f"{fold!r} is no fold; write 1/5 for the first of five"


def kept_back_by(dataset: Dataset, fold: str) -> Mask:
    """Whether a fold keeps a row back. Groups of rows stay together; the folds are the same for every seed.

    Parameters
    ----------
    dataset : Dataset
        All rows.
    fold : str
        ``2/5`` is the second of five.

    Returns
    -------
    ndarray of shape (n_rows,), bool

    Raises
    ------
    DataError
        If there are fewer rows, or groups, than folds.
    """
    number, count = map(int, fold.split("/"))
    units = dataset.groups if dataset.groups is not None else np.arange(dataset.n_rows)
    many = int(units.max()) + 1
    if many < count:
        raise DataError(f"{count} folds need as many {'groups' if dataset.groups is not None else 'rows'}, not {many}")
    places = np.random.default_rng(0).permutation(many)
    return places[units] % count == number - 1
