"""Texts in the notation of paper and of Julia."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import UnsupportedSyntaxError
from shine.lang.presentation import definition
from shine.lang.vocabulary import primitive_table


@pytest.mark.parametrize(
    ("text", "same"),
    [("x^2", "x**2"), ("-x^2", "-x**2"), ("a*x^-1 + b^(1/2)", "a*x**-1 + b**(1/2)"), ("x^y^2", "x**y**2")],
)
def test_a_caret_is_a_power_with_the_binding_of_a_power(text, same):
    assert shine.parse(text) == shine.parse(same)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("(x >= 0) ? y : 0", "y if x >= 0 else 0"),
        ("x > 0 ? 1 : y > 0 ? 2 : 3", "1 if x > 0 else (2 if y > 0 else 3)"),
        ("x > 0 ? y > 0 ? 1 : 2 : 3", "(1 if y > 0 else 2) if x > 0 else 3"),
        ("max(x > 1 ? 1 : 2, 3) + (x != 0 ? sin(x)/x : 1)", "max(1 if x > 1 else 2, 3) + (sin(x)/x if x != 0 else 1)"),
        ("x > 0 && !(y > 0) || x^2 > 4", "x > 0 and not (y > 0) or x**2 > 4"),
        ("ifelse(x > 0, abs2(y), 0)", "square(y) if x > 0 else 0"),
    ],
)
def test_conditions_of_julia_are_read(text, same):
    assert shine.parse(text) == shine.parse(same)
    (table, names), (_, others) = (primitive_table([f"f(x, y) = {each}"]) for each in (text, same))
    assert names == others and table["f"].definition == shine.parse(f"def f(x, y): return {same}")


DEEP = "(" * 4000 + "x ? 1 : 2" + ")" * 4000


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x ? y", "x ?? y : 3", "(x > 0 ? 1", "x : y ? 3", "?" * 5000, DEEP[:5000], DEEP])
def test_half_a_condition_is_refused_as_it_is_written(text):
    with pytest.raises(UnsupportedSyntaxError, match=r"not a Python expression|nested too deeply"):
        shine.parse(text)


def test_a_caret_between_conditions_is_refused():
    with pytest.raises(UnsupportedSyntaxError, match="'\\^' is a power here; write != for"):
        shine.parse("(a > 1)^(b > 1)")


def test_in_a_python_function_a_caret_is_no_power():
    with pytest.raises(UnsupportedSyntaxError, match=r"'\^' is not part of the language; write \*\* for a power"):
        shine.parse("def f(x): return x^2")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("inv2(x) = 1/x^2", "def inv2(x): return 1/x**2"),
        ("f( x, y ) =\n cos(x)*1.5f-3", "def f( x, y ): return cos(x)*1.5e-3"),
        ("größe(α)=α", "def größe(α): return α"),
        ("f(x) == 1", "f(x) == 1"),
        ("sin", "sin"),
    ],
)
def test_a_short_definition_is_a_function(text, same):
    assert definition(text) == same


def test_primitives_are_given_as_short_definitions():
    table, names = primitive_table(["+", "inv(x) = 1/x", "special(x, y) = cos(x) * (x + y)"])
    assert names == ["add", "inv", "special"]
    assert shine.parse("special(a, b)", primitives=table).parameters == ("a", "b")


def test_a_guess_may_have_carets():
    X = np.random.default_rng(0).uniform(1, 5, (40, 2))
    quick = {"generations": 0, "population": 20, "seeding": 0.0}
    found = shine.evolve(X, X[:, 0] ** 2 + 1 / X[:, 1], guesses=["x0^2 + x1^-1"], **quick)
    assert found.best.loss < 1e-20
