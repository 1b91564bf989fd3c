"""Fits of constants at scales throughout float64's range report errors that their own predictions have."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.protocols import FirstLines
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population

FORMULAS = (
    "{a}*x0 + {b}", "{a}*exp({b}*x1)", "{a}*x0/({b} + x1)", "square({a}*x0 + {b}*x1)", "{a}*sin({b}*x0)",
    "exp({a})*x0 + {b}*x1", "{a}*x0*x1 + {b}*square(x1)", "sqrt(square({a}) + square(x0))",
)  # fmt: skip
PRIMITIVES = PrimitiveSet(
    [STANDARD[name] for name in ("add", "mul", "div", "exp", "sqrt", "square", "sin")], ("x0", "x1")
)


def somewhere(rng: np.random.Generator, shape: int | tuple[int, ...] = ()) -> np.ndarray:
    """Numbers of any exponent, every other one of an ordinary one."""
    return np.ldexp(rng.normal(size=shape) + 2, rng.integers(-1074, 1022, shape) * (rng.random(shape) < 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mse", "mae", "huber", "log_cosh"])
@pytest.mark.parametrize("seed", range(3))
def test_the_errors_of_a_fit_are_those_of_its_predictions(name, seed):
    rng = np.random.default_rng(seed)
    columns = np.ldexp(rng.normal(size=(40, 2)), rng.choice([0, -1000, -500, 500, 1000], 2))
    target = np.ldexp(rng.normal(size=40) + rng.choice([0.0, 100.0]), rng.choice([0, -400, 400]))
    weights = [None, np.exp(30 * rng.normal(size=40))][seed % 2]
    rows = Dataset.from_arrays(columns, target, sample_weight=weights)
    loss = loss_for(name, rows)
    texts = [text.format(a=float(somewhere(rng)), b=float(somewhere(rng))) for text in FORMULAS * 3]
    population = Population.from_trees([shine.parse(text, ("x0", "x1")) for text in texts], PRIMITIVES)
    lines = FirstLines(somewhere(rng, len(texts)), somewhere(rng, len(texts)), fitted=bool(seed % 3))

    fit = MachineLinearizer(rows, loss, 1).fit(population, 10, tolerance=1e-9, lines=lines)

    values = evaluator_of(rows, loss, False, "float64", "reference").predict(fit.population)
    seen = loss_rows(rows, loss.kind)
    with np.errstate(all="ignore"):
        # NumPy's functions differ from Shine's in the last bit here and there, and errors are small differences.
        exact, *near = (
            seen.row_weights * loss.kind.errors(models, seen.target, loss_columns_of(rows, loss.kind), COMPILED)
            for bit in (0, -1e-15, 1e-15)
            for models in (fit.intercepts[:, None] + fit.slopes[:, None] * (values * (1 + bit)),)
        )
        true, most = (
            np.asarray(each, np.longdouble).sum(axis=1).astype(np.float64) for each in (exact, np.max(near, 0))
        )
    some = np.isfinite(fit.errors)
    assert some.any() and np.isfinite(true[some]).all()
    slack = np.maximum(most[some] - true[some], 0)
    assert (np.abs(fit.errors[some] - true[some]) <= 1e-6 * true[some] + slack).all()


@pytest.mark.parametrize("guess", ["x1/-5.1e160*(x1*x0 + x0/(1.93 + 10.9*x1))", "1e160*(x0 + x1)"])
def test_a_guess_of_an_extreme_scale_spoils_no_search(guess):
    rows, noise = np.random.default_rng(1).uniform(0.5, 2, (60, 2)), np.random.default_rng(2).normal(size=60)
    target = rows[:, 0] / (1 + rows[:, 1]) + 0.01 * noise
    options = {"seed": 0, "population": 100, "generations": 5, "seeding": 0}
    with_guess, without = (shine.evolve(rows, target, guesses=given, **options) for given in ([guess], []))
    assert with_guess.best.r2 > without.best.r2 - 0.02
    assert not any("e1" in model.expression or "e-1" in model.expression for model in with_guess.front)
