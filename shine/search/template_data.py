"""The data of a search with a template: texts of groups become numbers, several outputs one target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from shine.data.dataset import Dataset, names_of_headings
from shine.lang.names import identifier
from shine.templates.grouping import with_numbers_for_texts
from shine.templates.template import Template


def with_template(
    template: Template,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    headings: Sequence[str] | None,
    sigma: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Dataset:
    """The data set of a search with a template (see `Dataset.from_arrays`).

    Parameters
    ----------
    template : Template
    X : array-like or data frame of shape (n_rows, n_features)
        The column of groups may hold texts.
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) if the template has several outputs
    sample_weight, sigma, groups : array-like, optional
    headings : sequence of str, optional
        Headings of the columns.

    Raises
    ------
    DataError
        If the data are invalid.
    """
    names = None if headings is None else names_of_headings(headings)
    labels = {}
    if template.groups is not None and headings is not None:
        heading = next((each for each in headings if template.groups in (each, identifier(each))), template.groups)
        X, texts = with_numbers_for_texts(X, headings, heading)
        if texts is not None:
            labels[template.groups] = texts
    dataset = Dataset.from_arrays(X, y, sample_weight, names, sigma, groups, headings)
    return replace(dataset, labels=labels)
