"""Headings that are no identifiers in the text of a template."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import shine
from shine.base.errors import UnsupportedSyntaxError
from shine.search.templates.headings import with_names

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


def test_headings_are_read_in_mappings_too():
    given = {"formula": ["f(T [K])", "g(cost €)"], "groups": "site id"}
    assert with_names(given, HEADINGS) == {"formula": ["f(T_K)", "g(cost)"], "groups": "site_id"}


def test_a_heading_that_is_a_formula_of_other_columns_is_refused_with_the_name_to_write():
    with pytest.raises(UnsupportedSyntaxError, match=r"'a-b' is the heading .* write a_b for the column"):
        with_names("f(a-b)", HEADINGS)


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
