"""Displays of fitted estimators: every title as it is, every formula whole."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

import shine
from shine.faces.estimators.fitted import fitted_html, fitted_latex, fitted_text
from shine.search.models.front import Front
from shine.search.models.model import Model

TITLES = ["class $5_a", "class <b>&", r"class 100%\x"]
FRONTS = [
    Front((Model(shine.parse(text, ("a",)), 0.5, 0.5, headings={"a": "my <area> #1"}),), 0, "why")
    for text in ("2.5", "a*1.5", "a*a")
]


def test_titles_are_escaped_in_html_and_no_mathematics():
    html = fitted_html("SymbolicClassifier", FRONTS, TITLES)
    root = ElementTree.fromstring(html.replace("<wbr>", ""))
    assert [node.text for node in root.iter("h5")] == TITLES
    parts = [part for part in root if list(part.iter("h5"))]
    assert all("mathjax_ignore" in part.get("class", "") for part in parts)


def test_titles_are_escaped_in_latex():
    latex = fitted_latex(FRONTS, TITLES)
    assert r"\text{class \$5\_a} = 2.5" in latex
    assert r"\text{class <b>\&}" in latex
    assert r"\text{class 100\%\textbackslash{}x}" in latex
    assert latex.count(r" \\ ") == 2


def test_each_table_stands_under_its_title():
    text = fitted_text("SymbolicClassifier", FRONTS, TITLES)
    assert [line for line in text.splitlines() if "equations_" in line] == [
        f"SymbolicClassifier.equations_ of {title} = [" for title in TITLES
    ]


@pytest.mark.slow
def test_estimators_load_nothing_for_displays_and_drawings():
    code = (
        "import sys, shine.estimators; print([m for m in sys.modules if m.startswith(('shine.report', 'matplotlib'))])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
