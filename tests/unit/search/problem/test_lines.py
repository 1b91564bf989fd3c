"""Slopes and intercepts in formulas."""

from __future__ import annotations

import pytest

from shine.lang.parse import parse
from shine.search.problem.lines import without_line


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("2.0*sin(a) + 1.0", "sin(a)"),
        ("1.0 - 2.0*sin(a)", "sin(a)"),
        ("sin(a)/2.0 - 1.0", "sin(a)"),
        ("sin(a) + b", "sin(a) + b"),
        ("2.0/a", "2.0/a"),
        ("a", "a"),
    ],
)
def test_a_line_is_taken_off(text, bare):
    assert without_line(parse(text, ("a", "b"))) == parse(bare, ("a", "b"))
