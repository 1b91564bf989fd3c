"""Formulas with poles near the data make room for formulas that can predict fresh rows.

A formula with a pole between two rows is useless, however small its loss. It also hides useful formulas: those of the
same or a larger complexity with a little more loss. So a front has no formula with poles, with exceptions, because laws
of nature have poles too: a formula stays if it fits to within rounding, or if it fits so much better than everything
without poles that the data themselves speak for its poles. Less will do if its poles lie apart from the rows: where
columns are combined anew, as at n = m for 1/n**2 - 1/m**2, or beyond the rows, as at n = 2 for 1/4 - 1/n**2.

Explosions (see `shine.evaluate.domain.Domain.explodes`) count as poles near the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from shine.evaluate.domain import Domain
from shine.evaluate.domain.neighbourhood import Reach
from shine.evaluate.fitness.scores import Scores
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.evolution.evolution import Outcome
from shine.search.models.choice import fitted_constants, written_length
from shine.search.models.model import Model
from shine.search.problem.lines import with_line

EARNED = 1e-4
"""A formula keeps its poles if its loss is at most this share of the least loss without poles. The share is small
because a pole at a single outlier removes most of the loss, too."""

EARNED_APART: dict[Reach, float] = {"beyond": 0.5, "between": 0.1}
"""The same for formulas without poles within some reach of the rows, compared with formulas that need no more nats:
perhaps the columns cannot be combined so, or cannot reach so far."""


def individuals_to_refine(
    outcome: Outcome, domain: Domain, factor: float = 1.0, most: float = math.inf
) -> tuple[Population, Scores]:
    """The front, the individuals that would be on it if those with poles were left out, and those nearly on it.

    Parameters
    ----------
    outcome : Outcome
    domain : Domain
        Domain of the data that the individuals were scored on.
    factor : float
        Individuals of up to this many times the loss of the front are nearly on it.
    most : float
        Individuals that are nearly on it join only up to this number.

    Returns
    -------
    Population, Scores
        In ascending complexity. Only the front if an exact individual ended the search.
    """
    archive = outcome.archive
    if outcome.stopped_by == "loss":
        return outcome.front, outcome.scores
    nearly = archive.nearly_on_front(factor).tolist()
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
    others = [row for row in nearly if row not in looked_at][: int(min(max(most - len(looked_at), 0), len(nearly)))]
    rows = np.array(sorted(looked_at.union(others), key=lambda row: (row % archive.levels, row)), np.int64)
    return archive.individuals.take(rows), archive.scores.take(rows)


def preferred_and_defined(
    versions: Iterable[Sequence[Model]], preferred: Callable[[Sequence[Model]], Model], domain: Domain
) -> Iterator[Model]:
    """The preferred version of each formula; if that has poles, also the preferred version without poles.

    Parameters
    ----------
    versions : iterable of sequence of Model
        Each formula before and after fitting and simplifying.
    preferred : callable
        Chooses one of several versions.
    domain : Domain
    """
    for models in versions:
        first = preferred(models)
        yield first
        if not domain.defines(first.tree):
            defined = [model for model in models if model is not first and domain.defines(model.tree)]
            if defined:
                yield preferred(defined)


def without_poles(models: Sequence[Model], enough: float, domain: Domain) -> list[Model]:
    """The models without poles near the data, and those that have earned their poles (see `EARNED`).

    Parameters
    ----------
    models : sequence of Model
        With finite losses.
    enough : float
        Loss below which two formulas are equally right.
    domain : Domain

    Returns
    -------
    list of Model
        All models if each of them has poles.
    """
    defined = [model for model in models if domain.defines(model.tree)]
    if not defined:
        return list(models)
    rows = np.count_nonzero(domain.dataset.row_weights)
    least = min(model.loss for model in defined)
    others = [(model.loss, _form(model.tree), written_length(model.tree)) for model in defined]
    earned = []
    for model in models:
        most = max(enough, EARNED * least)
        share = _share(model.tree, domain)
        if share > 0:
            form, length = _form(model.tree), written_length(model.tree)
            # Another version avoids the pole by an ill-determined digit: it says nothing against this one.
            shorter = [other_loss for other_loss, other, nats in others if nats <= length and other != form]
            most = max(most, share * min(shorter, default=0.0))
        # A formula with as many constants as rows fits any data.
        if model.loss <= most and fitted_constants(model.tree) < rows:
            earned.append(model)
    # The other versions are not needed any more.
    forms = {_form(model.tree) for model in earned}
    return [model for model in models if model in earned or (model in defined and _form(model.tree) not in forms)]


def _share(tree: Tree, domain: Domain) -> float:
    """The share of the least loss of shorter formulas that a formula with poles apart from the rows may have, or 0."""
    if domain.defines(tree):
        return 0.0
    return next((share for reach, share in EARNED_APART.items() if domain.defines(tree, reach)), 0.0)


def _form(tree: Tree) -> tuple[object, ...]:
    return tuple("constant" if token[0] == "constant" else token for token in tree.tokens)
