"""Completed skeletons have the constants of the law, and no terms that explain nothing."""

from __future__ import annotations

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, constant, tape
from shine.search.seeding.screen.skeletons import (
    ProductSkeleton,
    Rows,
    SumSkeleton,
    quotient_of_sums,
    squared_error,
    variance,
)
from shine.search.seeding.screen.target_views import exponential, power

COLUMNS = np.random.default_rng(0).uniform(1, 3, (3, 200))
X, Y, Z = COLUMNS
LEAVES = tuple(((i + 1, 0.0),) for i in range(3))
VALUES = dict(zip(LEAVES, COLUMNS, strict=True))


def writer_of(*names):
    return Writer(PrimitiveSet(tuple(STANDARD[name] for name in names), ("x", "y", "z")))


WRITER = writer_of("add", "sub", "mul", "div", "sqrt", "exp")


def completed(skeleton, target, writer=WRITER, linear_scaling=False):
    rows = Rows(COLUMNS, target, np.full(200, 1 / 200))
    return skeleton.complete(rows, VALUES, writer, linear_scaling)


def values(nodes, writer=WRITER):
    formula = tape(nodes)
    return evaluate_tape(formula.codes, formula.values, writer.primitives, list(COLUMNS))


@pytest.mark.parametrize(
    ("chain", "law"),
    [
        ((), lambda t: t),
        ((power(2.0),), np.sqrt),
        ((exponential(1.0),), np.exp),
    ],
)
def test_a_sum_after_a_chain_is_the_law(chain, law):
    target = law(0.7 * X + 0.2 * Y + 1.1)
    found = completed(SumSkeleton("sum", chain, None, LEAVES[:2]), target)
    assert values(found[0]) == pytest.approx(target)


def test_a_quotient_with_a_multiplier_is_the_law():
    target = Z * (X + 0.4) / (1 + 0.3 * Y)
    found = completed(SumSkeleton("quotient", (), LEAVES[2], LEAVES[:1], LEAVES[1:2]), target)
    assert values(found[0]) == pytest.approx(target)


def test_terms_and_intercepts_that_explain_nothing_are_left_out():
    (found,) = completed(SumSkeleton("sum", (), None, LEAVES), 2 * X + Y)
    used = {code for code, _ in found}
    assert used >= {1, 2} and 3 not in used
    assert values(found) == pytest.approx(2 * X + Y)


def test_linear_scaling_takes_the_slope_and_the_intercept():
    assert completed(SumSkeleton("sum", (), None, LEAVES[:1]), 3 * X + 7, linear_scaling=True)[0] == LEAVES[0]


def test_exponents_are_rounded_to_halves():
    target = 4 * X**2 / np.sqrt(Y)
    found = completed(ProductSkeleton("product", (), None, (), LEAVES[:2]), target * 1.001 ** np.sin(9 * X))
    assert values(found[0]) == pytest.approx(target, rel=2e-3)
    assert all(code or value in (1.0, 2.0) or value == pytest.approx(4, rel=2e-3) for code, value in found[0])


def test_real_exponents_need_pow():
    target = X**0.37
    skeleton = ProductSkeleton("product", (), None, (), LEAVES[:1])
    writer = writer_of("mul", "pow", "sqrt")
    assert values(completed(skeleton, target, writer)[-1], writer) == pytest.approx(target)
    for nodes in completed(skeleton, target):
        assert np.ptp(values(nodes) / target) > 0.01


def test_a_constant_factor_is_written_without_linear_scaling_only():
    skeleton = ProductSkeleton("product", (), None, (), LEAVES[:1])
    assert completed(skeleton, 5 * X, linear_scaling=True) == [LEAVES[0]]
    (nodes,) = completed(skeleton, 5 * X)
    assert nodes == WRITER.multiply(constant(nodes[0][1]), LEAVES[0])
    assert nodes[0][1] == pytest.approx(5)


RNG = np.random.default_rng(0)
A, B, C = RNG.uniform(1, 3, (3, 100))
WEIGHTS = RNG.uniform(0.1, 1, 100)


def test_a_sum_has_its_coefficients_and_its_intercept():
    view = 2 * A - 3 * B + 5
    assert quotient_of_sums([A, B], [], view, WEIGHTS, True) == pytest.approx([2, -3, 5])


def test_without_an_intercept_its_place_holds_0():
    assert quotient_of_sums([A], [], 2 * A, WEIGHTS, False) == pytest.approx([2, 0])


def test_a_quotient_has_the_coefficients_of_both_sums():
    view = (2 * A + 1) / (1 + 0.5 * B + 0.25 * C)
    found = quotient_of_sums([A], [B, C], view, WEIGHTS, True)
    assert found == pytest.approx([2, 1, 0.5, 0.25])
    assert squared_error(found, [A], [B, C], view, WEIGHTS) < 1e-20 * variance(view, WEIGHTS)


def test_a_divisor_without_a_constant_has_large_coefficients():
    view = (2 * A + 1) / (B + 0.5 * C)
    found = quotient_of_sums([A], [B, C], view, WEIGHTS, True)
    assert found is not None
    assert found / found[2] == pytest.approx([2, 1, 1, 0.5])
    assert abs(found[2]) > 1e8


def test_values_that_are_not_finite_have_no_solution():
    assert quotient_of_sums([np.where(A > 2, np.inf, A)], [], B, WEIGHTS, True) is None
    assert quotient_of_sums([A], [], np.where(A > 2, np.nan, B), WEIGHTS, True) is None
