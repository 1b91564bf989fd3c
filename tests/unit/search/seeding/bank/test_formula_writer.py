"""Written formulas have the intended values, with any set of functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Unwritable, Writer, tape

SETS = [
    ("add", "sub", "mul", "div", "sqrt", "square"),
    ("add", "mul", "inv", "neg", "sqrt"),
    ("sub", "div", "pow"),
    ("add", "sub", "mul", "div", "pow", "exp", "log"),
    ("add", "mul", "pow"),
]
COLUMNS = list(np.random.default_rng(0).uniform(0.5, 2, (3, 20)))
LEAVES = [((i + 1, 0.0),) for i in range(3)]


def writer_of(names):
    return Writer(PrimitiveSet(tuple(STANDARD[name] for name in names), ("a", "b", "c")))


def value(writer, nodes):
    formula = tape(nodes)
    return evaluate_tape(formula.codes, formula.values, writer.primitives, COLUMNS)


coefficients = st.lists(st.sampled_from([-2.5, -1.0, 0.0, 1.0, 3.0, 0.37]), min_size=3, max_size=3)


@given(st.sampled_from(SETS), coefficients, coefficients, st.sampled_from([0.0, 1.0, -4.2]), st.booleans())
def test_a_sum_with_squares_has_the_value_of_its_terms(names, factors, of_squares, intercept, shifted):
    writer = writer_of(names)
    terms = [*LEAVES, *(writer.power(leaf, 2.0) for leaf in LEAVES)]
    columns = [*COLUMNS, *(column**2 for column in COLUMNS)]
    expected = sum((f * c for f, c in zip([*factors, *of_squares], columns, strict=True)), np.full(20, intercept))
    found = value(writer, writer.linear(terms, [*factors, *of_squares], intercept, shifted=shifted))
    apart = found - expected
    assert apart == pytest.approx(apart[0] if shifted else 0.0, abs=1e-11)


exponents = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]), min_size=3, max_size=3)


@given(st.sampled_from(SETS), exponents, st.sampled_from([1.0, -1.0, 2.5]))
def test_a_product_has_the_value_of_its_factors(names, powers, coefficient):
    writer = writer_of(names)
    expected = coefficient * np.prod([c**p for c, p in zip(COLUMNS, powers, strict=True)], axis=0)
    try:
        nodes = writer.product(list(zip(LEAVES, powers, strict=True)), coefficient)
    except Unwritable:
        assert "sqrt" not in names and "pow" not in names
        return
    assert value(writer, nodes) == pytest.approx(expected, rel=1e-12)


def test_formulas_that_need_missing_functions_are_refused():
    writer = writer_of(("add", "sin"))
    for write in (
        lambda: writer.multiply(LEAVES[0], LEAVES[1]),
        lambda: writer.power(LEAVES[0], 0.5),
        lambda: writer.divide(LEAVES[0], LEAVES[1]),
        lambda: writer.call("cos", LEAVES[0]),
        lambda: writer.negate(LEAVES[0]),
    ):
        with pytest.raises(Unwritable):
            write()


@given(
    st.sampled_from(SETS),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([-2.5, 1.0, 0.37])), min_size=1, max_size=5
    ),
)
def test_a_sum_whose_terms_share_factors_has_the_value_of_its_terms(names, products):
    writer = writer_of(names)
    terms, factors, expected = [], [], np.full(20, 0.7)
    for i, j, factor in products:
        try:
            terms += [writer.multiply(LEAVES[i], LEAVES[j]), writer.divide(LEAVES[i], LEAVES[j])]
        except Unwritable:
            return
        factors += [factor, 2 * factor]
        expected = expected + factor * COLUMNS[i] * COLUMNS[j] + 2 * factor * COLUMNS[i] / COLUMNS[j]
    assert value(writer, writer.linear(terms, factors, 0.7)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
