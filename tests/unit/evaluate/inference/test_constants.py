"""Which numbers of a formula are constants."""

from __future__ import annotations

import pytest

from shine.evaluate.inference.constants import Held, form_of, with_values
from shine.lang.parse import parse


@pytest.mark.parametrize(
    ("formula", "form", "values"),
    [
        ("3.21*x", "c0*x", [3.21]),
        ("2*x + 10", "c0*x + c1", [2.0, 10.0]),
        ("x**2 + 1.23*x**3", "c0*x**2 + c1*x**3", [1.0, 1.23]),
        ("x**1.5*4.2", "c0*x**1.5", [4.2]),
        ("x**1.37", "c0*x**c1", [1.0, 1.37]),
        ("pow(x, 2.0) + 11.0", "c0*x**2 + c1", [1.0, 11.0]),
        ("6.283185307179586*x", "c0*x", [6.283185307179586]),
        ("0.5*x*x", "c0*x**2", [0.5]),
        ("x - 2.7*y", "c0*x - c1*y", [1.0, 2.7]),
        ("-x - 3", "c0*x - c1", [-1.0, 3.0]),
        ("x/4 - 3*y/8", "c0*x - c1*y", [0.25, 0.375]),
        ("2/(x + 1)", "c0/(c1*x + c2)", [2.0, 1.0, 1.0]),
        ("3*sin(x) + exp(-x/4)", "c0*sin(c1*x) + c2*exp(c3*x)", [3.0, 1.0, 1.0, -0.25]),
        ("2*sqrt(x + 1) - log(x)", "c0*sqrt(c1*x + c2) - c3*log(x)", [2.0, 1.0, 1.0, 1.0]),
        ("exp(x/3.3333333333333335)", "c0*exp(c1*x)", [1.0, 0.3]),
        ("(x if x < 2.5 else 0.1)", "c0*(x if x < c1 else c2)", [1.0, 2.5, 0.1]),
        ("2", "c0", [2.0]),
        ("0.0*x + 12.5", "c0*x + c1", [0.0, 12.5]),
    ],
)
def test_every_number_is_a_constant_and_every_term_has_one(formula, form, values):
    found = form_of(parse(formula, ["x", "y"]))
    assert (found.text, found.values.tolist()) == (form, values)


@pytest.mark.parametrize(
    ("formula", "exact", "form"),
    [
        ("2*x + 0.5*y + 1.77", (2, 0.5), "2*x + 0.5*y + c0"),
        ("x*y", (1,), "x*y"),
        ("x - 3", (1,), "x - c0"),
        ("10 - 0.25*x", (0.25,), "c0 - 0.25*x"),
    ],
)
def test_numbers_that_are_taken_as_exact_are_structure(formula, exact, form):
    assert form_of(parse(formula, ["x", "y"]), Held(tuple(map(float, exact)))).text == form


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["+", "*", "/"])
def test_sums_and_products_of_any_length_have_a_form(operator):
    form = form_of(parse(f" {operator} ".join(f"({number}.5 + x*y)" for number in range(300))))
    assert form.count >= 300
    assert form_of(with_values(form, form.values)).tree == form.tree


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
    from shine.lang.forms.functions import with_definitions
    from shine.lang.forms.library import STANDARD

    table = with_definitions(STANDARD, "def soft(x):\n    return log(1.7 + exp(x))\n")
    assert form_of(parse("3.2*soft(x)", primitives=table)).text == "c0*soft(c1*x)"
