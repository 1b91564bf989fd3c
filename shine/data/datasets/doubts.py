"""What a user should know of numbers before a search: values that look like missing ones, few rows, no variation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.names import shown

_SPLITS = [(2, 2), (1, 2), (2, 1), (1, 1), (0, 2), (2, 0), (0, 1), (1, 0)]
"""Numbers of different marks at the lower and the upper end of a column."""


def facts(dataset: Dataset) -> list[str]:
    """Notes on the number of rows and on the target."""
    rows, target = dataset.n_rows, dataset.target
    few = [f"{rows} row{'s' * (rows > 1)}: nearly every formula fits them"] * (rows <= 3)
    return few + [f"the target is {target[0]:.9g} in all rows"] * bool((target == target[0]).all())


def doubts(dataset: Dataset) -> list[str]:
    """Notes on features, and on the target, with values that look like marks of missing ones."""
    titles = [f"column {shown(dataset.headings.get(name, name))}" for name in dataset.features]
    return doubts_about([*zip(titles, dataset.columns, strict=True), ("the target", dataset.target)])


def doubts_about(columns: Iterable[tuple[str, Floats]]) -> list[str]:
    """A line for each column with such values; columns are given with their titles."""
    found = [(title, values, marks(values)) for title, values in columns]
    return [
        f"{title}: {' and '.join(own)} in {np.isin(values, [*own.values()]).sum()} rows is far from all "
        f"other values; if it stands for a missing value, set missing_marks: [{', '.join(own)}] of data, in Python of "
        "shine.data.open_dataset, or leave these rows out"
        for title, values, own in found
        if own
    ]


@np.errstate(all="ignore")
def marks(values: Floats) -> dict[str, float]:
    """Values that look like marks of missing ones, by their texts: equal, repeated, and far outside the others.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite.
    """
    if not len(values) or max(np.count_nonzero(values == end) for end in (values.min(), values.max())) < 2:
        return {}
    distinct, counts = np.unique(values, return_counts=True)
    for low, high in _SPLITS:
        outside = np.r_[:low, len(distinct) - high : len(distinct)]
        others = np.delete(distinct, outside) if len(distinct) > low + high else distinct[:0]
        if len(others) and all(_is_mark(distinct[at], counts[at], others, len(values)) for at in outside):
            return {f"{mark:.9g}": float(mark) for mark in distinct[outside]}
    return {}


def _is_mark(value: np.float64, count: int, others: Floats, rows: int) -> bool:
    """Whether a value is far from others, which are sorted.

    A value of nines, such as -999 and 99.99, is further from them than they are from each other. Another one is twice
    as far on a scale that is logarithmic for large numbers, where no tail is long; it is in few rows, for a column that
    is 0 in many has a reason; and others are many, unlike levels of an experiment.
    """
    ends = others[[0, -1]]
    digits = f"{abs(value):.7g}".partition("e")[0].replace(".", "")
    if len(digits) > 1 and set(digits) == {"9"}:
        far, enough = 1, len(others) > 2
    else:
        scale = np.median(np.abs(others)) or 1.0
        ends, value = np.arcsinh(ends / scale), np.arcsinh(value / scale)
        far, enough = 2, len(others) > 9 and count <= 0.2 * rows
    return bool(count > 1 and enough and np.abs(ends - value).min() > far * (ends[1] - ends[0]))
