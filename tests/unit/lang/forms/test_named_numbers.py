"""Numbers with names are read back as what they are."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

from shine.compiler.arrays import COMPILED
from shine.lang.forms.named_numbers import named_number, named_numbers, nearest_named
from shine.lang.interpret import evaluate
from shine.lang.parse import parse


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.pi, "pi"),
        (4 * math.pi / 3, "4*pi/3"),
        (3 / math.pi, "3/pi"),
        (1 / (4 * math.pi), "1/(4*pi)"),
        (math.pi**2, "pi**2"),
        (1 / math.pi**2, "1/pi**2"),
        (10 * math.sqrt(3), "10*sqrt(3)"),
        (math.sqrt(0.5), "sqrt(2)/2"),
        (1 / math.sqrt(2 * math.pi), "1/sqrt(2*pi)"),
    ],
)
def test_numbers_have_the_names_that_people_use(value, text):
    assert named_numbers()[nearest_named(value)].text == text


@pytest.mark.slow
def test_every_text_means_its_number():
    column = [np.zeros(1)]
    for value, named in named_numbers().items():
        tree = parse(f"{named.text} + x", ("x",))
        assert evaluate(tree, column, np.float64, COMPILED)[0] == value
        assert ast.unparse(named.expression).replace(" ", "") == named.text.replace("pi", repr(math.pi))


def test_other_numbers_have_none():
    assert named_number(3.14159) is None
    assert nearest_named(3.14159265359) is None
    assert nearest_named(-math.pi * (1 + 2e-16)) == -math.pi


def test_a_formula_with_a_feature_called_pi_has_digits():
    assert parse("3.141592653589793*x").readable == "pi*x"
    assert parse("3.141592653589793*x", ("x", "pi")).readable == "3.141592653589793*x"
