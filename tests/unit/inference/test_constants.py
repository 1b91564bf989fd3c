"""Which numbers of a formula are constants."""

from __future__ import annotations

import pytest

from shine.inference.constants import form_of, with_values
from shine.lang.parse import parse


@pytest.mark.parametrize(
    ("formula", "form", "values"),
    [
        ("3.21*x", "c0*x", [3.21]),
        ("2*x + 0.37", "2*x + c0", [0.37]),
        ("x**2 + 1.23*x**3", "x**2 + c0*x**3", [1.23]),
        ("x**1.5*4.2", "c0*x**1.5", [4.2]),
        ("x**1.37", "x**c0", [1.37]),
        ("pow(x, 2.0) + 11.0", "x**2 + c0", [11.0]),
        ("6.283185307179586*x", "2*pi*x", []),
        ("0.5*x*x", "0.5*x**2", []),
        ("x - 2.7*y", "x - c0*y", [2.7]),
        ("exp(x/3.3333333333333335)", "exp(c0*x)", [0.3]),
        ("(x if x < 2.5 else 0.1)", "x if x < c0 else c1", [2.5, 0.1]),
        ("2", "c0", [2.0]),
        ("0.0*x + 12.5", "0*x + c0", [12.5]),
    ],
)
def test_numbers_that_would_make_another_law_are_structure(formula, form, values):
    found = form_of(parse(formula, ["x", "y"]))
    assert (found.text, found.values.tolist()) == (form, values)


def test_all_numbers_but_whole_and_half_exponents_can_be_constants():
    found = form_of(parse("2*x**2 + 6.283185307179586*sqrt(x) - 1"), "all")
    assert (found.text, found.values.round(6).tolist()) == ("c0*x**2 + c1*sqrt(x) - c2", [2.0, 6.283185, 1.0])


def test_the_numbers_of_the_structure_are_told():
    assert form_of(parse("2*x + 0.5*y + 2*z + 1.77")).exact == (2.0, 0.5)


@pytest.mark.parametrize(("feature", "name"), [("c7", "k0"), ("c", "c0"), ("velocity", "c0")])
def test_no_feature_has_the_name_of_a_constant(feature, name):
    assert form_of(parse(f"3.3*{feature}")).names == (name,)


@pytest.mark.parametrize("formula", ["2.5*exp(-0.3*x) + 1.75", "x if x < 2.5 else 7.7*x", "-1.9*sin(3.1*x)**2.2"])
def test_values_written_back_give_the_formula(formula):
    tree = parse(formula)
    form = form_of(tree)
    assert form_of(with_values(form, form.values)).tree == form.tree
    assert with_values(form, form.values).parameters == tree.parameters


def test_constants_of_called_functions_are_structure():
    from shine.lang.functions import with_definitions
    from shine.lang.library import STANDARD

    table = with_definitions(STANDARD, "def soft(x):\n    return log(1.7 + exp(x))\n")
    assert form_of(parse("3.2*soft(x)", primitives=table)).values.tolist() == [3.2]


def test_another_choice_of_constants_is_a_value_error():
    with pytest.raises(ValueError, match="constants is 'some'; use 'fitted' or 'all'"):
        form_of(parse("2*x"), "some")
