"""Sections of a data set: the rows of one output and one group, over which a parameter by group is a single number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population
from shine.search.templates.composition import Composed
from shine.search.templates.template import Parameter, Template

OUTPUT = "output"
"""Name of the column that holds the number of a row's output, if a template has several."""


class Composer(Protocol):
    """Interface of a `shine.search.templates.composition.Composition` to scores and fits."""

    @property
    def template(self) -> Template: ...
    @property
    def features(self) -> tuple[str, ...]: ...
    @property
    def n_groups(self) -> int: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...
    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def offsets(self) -> tuple[int, ...]: ...
    @property
    def n_leaves(self) -> int: ...
    def composed(self, population: Population) -> tuple[Composed, ...]: ...


@dataclass(frozen=True, eq=False)
class Section:
    """Rows of one output and one group.

    Parameters
    ----------
    output, group : int
    which : ndarray of shape (n_rows,), int64
        The rows in the whole data set, in order.
    dataset : Dataset
        These rows, with the columns of composed formulas.
    """

    output: int
    group: int
    which: Indices
    dataset: Dataset


def sections_of(dataset: Dataset, composer: Composer) -> tuple[Section, ...]:
    """The sections of a data set that have rows, by output and then by group.

    Without parameters by group, there is one section for each output.
    """
    by_group = any(parameter.by_group for parameter in composer.parameters)
    groups = _numbers(dataset, composer.template.groups) if by_group else np.zeros(dataset.n_rows, np.int64)
    several = len(composer.template.outputs) > 1
    outputs = _numbers(dataset, OUTPUT) if several else np.zeros(dataset.n_rows, np.int64)
    rows = in_formulas(dataset, composer)
    if not by_group and not several:
        return (Section(0, 0, np.arange(dataset.n_rows), rows),)
    places = outputs * max(composer.n_groups, 1) + groups
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    return tuple(
        Section(int(outputs[which[0]]), int(groups[which[0]]), which, rows.take(which))
        for which in np.split(order, starts[1:])
    )


def in_formulas(dataset: Dataset, composer: Composer) -> Dataset:
    """The data set with the columns of composed formulas only."""
    return dataset.without([name for name in dataset.features if name not in composer.features])


def _numbers(dataset: Dataset, column: str | None) -> Indices:
    """A column of whole numbers."""
    assert column is not None
    numbers: Indices = dataset.columns[dataset.features.index(column)].astype(np.int64)
    return numbers


class Placement:
    """The formulas of one output, with the constants of some individuals and one group at a time.

    Parameters
    ----------
    composed : Composed
    values : ndarray of shape (n_individuals, width)
        Values of the individuals' own tapes.
    """

    def __init__(self, composed: Composed, values: Floats) -> None:
        rows, columns = np.nonzero(composed.grouped)
        self._grouped = rows, columns, composed.sources[rows, columns]
        self._values = values
        self._formulas = replace(composed.population, values=np.array(composed.population.values, order="C"))

    def of_group(self, group: int) -> Population:
        """The formulas with the constants of a group; valid until those of another group are asked for."""
        rows, columns, sources = self._grouped
        self._formulas.values[rows, columns] = self._values[rows, sources + group]
        return self._formulas


def constants_within(population: Population, sizes: Indices) -> Mask:
    """Whether each of the first nodes of each tape is a constant, shape (n_individuals, width)."""
    width = int(sizes.max(initial=0))
    found: Mask = (population.codes[:, :width] == CONSTANT) & (np.arange(width) < sizes[:, None])
    return found


def constant_ranks(population: Population) -> tuple[Indices, Indices, Indices]:
    """For every constant: individual, position on the tape, and rank among the individual's constants."""
    rows, columns = np.nonzero(constants_within(population, population.sizes))
    return rows, columns, np.arange(len(rows)) - np.searchsorted(rows, rows)
