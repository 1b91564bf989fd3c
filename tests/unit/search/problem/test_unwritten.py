"""Coefficients of 1 that nobody wrote."""

import re

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.interpret import evaluate
from shine.search.description import NATS_A_NODE
from shine.search.kinds.classes import LOG_LOSS
from shine.search.models.certainty import lengths_of
from shine.search.models.model import Model
from shine.search.problem.reference_losses import description_length
from shine.search.problem.unwritten import description_of, unwritten

FEATURES = ("a", "b", "c")
NAMES = ["add", "sub", "mul", "div", "pow", "sqrt", "exp", "log", "sin", "cos"]
PRIMITIVES = PrimitiveSet(select(STANDARD, NAMES), FEATURES)


def rows(target=lambda a, b, c: a):
    X = np.random.default_rng(0).uniform(0.5, 3, (60, 3))
    return Dataset.from_arrays(X, target(*X.T), features=FEATURES)


def counted(*texts):
    return unwritten([shine.parse(text, FEATURES) for text in texts], rows(), PRIMITIVES).tolist()


def by_differences(text):
    """The rank of differences by constants and units, less that by constants, with NumPy alone."""
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", text)]
    places = iter(range(99))
    code = re.sub(r"\d+\.\d+", lambda _: f"k[{next(places)}]", text)
    functions = {name: getattr(np, name) for name in ("sqrt", "exp", "log", "sin", "cos")}

    def at(point):
        k, (a, b, c) = point[:-3], point[-3:, None] * rows().columns
        return np.broadcast_to(eval(code, functions | {"k": k, "a": a, "b": b, "c": c}), 60)

    point = np.array([*numbers, 1.0, 1.0, 1.0])
    slopes = [(at(point + step) - at(point - step)) / 2e-6 for step in 1e-6 * np.eye(len(point))]
    own, units = slopes[: len(numbers)], [*slopes[len(numbers) :], at(point)]

    def rank(columns):
        scaled = [column / max(np.linalg.norm(column), 1e-3) for column in columns]
        return int(np.linalg.matrix_rank(np.array(scaled), 1e-5)) if columns else 0

    return rank(own + units) - rank(own)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("cos(a*a)", 2),
        ("2.0*cos(a*a)", 1),
        ("2.0*cos(1.5*a*a)", 0),
        ("a + b", 2),
        ("2.5*a + 1.3*b", 0),
        ("2.0*(a + b)", 1),
        ("5.1*a*b*sqrt(c)", 0),
        ("1.2/(a + 1.0)", 0),
        ("2.0 + log(a)", 1),
        ("exp(a + 3.0)", 1),
        ("3.3", 0),
    ],
)
def test_what_no_constant_makes_up_for_is_counted(text, count):
    assert counted(text) == [count] == [by_differences(text)]


def _grown(rng, depth):
    """The text of a random formula."""
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice(["a", "b", "c", f"{rng.uniform(0.5, 3):.3f}"]))
    if rng.random() < 0.3:
        return f"{rng.choice(['sqrt', 'exp', 'log', 'sin', 'cos'])}({_grown(rng, depth - 1)})"
    return f"({_grown(rng, depth - 1)} {rng.choice(['+', '-', '*', '/'])} {_grown(rng, depth - 1)})"


def test_random_formulas_are_counted_as_by_differences():
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        grown = {text: by_differences(text) for text in (_grown(rng, 3) for _ in range(60)) if _is_finite(text)}
    assert len(grown) > 30
    assert dict(zip(grown, counted(*grown), strict=True)) == grown


def _is_finite(text):
    values = evaluate(shine.parse(text, FEATURES), list(rows().columns), np.float64)
    return bool((np.abs(values) < 10).all())


def test_each_is_as_long_as_a_node():
    dataset = rows(lambda a, b, c: a + b + c)
    models = [Model(shine.parse(text, FEATURES), 0.1, 0.9) for text in ("5.3", "a + b", "2.5*a + b")]
    for loss, longer in (("mse", [0, 2, 1]), ("mae", [0, 2, 1]), (LOG_LOSS, [0, 0, 0])):
        with_ones, without = description_of(dataset, loss, PRIMITIVES), description_length(dataset, loss)
        found = lengths_of(models, with_ones) - lengths_of(models, without)
        assert found == pytest.approx(NATS_A_NODE * np.array(longer))


def test_a_formula_of_more_constants_and_features_than_a_fit_takes_has_none():
    assert counted(" + ".join(["a", *["b*sin(c)"] * 20]), "a + b", " + ".join(["a", *["b*sin(c)"] * 19])) == [0, 2, 3]


def test_a_formula_that_is_undefined_in_a_row_has_none():
    assert counted("a + log(a - 1.0)", "a + b") == [0, 2]
