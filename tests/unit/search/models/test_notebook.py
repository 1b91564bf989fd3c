"""Formulas in notebooks: well-formed, whole, escaped, readable on dark pages."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

import shine
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.notebook import latex_number, latex_text
from shine.search.models.result import Result

AWKWARD = ("a", "größe", "x_1_2", "質量")


def model(text: str, loss: float = 0.5, r2: float = 0.5) -> Model:
    return Model(shine.parse(text, AWKWARD), loss, r2)


LARGE = model(" + ".join(f"{n}.25*sin(a*{n}.5)" for n in range(1, 101)))
FRONT = Front((model("1.5"), model("a < größe"), LARGE), 1, "short & <good>")
RESULT = Result(FRONT, 1, 3, 100, 0.5, 7, "stagnation")


@pytest.mark.parametrize("shown", [FRONT, RESULT, *FRONT, model("a*質量 + x_1_2", math.inf, math.nan)])
def test_html_is_well_formed_and_has_the_formula_in_mathematics_or_in_code(shown):
    root = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>".replace("<wbr>", ""))
    assert list(root.iter("math")) or list(root.iter("code"))


def test_formulas_have_the_headings_of_the_columns():
    shown = Model(shine.parse("2.0*a", AWKWARD), 0.5, 0.5, headings={"a": "my <area> $1$"})._repr_html_()
    assert "my &lt;area&gt; $1$" in shown and "mathjax_ignore" in shown


def test_no_colour_is_fixed_on_a_dark_page():
    html = RESULT._repr_html_()
    assert "#" not in html and "color:" not in html.replace("background", "")


def test_a_large_formula_is_whole():
    assert LARGE.formula() in LARGE._repr_html_() and "..." not in FRONT._repr_html_()


def test_a_table_has_a_row_for_each_formula_and_marks_the_chosen_one():
    html = FRONT._repr_html_()
    assert (html.count("<tr"), html.count("▶")) == (4, 2)
    assert "short &amp; &lt;good&gt;" in html


def test_the_exact_formula_is_the_title_of_its_cell():
    exact = Model(shine.parse("2.3456789*a", ("a",)), 0.5, 0.5, digits=3)
    html = Front((exact,), 0)._repr_html_()
    assert 'title="2.3456789*a"' in html and "2.35" in html


def test_latex_shows_the_formula_and_the_front():
    assert RESULT._repr_latex_() == FRONT[1]._repr_latex_() == f"$\\displaystyle {FRONT[1].latex()}$"
    lines = FRONT._repr_latex_().splitlines()
    assert len(lines) == len(FRONT) + 3 and lines[3].startswith(r"\blacktriangleright\ 1 &")


def test_figures_and_titles_are_escaped_for_latex():
    assert [latex_number(value) for value in (0.25, 1.5e-9, math.inf)] == ["0.25", r"1.5 \cdot 10^{-9}", r"\infty"]
    assert latex_text("50% of $a_b$") == r"50\% of \$a\_b\$"
