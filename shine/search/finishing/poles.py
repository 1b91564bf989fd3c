"""Formulas with a pole near the data: they fit an outlier, not a law.

A formula with a pole between two rows is useless, however small its loss. It also hides useful formulas: those of the
same or a larger complexity with a little more loss. So a front has no formula with poles, with exceptions, because laws
of nature have poles too: a formula stays if it fits to within rounding, or if it fits so much better than everything
without poles that the data themselves speak for its poles. Less will do if its poles lie apart from the rows: where
columns are combined anew, as at n = m for 1/n**2 - 1/m**2, or beyond the rows, as at n = 2 for 1/4 - 1/n**2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shine.evaluate.domain import Domain
from shine.evaluate.domain.neighbourhood import Reach
from shine.evaluate.scores import Scores
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.models.certainty import fitted_constants, written_length
from shine.search.models.model import Model
from shine.search.problem.scaling import with_line

EARNED = 1e-4
"""A formula keeps its poles if its loss is at most this share of the least loss without poles. The share is small
because a pole at a single outlier removes most of the loss, too."""

EARNED_WITHOUT_POLES: dict[Reach, float] = {"beyond": 0.5, "between": 0.1}
"""The same for formulas without poles within some reach of the rows, compared with formulas that need no more nats:
perhaps the columns cannot be combined so, or cannot reach so far."""

BEHIND = 30.0
"""Nats behind the shortest sound description from which formulas are not looked at for poles here."""

MAY_WIN = 12.0
"""Nats by which the best formula of a complexity may be longer than the shortest description, and still be chosen after
its constants are fitted and rounded: individuals of other complexities that are not on the front are not polished."""


def individuals_to_refine(
    outcome: Outcome,
    domain: Domain,
    factor: float = 1.0,
    most: float = math.inf,
    description: DescriptionLength | None = None,
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
    description : DescriptionLength, optional
        They join only if their complexity may be the chosen one (see `MAY_WIN`); without it, all do.

    Returns
    -------
    Population, Scores
        In ascending complexity. Only the front if an exact individual ended the search.
    """
    archive = outcome.archive
    if outcome.stopped_by == "loss":
        return outcome.front, outcome.scores
    nearly = archive.nearly_on_front(factor)
    lengths = np.zeros(archive.levels) if description is None else archive.lengths(description)
    nearly = nearly[(lengths <= lengths.min() + MAY_WIN)[nearly % archive.levels]]
    looked_at: set[int] = set()
    poles: set[int] = set()
    limit = math.inf
    while True:
        new = [row for row in archive.front_rows(without=poles).tolist() if row not in looked_at]
        if not new:
            break
        looked_at.update(new)
        for length, row in sorted((float(lengths[row % archive.levels]), row) for row in new):
            if length > limit:
                break
            slope, intercept = float(archive.scores.slopes[row]), float(archive.scores.intercepts[row])
            tree = with_line(archive.individuals.tree(row), slope, intercept)
            if not domain.defines(tree):
                poles.add(row)
            else:
                limit = min(limit, length + BEHIND)
    room = int(min(max(most - len(looked_at), 0), len(nearly)))
    others = [row for row in nearly.tolist() if row not in looked_at][:room]
    rows = np.array(sorted(looked_at.union(others), key=lambda row: (row % archive.levels, row)), np.int64)
    return archive.individuals.take(rows), archive.scores.take(rows)


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

    # Looked at one by one, the best first: most comparisons need no other.
    best = sorted(models, key=lambda model: model.loss)
    least = next((model.loss for model in best if domain.defines(model.tree)), None)
    if least is None:
        return list(models)
    rows = np.count_nonzero(domain.dataset.row_weights)
    earned = []
    for model in models:
        most = max(enough, EARNED * least)
        share = _share(model.tree, domain)
        if share > 0:
            form, length = form_of(model.tree), written_length(model.tree)
            # Another version avoids the pole by an ill-determined digit: it says nothing against this one.
            shorter = (
                other.loss
                for other in best
                if written_length(other.tree) <= length and form_of(other.tree) != form and domain.defines(other.tree)
            )
            most = max(most, share * next(shorter, 0.0))
        # A formula with as many constants as rows fits any data.
        if model.loss <= most and fitted_constants(model.tree) < rows:
            earned.append(model)
    # The other versions are not needed any more.
    forms = {form_of(model.tree) for model in earned}
    earned += [model for model in models if domain.defines(model.tree) and form_of(model.tree) not in forms]
    return [model for model in models if model in earned]


def _share(tree: Tree, domain: Domain) -> float:
    """The share of the least loss of shorter formulas that a formula with poles apart from the rows may have, or 0."""
    if domain.defines(tree):
        return 0.0
    return next((share for reach, share in EARNED_WITHOUT_POLES.items() if domain.defines(tree, reach)), 0.0)


def form_of(tree: Tree) -> tuple[object, ...]:
    """The formula's tokens, whatever its constants are."""
    return tuple("constant" if token[0] == "constant" else token for token in tree.tokens)
