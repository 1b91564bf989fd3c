"""The tiers that `auto` chooses between have the same bits, so that its choice only changes the time."""

from __future__ import annotations

import numpy as np
import pytest
from machine_fuzz import PRIMITIVES, random_population

import shine
from shine.evaluators.automatic import AutomaticEvaluator
from shine.fitness.losses import LOSSES
from shine.lang.population import Population

SHAPES = ((1, False), (65, True), (4099, True))
"""Rows, and whether they have weights: fewer than a vector, about a tile, several chunks of the sums."""

WRITTEN = [
    "a**2", "square(a)", "a*a", "a**3", "cube(a)", "a**b", "2**a", "(a + 1)**2.5", "a**-1", "abs(a)**0.5",
    "exp(a)*b**3", "a", "3.5", "b - b", "sqrt(a)", "1/(a - a)", "sin(a)*cos(b) + 0.1*c", "a*1e200", "a*1e-200",
]  # fmt: skip
"""Formulas as people write them, some of them constant, undefined, huge or tiny."""


def population(seed: int) -> Population:
    """Formulas as people write them, and random ones of many shapes."""
    random, _ = random_population(np.random.default_rng(seed), 6, 20)
    trees = [shine.parse(text, PRIMITIVES.features) for text in WRITTEN] + [random.tree(i) for i in range(len(random))]
    return Population.from_trees(trees, PRIMITIVES)


POPULATION = population(0)
"""The individuals of all tests."""


def data(rows: int, weighted: bool, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Features, target and weights; some values are whole numbers, some weights zero."""
    rng = np.random.default_rng(rows)
    X = np.column_stack([rng.normal(size=rows) * 2, rng.integers(-5, 6, rows), rng.uniform(0, 3, rows)]) * scale
    weights = rng.choice([0.0, 0.5, 1.0, 3.7], rows) + (np.arange(rows) == 0) if weighted else None
    return X, rng.normal(size=rows) * scale, weights


def scores(evaluator: shine.Evaluator, threshold: float = np.inf) -> list[bytes]:
    """All results of an evaluator for the individuals, as bytes."""
    found = evaluator.score(POPULATION, threshold)
    return [array.tobytes() for array in (found.losses, found.slopes, found.intercepts)]


def losses_for(rows: int) -> list[str]:
    """The losses that are defined: some divide by the target's variance."""
    return [name for name, loss in LOSSES.items() if rows > 1 or not loss.needs_variance]


@pytest.mark.parametrize(("rows", "weighted"), SHAPES)
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses_slopes_and_intercepts_have_the_same_bits_on_the_machine_and_compiled(dtype, scaling, rows, weighted):
    X, y, weights = data(rows, weighted)
    for loss in losses_for(rows):
        machine, native = (
            shine.Evaluator(X, y, loss, dtype, tier, 2, sample_weight=weights, linear_scaling=scaling)
            for tier in ("machine", "native")
        )
        assert scores(machine) == scores(native), loss
    threshold = float(np.median(machine(POPULATION)))
    assert scores(machine, threshold)[0] == scores(native, threshold)[0]
    assert machine.predict(POPULATION).tobytes() == native.predict(POPULATION).tobytes()


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("scaling", [False, True])
def test_they_agree_at_the_ends_of_the_range(scaling, scale):
    X, y, _ = data(500, False, scale)
    for loss in ("mse", "mae"):
        machine, native = (shine.Evaluator(X, y, loss, tier=t, linear_scaling=scaling) for t in ("machine", "native"))
        assert scores(machine) == scores(native), loss


@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_choice_changes_a_bit(dtype, scaling, monkeypatch):
    X, y, weights = data(300, True)
    rng = np.random.default_rng(5)
    evaluator = shine.Evaluator(X, y, "mse", dtype, "auto", sample_weight=weights, linear_scaling=scaling)
    expected = scores(evaluator)
    for share in (0.1, 0.5, 1.0):
        chosen = rng.random(len(POPULATION)) < share
        monkeypatch.setattr(AutomaticEvaluator, "_worth_compiling", lambda self, population, chosen=chosen: chosen)
        assert scores(evaluator) == expected
