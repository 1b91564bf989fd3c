"""Interval arithmetic: values at all points of a box lie within its bounds; boxes without doubt have only defined
values."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from helpers.markers import mostly_slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import PARAMETERS, trees

import shine
from shine.evaluate.domain.check import bounds
from shine.evaluate.domain.intervals import Interval
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

NAMES = ("a", "b", "c")
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, math.pi / 2, math.pi, 1e-300, 1e300, -1e300, 800.0]
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def random_boxes(rng: np.random.Generator, count: int, boxes: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of all sizes, around zero and away from it; some are points, some have special bounds."""
    centres = rng.normal(size=(count, boxes)) * 10.0 ** rng.uniform(-3, 3, (count, boxes))
    widths = rng.exponential(size=(count, boxes)) * 10.0 ** rng.uniform(-6, 2, (count, boxes))
    widths *= rng.random((count, boxes)) < 0.8
    ends = np.stack([centres - widths, centres + widths])
    whole = rng.random((count, boxes)) < 0.2
    ends = np.where(whole, np.rint(ends), ends)
    ends = np.where(rng.random(ends.shape) < 0.1, rng.choice(SPECIAL, ends.shape), ends)
    return ends.min(axis=0), ends.max(axis=0)


def points_within(rng: np.random.Generator, low: np.ndarray, high: np.ndarray, shares: int) -> list[np.ndarray]:
    """Points in the boxes: corners and others."""
    found = []
    for _ in range(shares):
        share = np.where(rng.random(low.shape) < 0.5, rng.integers(0, 2, low.shape), rng.random(low.shape))
        found.append(np.clip(low * (1 - share) + high * share, low, high))
    found.append(np.clip(np.rint((low + high) / 2), low, high))
    found.append(np.clip(np.zeros_like(low), low, high))
    return found


def assert_sound(tree: Tree, low: np.ndarray, high: np.ndarray, points: list[np.ndarray]) -> None:
    boxes = {name: Interval.of(a, b) for name, a, b in zip(tree.parameters, low, high, strict=True)}
    found = bounds(tree, boxes)
    lower, upper, doubtful = (np.broadcast_to(x, low.shape[1:]) for x in (found.lower, found.upper, found.doubtful))
    assert not (np.isnan(lower) | np.isnan(upper)).any()
    for point in points:
        values = evaluate(tree, list(point))
        undefined = np.isnan(values)
        wrong = (~undefined & ~((lower <= values) & (values <= upper))) | (undefined & ~doubtful)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise AssertionError(
                f"{tree}: {values[i]!r} at {point[:, i].tolist()} of [{low[:, i].tolist()}, {high[:, i].tolist()}], "
                f"not in [{lower[i]!r}, {upper[i]!r}], doubtful: {doubtful[i]}"
            )


@pytest.mark.parametrize("name", mostly_slow(STANDARD, fast=list(STANDARD)[::8]))
def test_the_values_of_a_primitive_lie_within_its_bounds(name):
    rng = np.random.default_rng(0)
    parameters = NAMES[: STANDARD[name].arity]
    tree = shine.parse(f"{name}({', '.join(parameters)})", parameters)
    low, high = random_boxes(rng, len(parameters), 20_000)
    assert_sound(tree, low, high, points_within(rng, low, high, 8))


@pytest.mark.parametrize(
    "text", ["a**2", "a**3", "a**-1", "a**-2", "a**0", "a**0.5", "2**a", "(-2)**a", "a*a", "a % 3"]
)
def test_the_values_of_a_primitive_with_a_constant_lie_within_its_bounds(text):
    rng = np.random.default_rng(1)
    low, high = random_boxes(rng, 1, 20_000)
    assert_sound(shine.parse(text, ("a",)), low, high, points_within(rng, low, high, 8))


@pytest.mark.parametrize(
    "text", ["a < b < c", "a <= b == c", "a and b or c", "min(a, b, c)", "not a", "a if b < c else a*a"]
)
def test_the_values_of_every_form_lie_within_its_bounds(text):
    rng = np.random.default_rng(2)
    low, high = random_boxes(rng, 3, 20_000)
    assert_sound(shine.parse(text, NAMES), low, high, points_within(rng, low, high, 8))


@pytest.mark.slow
@given(trees(), st.lists(st.tuples(FINITE, FINITE), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_the_values_of_a_formula_lie_within_its_bounds(tree, ends, seed):
    rng = np.random.default_rng(seed)
    low, high = random_boxes(rng, len(PARAMETERS), 50)
    low[:, 0], high[:, 0] = [min(pair) for pair in ends], [max(pair) for pair in ends]
    with np.errstate(all="ignore"):
        assert_sound(tree, low, high, points_within(rng, low, high, 4))


@pytest.mark.parametrize(
    ("text", "low", "high", "lower", "upper"),
    [
        ("a*a", -1, 2, 0, 4),
        ("(a - 1)*(a - 1)", -1, 2, 0, 4),
        ("square(a)", -3, 2, 0, 9),
        ("a**2", -1, 2, 0, 4),
        ("a**3", -2, 1, -8, 1),
        ("sin(a)", 0, 3, 0, 1),
        ("cos(a)", 1, 4, -1, math.cos(1)),
        ("abs(a)", -2, 1, 0, 2),
        ("1 if a < 3 else 1/a", 0, 2, 1, 1),
        ("1/a if a > 0.5 else 2", 0.75, 2, 0.5, 4 / 3),
        ("hypot(a, 3)", -4, 4, 3, 5),
        ("log1p(a)", -0.5, 1, -math.log(2), math.log(2)),
        ("a % 3", 4, 5, 1, 2),
        ("a // 2", 4.5, 5, 2, 2),
    ],
)
def test_bounds_are_tight_where_a_value_is_used_once_or_squared(text, low, high, lower, upper):
    found = bounds(shine.parse(text, ("a",)), {"a": Interval.of(low, high)})
    assert not found.doubtful
    assert (float(found.lower), float(found.upper)) == pytest.approx((lower, upper), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1/a", -1, 1),
        ("1/a", 0, 1),
        ("log(a)", 0, 1),
        ("log(a)", -1, 1),
        ("sqrt(a)", -1e-9, 1),
        ("tan(a)", 1, 2),
        ("asin(a)", 0, 1.5),
        ("a**0.5", -1, 1),
        ("a**-2", -1, 1),
        ("a % (a - 1)", 0, 2),
        ("log1p(a)", -1, 0),
        ("atan(1/a)", -1, 1),
    ],
)
def test_poles_and_undefined_values_leave_a_doubt(text, low, high):
    assert bounds(shine.parse(text, ("a",)), {"a": Interval.of(low, high)}).doubtful


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("log1p(a)", -0.5, 0.5),
        ("expm1(a)", -1, 1),
        ("cbrt(a)", -1, 1),
        ("sigmoid(a)", -1000, 1000),
        ("hypot(a, a)", -1, 1),
        ("aq(1, a)", -1, 1),
        ("sqrt(a*a)", -1, 1),
        ("exp(a)", -1e300, 700),
    ],
)
def test_functions_that_are_defined_leave_no_doubt(text, low, high):
    assert not bounds(shine.parse(text, ("a",)), {"a": Interval.of(low, high)}).doubtful


def test_formulas_may_be_deeper_than_the_stack():
    node: ast.expr = ast.Name("a", ast.Load())
    for _ in range(20_000):
        node = ast.UnaryOp(ast.USub(), node)
    found = bounds(Tree(("a",), node), {"a": Interval.of(-1.0, 2.0)})
    assert (float(found.lower), float(found.upper)) == (-1.0, 2.0)


def test_a_function_of_the_user_s_own_is_bounded_by_its_definition():
    def shifted_inverse(x):
        shifted = x - 2
        return 1 / shifted

    tree = shine.Population.from_sources(["shifted_inverse(a)"], ("a",), [shifted_inverse]).tree(0)
    assert bounds(tree, {"a": Interval.of([-1.0, 1.0, 3.0], [1.0, 3.0, 4.0])}).doubtful.tolist() == [False, True, False]
