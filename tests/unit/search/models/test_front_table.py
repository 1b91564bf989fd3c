"""Figures of a formula: few digits, but never 1 where it is not."""

from __future__ import annotations

import math

import pytest

from shine.search.models.front_table import figures_text, r2_text


@pytest.mark.parametrize(
    ("r2", "text"),
    [
        (1.0, "1"),
        (1 - 1e-15, "1"),
        (0.99999321, "0.9999932"),
        (0.99996, "0.99996"),
        (0.8725149, "0.8725"),
        (0.5, "0.5"),
        (0.0, "0"),
        (-1e-9, "0"),
        (-12.3456, "-12.3456"),
        (-1e30, "-1e+30"),
        (-math.inf, "-inf"),
    ],
)
def test_a_coefficient_of_determination_has_the_digits_that_tell_it_from_one(r2, text):
    assert r2_text(r2) == text


def test_an_unknown_coefficient_is_left_out():
    assert figures_text(0.25, math.nan, 3) == "loss 0.25, complexity 3"
