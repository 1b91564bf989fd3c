"""The function of a data frame has the values of the NumPy function."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from helpers.equality import assert_same_bits
from helpers.rows import random_rows
from hypothesis import given, settings
from strategies import PARAMETERS, trees

from shine.formats.write.pandas import pandas_source
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

COLUMNS = random_rows(np.random.default_rng(1), 20, "float64")[: len(PARAMETERS)]
FRAME = pandas.DataFrame(dict(zip(PARAMETERS, COLUMNS, strict=True)), index=range(100, 120))


def applied(tree, frame=FRAME, name="f"):
    space = {}
    exec(pandas_source(tree, name), space)
    return space[name](frame)


@settings(max_examples=60)
@given(trees(("add", "mul", "div", "min", "max", "where", "lt", "abs")))
def test_values_are_those_of_the_reference_tier(tree):
    expected = np.broadcast_to(evaluate(tree, COLUMNS), len(FRAME))
    assert_same_bits(applied(tree).to_numpy(), np.asarray(expected, np.float64))


def test_the_series_has_the_name_of_the_formula_and_the_index_of_the_frame():
    series = applied(parse("2*a + b"), name="price")
    assert series.name == "price" and list(series.index) == list(FRAME.index)


def test_a_name_that_python_cannot_have_is_refused():
    with pytest.raises(ValueError, match="'1st' is not a name for a Python function"):
        pandas_source(parse("a"), "1st")
