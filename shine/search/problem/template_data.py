"""The data of a search with a template: texts of groups become numbers, several outputs one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.datasets.training import Loaded
from shine.data.user_data import TrainingArrays, UserData
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.grouping import with_numbers_for_texts
from shine.search.templates.template import Template


def texts_to_numbers(
    template: Template, X: Any, names: Sequence[str] | None, headings: Sequence[str] | None
) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """A table with numbers in the column of groups, and the texts that they number, by the name of the column.

    Parameters
    ----------
    template : Template
    X : array-like or data frame of shape (n_rows, n_features)
    names, headings : sequence of str, optional
        Names of the columns in formulas, and their headings; by default ``x0, x1, ...``.
    """
    if names is None and headings is None:
        with suppress(ValueError, IndexError):  # no table, as its own check tells
            names = headings = [f"x{place}" for place in range(np.shape(X)[1])]
    if template.groups is None or names is None or headings is None or template.groups not in names:
        return X, {}
    table, texts = with_numbers_for_texts(X, headings, headings[list(names).index(template.groups)])
    return table, {} if texts is None else {template.groups: texts}


def training_data(data: UserData, template: Template | None) -> Loaded:
    """The data set of a search, and how it came from its file (see `with_template`).

    A `DataError` or `TypeError` if the data are invalid.
    """
    if data.is_source:
        return data.loaded(None if template is None else template.groups)
    arrays = data.arrays()
    return Loaded(arrays.dataset() if template is None else with_template(template, arrays))


def with_template(
    template: Template, arrays: TrainingArrays, labels: Mapping[str, tuple[str, ...]] | None = None
) -> Dataset:
    """The data set of a search with a template; a `DataError` if the data are invalid.

    Parameters
    ----------
    template : Template
    arrays : TrainingArrays
        The column of groups may hold texts. The target has a column for each output if there are several.
    labels : mapping of str to tuple of str, optional
        Texts of the groups, if X has their numbers already.
    """
    table, texts = texts_to_numbers(template, arrays.X, arrays.names, arrays.headings)
    arrays = replace(arrays, X=table)
    dataset = arrays.dataset() if len(template.outputs) == 1 else _stacked(len(template.outputs), arrays)
    return replace(dataset, labels={**(labels or {}), **texts})


def _stacked(outputs: int, arrays: TrainingArrays) -> Dataset:
    """The rows once for each output, with its number in a further column.

    Outputs count alike, whatever their units: the noise of each is taken to be in proportion to its spread, unless the
    noise is known.
    """
    count = 1 if np.ndim(arrays.y) == 1 else (targets := numbers(arrays.y, "y", 2)).shape[1]
    if count != outputs:
        has = f"{count} column{'s' * (count != 1)}"
        raise DataError(f"the template has {outputs} outputs, but y has {has}; give one column per output")
    first, *_ = [replace(arrays, y=target).dataset() for target in targets.T]
    if OUTPUT in first.features:
        raise DataError(f"a column is called {OUTPUT!r}, which numbers the outputs of a template; rename it")
    again = np.tile(np.arange(first.n_rows), outputs)
    rows, number = first.take(again), np.repeat(np.arange(outputs, dtype=np.float64), first.n_rows)
    stacked = replace(
        rows,
        columns=np.vstack([rows.columns, number]),
        target=np.ascontiguousarray(targets.T).ravel(),
        features=(*rows.features, OUTPUT),
    )
    if arrays.sigma is not None:
        return stacked
    return stacked.with_deviations(np.repeat([_spread(each) for each in targets.T], first.n_rows))


def _spread(target: Floats) -> float:
    """Standard deviation of an output; 1 if it does not vary."""
    size = float(np.abs(target).max(initial=0.0)) or 1.0  # squares of huge targets would overflow
    shares = target / size
    mean = float(stable_sum(shares)) / len(target)
    return size * float(np.sqrt(stable_sum((shares - mean) ** 2) / len(target))) or 1.0
