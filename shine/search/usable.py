"""Formulas that fresh rows can be predicted with come first: as individuals to refine, and as models to show.

A formula with a pole between two rows is no use, however small its loss, and it hides those that are: formulas of the
same or of a larger complexity and a little more loss. So a front has none, with one exception. Laws of nature have
poles too: what fits to within rounding stays, and so does what fits so much better than everything without poles that
the data themselves speak for them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from shine.domain import Domain
from shine.fitness.scores import Scores
from shine.gp.evolution import Outcome
from shine.lang.population import Population
from shine.lang.tape import application
from shine.lang.tree import Tree
from shine.search.model import Model

EARNED = 1e-4
"""Share of the least loss without poles that earns a formula its poles. It is small: a pole at one outlier takes away
most of the loss, too."""


def individuals_to_refine(outcome: Outcome, domain: Domain) -> tuple[Population, Scores]:
    """The front, and the individuals that would be on it if those with poles were not.

    Parameters
    ----------
    outcome : Outcome
    domain : Domain
        Of the data that the individuals were scored on.

    Returns
    -------
    Population, Scores
        In ascending complexity. Only the front if its best individual ended the search, being exact.
    """
    archive = outcome.archive
    if outcome.stopped_by == "loss":
        return outcome.front, outcome.scores
    looked_at: set[int] = set()
    poles: set[int] = set()
    while True:
        new = [row for row in archive.front_rows(without=poles).tolist() if row not in looked_at]
        if not new:
            break
        looked_at.update(new)
        for row in new:
            slope, intercept = float(archive.scores.slopes[row]), float(archive.scores.intercepts[row])
            if not domain.defines(with_line(archive.individuals.tree(row), slope, intercept)):
                poles.add(row)
    rows = np.array(sorted(looked_at), np.int64)
    return archive.individuals.take(rows), archive.scores.take(rows)


def preferred_and_defined(
    versions: Iterable[Sequence[Model]], preferred: Callable[[Sequence[Model]], Model], domain: Domain
) -> Iterator[Model]:
    """Of the versions of each formula the preferred one, and if it has poles, the preferred one without.

    Parameters
    ----------
    versions : iterable of sequence of Model
        One formula before and after fitting and simplifying.
    preferred : callable
    domain : Domain
    """
    for models in versions:
        first = preferred(models)
        yield first
        if not domain.defines(first.tree):
            defined = [model for model in models if model is not first and domain.defines(model.tree)]
            if defined:
                yield preferred(defined)


def usable(models: Sequence[Model], enough: float, domain: Domain) -> list[Model]:
    """The models without poles in the neighbourhood of the data, and those that have earned theirs.

    Parameters
    ----------
    models : sequence of Model
        Of finite losses.
    enough : float
        Loss below which two formulas are equally right.
    domain : Domain

    Returns
    -------
    list of Model
        All models if each has poles.
    """
    defined = [domain.defines(model.tree) for model in models]
    if not any(defined):
        return list(models)
    least = min(model.loss for model, fine in zip(models, defined, strict=True) if fine)
    allowed, rows = max(enough, EARNED * least), np.count_nonzero(domain.dataset.row_weights)
    # With as many nodes as rows, a formula fits whatever they are.
    return [
        model
        for model, fine in zip(models, defined, strict=True)
        if fine or (model.loss <= allowed and model.tree.size <= rows)
    ]


def with_line(tree: Tree, slope: float, intercept: float) -> Tree:
    """A formula with a slope and an intercept written into it; itself if one of them is not finite."""
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        return tree
    node = tree.result
    if slope != 1:
        node = application("mul", [ast.Constant(slope), node])
    if intercept != 0:
        node = application("add" if intercept > 0 else "sub", [node, ast.Constant(abs(intercept))])
    return replace(tree, result=node)
