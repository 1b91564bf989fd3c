"""Trees are printed with the parentheses Python needs, and no others."""

import pytest

from shine.lang.parse import parse


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(a*a + b*b)",
        "a - (b - c)",
        "a - b - c",
        "a/(b*c)",
        "(-2)**x",
        "-2**x",
        "(-a)**b",
        "-a**b",
        "a**b**c",
        "(a**b)**c",
        "2**-a",
        "(a if b else c) if d else e",
        "a if b else c if d else e",
        "(a if b else c) + 1",
        "not (a and b)",
        "not a and b",
        "a and (b or c)",
        "(a < b) == (c < d)",
        "a < b < c",
        "a//b % c",
        "min(a, -b)",
        "x - -1.5",
    ],
)
def test_minimal_parentheses_are_kept(text):
    assert str(parse(text)) == text


def test_superfluous_parentheses_are_dropped():
    assert str(parse("((a) + ((b)*(c)))")) == "a + b*c"
