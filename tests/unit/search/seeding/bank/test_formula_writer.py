"""Written formulas have the intended values, with any set of functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Unwritable, Writer, constant, tape, tidy

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


@given(st.sampled_from(SETS), coefficients, st.sampled_from([0.0, 1.0, -4.2]))
def test_a_sum_has_the_value_of_its_terms(names, factors, intercept):
    writer = writer_of(names)
    expected = sum((f * c for f, c in zip(factors, COLUMNS, strict=True)), np.full(20, intercept))
    assert value(writer, writer.linear(LEAVES, factors, intercept)) == pytest.approx(expected, abs=1e-12)


@given(st.sampled_from(SETS), coefficients, coefficients, st.sampled_from([0.0, 1.0, -4.2]), st.booleans())
def test_a_sum_with_squares_has_the_value_of_its_terms(names, factors, of_squares, intercept, shifted):
    writer = writer_of(names)
    terms = [*LEAVES, *(writer.power(leaf, 2.0) for leaf in LEAVES)]
    columns = [*COLUMNS, *(column**2 for column in COLUMNS)]
    expected = sum((f * c for f, c in zip([*factors, *of_squares], columns, strict=True)), np.full(20, intercept))
    found = value(writer, writer.linear(terms, [*factors, *of_squares], intercept, shifted=shifted))
    apart = found - expected
    assert apart == pytest.approx(apart[0] if shifted else 0.0, abs=1e-11)


def test_a_square_is_completed_where_that_is_shorter():
    writer = writer_of(("add", "sub", "mul", "div", "square"))
    x, squared = LEAVES[0], writer.power(LEAVES[0], 2.0)
    completed = writer.power(writer.add(x, constant(-3.0)), 2.0)
    assert writer.linear([x, squared], [-6.0, 1.0], 9.0) == completed
    assert writer.linear([x, squared], [-6.0, 1.0], 0.0, shifted=True) == completed
    assert writer.linear([x, squared], [1.0, 1.0]) == writer.add(x, squared)


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


@pytest.mark.parametrize(
    ("names", "factors", "size"),
    [
        (("mul", "div", "sqrt"), [0.5, 0.5, -0.5], 6),
        (("mul", "div", "square"), [2.0, 2.0, 0.0], 4),
        (("mul", "div"), [1.0, 1.0, -1.0], 5),
        (("mul", "inv"), [-1.0, -1.0, 0.0], 4),
        (("mul", "div", "pow"), [0.0, 0.3, 0.0], 3),
    ],
)
def test_products_are_short(names, factors, size):
    assert len(writer_of(names).product(list(zip(LEAVES, factors, strict=True)))) == size


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


def test_a_negated_difference_is_turned_around():
    writer = writer_of(("sub", "mul", "neg"))
    difference = writer.subtract(writer.multiply(LEAVES[0], LEAVES[1]), LEAVES[2])
    assert writer.negate(difference) == writer.subtract(LEAVES[2], writer.multiply(LEAVES[0], LEAVES[1]))


def test_tidy_rounds_only_numbers_that_are_whole_up_to_rounding():
    assert tidy(3 - 1e-13) == 3.0
    assert tidy(0.1 + 0.2) == 0.1 + 0.2
    assert tidy(1e-13) == 1e-13
    assert constant(2)[0] == (0, 2.0)


@pytest.mark.parametrize("exponent", [0.37, -1.6, 0.75, 0.25, 1 / 3, 2.5])
def test_any_power_can_be_written_with_exp_and_log(exponent):
    writer = writer_of(("add", "sub", "mul", "div", "sqrt", "square", "exp", "log"))
    assert value(writer, writer.power(LEAVES[0], exponent)) == pytest.approx(COLUMNS[0] ** exponent)


def test_the_power_of_an_exponential_is_one_exponential():
    writer = writer_of(("mul", "div", "exp", "log"))
    written = writer.power(writer.call("exp", writer.multiply(constant(0.5), LEAVES[0])), -0.6)
    assert written == writer.call("exp", writer.multiply(constant(-0.3), LEAVES[0]))


def test_a_constant_times_a_quotient_of_a_constant_is_one_quotient():
    writer = writer_of(("add", "mul", "div"))
    assert writer.multiply(constant(3.0), writer.divide(constant(1.0), LEAVES[0])) == writer.call(
        "div", constant(3.0), LEAVES[0]
    )


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


def test_a_factor_that_terms_share_is_written_once():
    writer = writer_of(("add", "sub", "mul", "div", "square"))
    p, t = LEAVES[:2]
    growth = writer.linear([p, writer.power(p, 2.0), writer.multiply(t, p)], [2.5, -0.3, 0.7])
    assert growth.count(p[0]) == 2
    assert len(growth) == 11
