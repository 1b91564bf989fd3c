"""The data of a search with a template: texts of groups become numbers, several outputs one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.headings import frame_headings, names_of_headings
from shine.data.columns.numbers import numbers
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.opened import Opened
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
        Names of the columns in formulas, and their headings.
    """
    if template.groups is None or names is None or headings is None or template.groups not in names:
        return X, {}
    table, texts = with_numbers_for_texts(X, headings, headings[list(names).index(template.groups)])
    return table, {} if texts is None else {template.groups: texts}


def headings_by_name(X: Any, features: Sequence[str] | None) -> dict[str, str]:
    """The heading of each column by its name in formulas; empty if there are no headings.

    Parameters
    ----------
    X : array-like, data frame or Opened
    features : sequence of str, optional
        Headings of the columns of an array.
    """
    if isinstance(X, Opened):
        return dict(zip(X.source.names, X.source.headings, strict=True))
    headings = frame_headings(X) if features is None else features
    return {} if headings is None else dict(zip(names_of_headings(headings), headings, strict=True))


def with_template(
    template: Template,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    names: Sequence[str] | None,
    headings: Sequence[str] | None,
    sigma: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: Mapping[str, tuple[str, ...]] | None = None,
    beside: Mapping[str, ArrayLike] | None = None,
) -> Dataset:
    """The data set of a search with a template (see `Dataset.from_arrays`).

    Parameters
    ----------
    template : Template
    X : array-like or data frame of shape (n_rows, n_features)
        The column of groups may hold texts.
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) if the template has several outputs
    sample_weight, sigma, groups : array-like, optional
    names, headings : sequence of str, optional
        Names of the columns in formulas, and their headings.
    labels : mapping of str to tuple of str, optional
        Texts of the groups, if X has their numbers already.
    beside : mapping of str to array-like, optional
        Columns that the loss reads, of shape (n_rows,) each.

    Raises
    ------
    DataError
        If the data are invalid.
    """
    X, texts = texts_to_numbers(template, X, names, headings)
    if len(template.outputs) == 1:
        dataset = Dataset.from_arrays(X, y, sample_weight, names, sigma, groups, headings, beside)
    else:
        dataset = _stacked(len(template.outputs), X, y, (sample_weight, names, sigma, groups, headings, beside))
    return replace(dataset, labels={**(labels or {}), **texts})


def _stacked(outputs: int, X: ArrayLike, y: ArrayLike, others: tuple[Any, ...]) -> Dataset:
    """The rows once for each output, with its number in a further column.

    Outputs count alike, whatever their units: the noise of each is taken to be in proportion to its spread, unless the
    noise is known.
    """
    sample_weight, names, sigma, groups, headings, beside = others
    count = 1 if np.ndim(y) == 1 else (targets := numbers(y, "y", 2)).shape[1]
    if count != outputs:
        has = f"{count} column{'s' * (count != 1)}"
        raise DataError(f"the template has {outputs} outputs, but y has {has}; give one column per output")
    first = Dataset.from_arrays(X, targets[:, 0], sample_weight, names, sigma, groups, headings, beside)
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
    if sigma is not None:
        return stacked
    return stacked.with_deviations(np.repeat([_spread(each) for each in targets.T], first.n_rows))


def _spread(target: Floats) -> float:
    """Standard deviation of an output; 1 if it does not vary."""
    size = float(np.abs(target).max(initial=0.0)) or 1.0  # squares of huge targets would overflow
    shares = target / size
    mean = float(stable_sum(shares)) / len(target)
    return size * float(np.sqrt(stable_sum((shares - mean) ** 2) / len(target))) or 1.0
