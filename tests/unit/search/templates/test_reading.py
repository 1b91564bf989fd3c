"""Templates as users write them."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import shine
from shine.base.errors import UnsupportedSyntaxError
from shine.search.templates.reading import template, with_names


def test_text_says_functions_parameters_and_groups():
    law = template("f(a, b)*exp(-k[group]*t) + g(t)", unknown={"f": ["a", "b"], "g": ["t"]}, groups="group")
    assert [(each.name, each.arguments) for each in law.unknowns] == [("f", ("a", "b")), ("g", ("t",))]
    assert [(each.name, each.by_group) for each in law.parameters] == [("k", True)]
    assert (law.groups, set(law.columns)) == ("group", {"a", "b", "t", "group"})


def test_all_of_it_is_found_in_the_text_alone():
    said = template("f(a, b)*exp(-k[group]*t) + g(t)", unknown={"f": ["a", "b"], "g": ["t"]}, groups="group")
    found = template("f(a, b)*exp(-k[group]*t) + g(t)")
    assert (found.unknowns, found.parameters, found.columns) == (said.unknowns, said.parameters, said.columns)


def test_a_python_function_is_the_same_as_its_text():
    @shine.template(parameters={"k": (0, None)})
    def law(t, n):
        u = f(t)  # noqa: F821
        return u * exp(-k * n)  # noqa: F821

    text = template("def law(t, n):\n    u = f(t)\n    return u*exp(-k*n)", parameters={"k": (0, None)})
    assert law.outputs == text.outputs and law.parameters == text.parameters
    assert law.parameters[0].bounds == (0, math.inf) and law.columns == ("t", "n")


def test_dotted_names_of_libraries_are_known():
    assert template("np.exp(f(t)) + math.sqrt(t)").outputs == template("exp(f(t)) + sqrt(t)").outputs


@pytest.mark.parametrize(
    ("loop", "plain"),
    [
        ("sum(f(x[i]) for i in range(3))", "f(x0) + f(x1) + f(x2)"),
        ("sum([f(a), f(b)])", "f(a) + f(b)"),
        ("sum(f(x) for x in (a, b))", "f(a) + f(b)"),
        ("prod(f(x)**i for i, x in enumerate([a, b]))", "f(a)**0 * f(b)**1"),
        ("max(f(x[i - 1]) for i in range(1, 3))", "max(f(x0), f(x1))"),
        ("sum(f(x[i] - x[j]) for i in range(2) for j in range(2) if i != j)", "f(x0 - x1) + f(x1 - x0)"),
        ("sum(w*f(u) for u, w in zip([a, b], [2, 3]))", "2*f(a) + 3*f(b)"),
        ("def law(a):\n    s = 0\n    for i in range(2):\n        s += f(a*i)\n    return s",
         "def law(a):\n    s = 0\n    s += f(a*0)\n    s += f(a*1)\n    return s"),
        ("sum(D(f, i)(a, b) for i in range(2))", "D(f, 0)(a, b) + D(f, 1)(a, b)"),
    ],
)  # fmt: skip
def test_loops_are_written_out(loop, plain):
    assert template(loop).outputs == template(plain).outputs


def test_derivatives_are_named_by_their_arguments():
    law = template("D(f, 'v')(a, b) + D(D(f, 0), 1)(a, b)", unknown={"f": ["u", "v"]})
    assert set(law.calls.values()) == {("f", (1,)), ("f", (0, 1))}


def test_several_outputs_share_what_they_call():
    law = template("def law(t):\n    u = f(t)\n    return u*k, D(f, 0)(t)")
    assert [len(tree.assignments) for tree in law.outputs] == [1, 1]
    short = template(lambda t: (f(t) * k, D(f, 0)(t)))  # noqa: F821
    assert [str(tree) for tree in short.outputs] == ["f(t)*k", "D0_f(t)"]
    assert str(law.outputs[1].result.func.id) == "D0_f"


def test_arguments_that_differ_from_call_to_call_get_plain_names():
    law = template("f(a) + f(b) + h(a, a) + h(b, 2*a)")
    assert [each.arguments for each in law.unknowns] == [("x",), ("x0", "x1")]


def test_parameters_have_bounds_values_and_starts():
    law = template("f(t)*a + b*c + d", parameters={"a": (0, 2), "b": 3, "c": {"integer": True, "start": 2}})
    a, b, c, d = law.parameters
    assert (a.bounds, a.first, b.value, c.integer, c.first, d.first) == ((0, 2), 1, 3, True, 2, 1)


@pytest.mark.parametrize(("low", "high"), [(2, None), (None, -1), (5, 6), (-3, -2), (0.1, 0.2), (1.5, 2.5)])
@pytest.mark.parametrize("integer", [False, True])
def test_a_parameter_starts_within_its_bounds(low, high, integer):
    if integer and (low, high) == (0.1, 0.2):
        return
    (found,) = template("f(t)*a", parameters={"a": {"bounds": (low, high), "integer": integer}}).parameters
    assert (low is None or found.first >= low) and (high is None or found.first <= high)
    assert not integer or found.first == int(found.first)


def test_known_functions_of_the_user_are_no_unknown_ones():
    def bend(x):
        return x * x + 1

    law = template("f(bend(t)) + bend(t)", functions=[bend])
    assert [each.name for each in law.unknowns] == ["f"] and law.unknowns[0].arguments == ("x",)
    assert template("f(t)*twice(t)", functions=["def twice(x): return 2*x"]).outputs[0].functions["twice"].definition


def test_a_mapping_is_a_template_as_in_yaml():
    given = {"formula": "f(t)*k[g]", "unknown": {"f": ["t"]}, "parameters": {"k": [0, None]}, "shrinkage": True}
    law = template(given)
    assert (law.groups, law.shrinkage, law.parameters[0].bounds) == ("g", True, (0, math.inf))
    assert len(template({"formula": ["f(a)", "f(b)"]}).outputs) == 2


def test_templates_are_copied():
    law = template("f(a)*k[g] + D(f, 0)(a)", unknown={"f": {"arguments": ["a"], "primitives": ["add", "mul"]}})
    for other in (copy.deepcopy(law), pickle.loads(pickle.dumps(law))):
        assert other.outputs == law.outputs and other.unknowns == law.unknowns and other.calls == law.calls


WRONG = {
    "a*erf(t)": "Shine has no erf",
    "a*asinh(t)": r"write sign\(x\)",
    "f(t": "was never closed",
    "": "is empty",
    "f(t)*k[0.5]": "column of groups, or a whole number",
    "f(t)*k[g] + c[h]": "one column of groups",
    "f(t)*k[g] + k": r"write k\[g\]",
    "f(t) + f(t, a)": "f takes 1 argument, not 2",
    "f(t, x=1)": "no keyword",
    "f()*t": "has no arguments",
    "D(f, 2)(a, b)": "0 to 1",
    "D(f)(a)": r"D\(f, 0\)",
    "D(f, 0)": "needs arguments",
    "D(sin, 0)(a)": "a known function",
    "sum(f(x[i]) for i in range(n))": "known beforehand",
    "sum(f(x) for x in y)": "a loop goes over",
    "sum(f(x[i]) for i in range(2000))": "more than 1000 terms",
    "sum(f(x[i]) for i in range(0))": "no terms",
    "sum(f(a) for a, b in [t, u])": "does not fit",
    "sum(f(a*i) for i in range(2) if a > 1)": "known beforehand",
    "f(t)*x[-1]": "whole number",
    "(f(t),)": "without a comma",
    "f(t).real": "attribute",
    "add*f(t)": "'add' is the name of a function",
    "f*f(t)": "'f' is an unknown function",
    "D0_f*D(f, 0)(t)": "'D0_f' is an unknown function",
    "def y(t):\n  while t: pass\n  return f(t)": "while",
    "def y(t, *u):\n  return f(t)": r"plain names",
    "def y(t):\n  if t > 0:\n    return f(t), t\n  return f(t)": "same number of outputs",
    "def y(t):\n  k = 1\n  return f(t)*k[g]": "assign to another name",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_is_no_template_is_refused_in_one_line(text, message):
    with pytest.raises(UnsupportedSyntaxError, match=message) as refused:
        template(text)
    assert "\n" not in str(refused.value)


def test_the_error_names_the_place_in_the_users_file():
    def law(t):
        return f(t) * k[0.5]  # noqa: F821

    with pytest.raises(UnsupportedSyntaxError, match=r"test_reading\.py, line \d+, column \d+: template law:"):
        template(law)


OPTIONS = [
    ({"unknown": {"sin": ["t"]}}, "a known function"),
    ({"unknown": {"f": ["t"], "h": ["t"]}}, "does not call 'h'"),
    ({"unknown": {"g": ["t"]}}, "neither a known function"),
    ({"unknown": []}, "listed: none"),
    ({"unknown": {"f": {"argument": ["t"]}}}, "allowed are arguments"),
    ({"unknown": {"f": ["t", "t"]}}, "twice"),
    ({"unknown": {"f": {"max_size": 0}}}, "max_size is a whole number"),
    ({"unknown": {"f": {"primitives": "add"}}}, "primitives is a list"),
    ({"unknown": {"f": {"constraints": {"limit": {}}}}}, "allowed are limits"),
    ({"unknown": {"f": {"constraints": {"limits": {"sin": -1}}}}}, "limits"),
    ({"unknown": 3}, "mapping"),
    ({"parameters": {"q": 1}}, "no parameter 'q'"),
    ({"parameters": {"k": (3, 1)}}, "not below"),
    ({"parameters": {"k": (1, 2, 3)}}, "two numbers"),
    ({"parameters": {"k": "x"}}, "fixed value, bounds"),
    ({"parameters": {"k": {"bound": 1}}}, "allowed are bounds"),
    ({"parameters": {"k": {"bounds": (0, 1), "start": 2}}}, "not within"),
    ({"parameters": {"k": {"integer": True, "bounds": (0.2, 0.8)}}}, "no whole number"),
    ({"parameters": {"k": {"integer": True, "value": 0.5}}}, "whole number"),
    ({"parameters": {"k": float("nan")}}, "is a number"),
    ({"shrinkage": True}, "by group"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_wrong_options_are_refused_in_one_line(options, message):
    with pytest.raises((TypeError, ValueError, UnsupportedSyntaxError), match=message) as refused:
        template("f(t)*k", **options)
    assert "\n" not in str(refused.value)


HEADINGS = {
    "stress_MPa": "stress (MPa)", "T_K": "T [K]", "T_K_2": "T", "site_id": "site id", "cost": "cost €", "a": "a",
    "b": "b", "a_b": "a-b", "x_1": "x 1", "x_1_2": "max x 1", "n2": "2", "面积": "面积 (m²)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("f(stress (MPa), a)", "f(stress_MPa, a)"),
        ("k[site id]*f(T [K])", "k[site_id]*f(T_K)"),
        ("f(`stress (MPa)`)", "f(stress_MPa)"),
        ("f(max x 1) + g(x 1)", "f(x_1_2) + g(x_1)"),
        ("f(面积 (m²))**2", "f(面积)**2"),
        ("f(a)*2", "f(a)*2"),
        ("f(`a-b`)", "f(a_b)"),
        ("f(a - b)", "f(a - b)"),
    ],
)
def test_a_heading_becomes_the_name_of_its_column(text, read):
    assert with_names(text, HEADINGS) == read


def test_functions_and_keywords_are_headings_in_backticks_only():
    headings = {"class_": "class", "if_": "if", "sin_": "sin", "%a_": "%a", "t": "t"}
    assert with_names("k[`class`]*f(`sin`) + g(`if`)", headings) == "k[class_]*f(sin_) + g(if_)"
    assert with_names("sin(t) if t > 0 else f(`sin`)", headings) == "sin(t) if t > 0 else f(sin_)"
    assert with_names("f(%a) + f(t)", {"a": "%a", "a_2": "%a b", "t": "t"}) == "f(a) + f(t)"
    assert with_names("f(%ab)", {"a": "%a"}) == "f(%ab)"


def test_headings_are_read_in_mappings_too():
    given = {"formula": ["f(T [K])", "g(cost €)"], "groups": "site id"}
    assert with_names(given, HEADINGS) == {"formula": ["f(T_K)", "g(cost)"], "groups": "site_id"}


def test_a_heading_that_is_a_formula_of_other_columns_is_refused_with_the_name_to_write():
    with pytest.raises(UnsupportedSyntaxError, match=r"'a-b' is the heading .* write a_b for the column"):
        with_names("f(a-b)", HEADINGS)


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["evolve", "estimator"])
def test_a_search_takes_headings(fit):
    x = np.random.default_rng(0).uniform(1, 3, 40)
    frame, template = pd.DataFrame({"stress (MPa)": x, "dose %": x[::-1]}), "c*f(stress (MPa)) + g(dose %)"
    if fit == "evolve":
        best = shine.evolve(frame, x**2, template=template, generations=0, population=20).best
    else:
        model = shine.SymbolicRegressor(template=template, generations=0, population_size=20, random_state=0)
        best = model.fit(frame, x**2).best_
    assert best.functions["f"].tree.parameters == ("stress_MPa",)


def test_the_repr_of_a_template_is_short():
    assert repr(shine.template("f(a, b)*exp(-k[group]*t)")) == "Template('f(a, b) * exp(-k[group] * t)')"
    assert len(repr(shine.template(" + ".join(f"f(x{i})" for i in range(200))))) < 230


@pytest.mark.parametrize("name", ["sin", "square", "constant"])
def test_a_function_with_the_name_of_a_primitive_is_refused(name):
    with pytest.raises(ValueError, match=f"functions: '{name}' is one of Shine's primitives; give yours another name"):
        template("f(x) + 1", functions=[f"def {name}(x): return x*x*x + 1"])
    with pytest.raises(ValueError, match="functions: two have one name"):
        template("f(x) + g(x)", functions=["def g(x): return x", "def g(x): return x*x"])
