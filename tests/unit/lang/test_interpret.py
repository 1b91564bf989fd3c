"""The reference tier against Python itself and against known values."""

import math

import numpy as np
import pytest

from shine.base.errors import LoweringError
from shine.lang.forms.library import STANDARD
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.parse import parse

INT_MIN = -(2**31)


def test_the_classic_formula_truncates_in_integers_only():
    tree = parse("(2+3*b+33*(10/2)+1+3/3+a)/2")
    assert [evaluate(tree, [[100], [200]], dtype)[0] for dtype in ("int32", "int64", "float64")] == [434, 434, 434.5]


def test_integer_operators_follow_python_but_for_division():
    values = [v for v in range(-7, 8) if v]
    for a in values:
        for b in values:
            results = {op: evaluate(parse(f"a {op} b"), [[a], [b]], "int32")[0] for op in ("//", "%", "/")}
            assert results == {"//": a // b, "%": a % b, "/": int(a / b)}


def test_the_smallest_integer_by_minus_one_wraps():
    assert [int(evaluate(parse(f"a {op} b"), [[INT_MIN], [-1]], "int32")[0]) for op in ("/", "//", "%")] == [
        INT_MIN,
        INT_MIN,
        0,
    ]


@pytest.mark.parametrize("operator", ["/", "//", "%"])
def test_integer_division_by_zero_raises(operator):
    with pytest.raises(ZeroDivisionError, match="row 1"):
        evaluate(parse(f"a {operator} b"), [[1, 2], [1, 0]], "int64")


def test_conditional_and_logic_guard_integer_division():
    b = np.array([0, 2])
    assert evaluate(parse("7//b if b != 0 else -1"), [b], "int32").tolist() == [-1, 3]
    assert evaluate(parse("b != 0 and 7//b"), [b], "int32").tolist() == [0, 3]
    assert evaluate(parse("b == 0 or 7//b"), [b], "int32").tolist() == [1, 3]


@pytest.mark.parametrize("text", ["sin(a)", "a + 2.5", "a + 3000000000"])
def test_functions_without_meaning_for_integers_are_an_error(text):
    with pytest.raises(LoweringError):
        evaluate(parse(text), [[1]], "int32")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("cbrt", math.cbrt if hasattr(math, "cbrt") else np.cbrt),
        ("log1p", np.log1p),
        ("expm1", np.expm1),
        ("log2", np.log2),
        ("log10", np.log10),
    ],
)
def test_composite_functions_are_accurate_where_their_naive_form_is_not(name, function):
    x = np.concatenate([10.0 ** np.arange(-300, 300, 7), [5e-324, 1e-18, 1.0, 8.0]])
    x = x[x < 700] if name == "expm1" else x
    result = evaluate(STANDARD[name].definition, [x])
    expected = np.array([float(function(v)) for v in x])
    assert np.max(np.abs(result - expected) / np.spacing(np.abs(expected))) <= 4


def test_hypot_neither_overflows_nor_vanishes():
    result = evaluate(STANDARD["hypot"].definition, [[3.0, 1e300, 1e-300, 0.0], [4.0, 1e300, 1e-300, 0.0]])
    assert np.allclose(result, [5.0, math.sqrt(2) * 1e300, math.sqrt(2) * 1e-300, 0.0], rtol=1e-15, atol=0)


def test_protected_forms_return_their_substitute():
    assert evaluate(parse("protected_div(a, 0)"), [[3.0]]) == 1
    assert evaluate(parse("protected_log(a)"), [[0.0]]) == 0
    assert evaluate(parse("protected_sqrt(a)"), [[-4.0]]) == 2


@pytest.mark.parametrize("exponents", [np.array(0.5), np.array([0.5]), np.full(2, 0.5), np.broadcast_to(0.5, 2)])
def test_a_power_of_one_half_is_no_root_wherever_its_exponent_is_kept(exponents):
    values = REFERENCE["pow"](np.array([-np.inf, -0.0]), exponents)
    assert values.tolist() == [np.inf, 0.0]
    assert not np.signbit(values).any()


def test_a_number_has_powers_for_columns():
    assert REFERENCE["pow"](np.array(4.0), np.array([0.5, 2.0, 3.0])).tolist() == [2.0, 16.0, 64.0]
