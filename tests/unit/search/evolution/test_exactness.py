"""Few rows: a formula with nearly as many constants as rows does not end the search, however exact it is."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.evaluate.scores import Scores
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.evolution.archive import Archive

PRIMITIVES = PrimitiveSet(select(STANDARD, ("add", "mul", "sin")), ("a",))


def archive_of(text: str) -> Archive:
    """An archive with a formula that has no loss."""
    population = Population.from_trees([shine.parse(text, ("a",))], PRIMITIVES)
    return Archive.empty(PRIMITIVES, population.width).updated(population, Scores(np.zeros(1), np.ones(1), np.zeros(1)))


def test_an_exact_formula_solves_the_problem_if_there_are_rows_to_spare():
    description = DescriptionLength.with_unknown_noise(5, 0.5, 1.0)
    assert archive_of("2.0*a + 1.0").solved(1e-20, description)
    flexible = archive_of("2.5*a + 1.5*sin(3.5*a) + 0.5*sin(a)")
    assert not flexible.solved(1e-20, description)
    assert flexible.solved(1e-20, DescriptionLength.with_unknown_noise(60, 0.5, 1.0))
    assert flexible.solved(1e-20, None)


@pytest.mark.slow
def test_few_noisy_rows_do_not_end_a_search_by_chance():
    rng = np.random.default_rng(0)
    x = np.arange(1.0, 8.0)
    y = 3 * x + 0.1 * rng.normal(size=7)
    result = shine.evolve(
        x[:, None], y, primitives=["add", "mul", "div"], generations=3, population=100, seeding_members=200,
        noise="absolute",
    )  # fmt: skip
    assert result.stopped_by == "generations"
    assert result.best.expression.endswith("*x0")
