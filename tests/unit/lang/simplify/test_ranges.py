"""Known ranges of features are facts for simplification; where they hold, values stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PARAMETERS, trees

import shine
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.tidy import tidy

RANGES = {"x": (0.1, 5.0), "y": (2.0, 3.0), "n": (-4.0, -1.0), "w": (0.0, 3.0)}
"""What is known of the features; nothing is known of z."""

FORMS = {
    "sqrt(x**2*z)": "x*sqrt(z)",
    "sqrt(w**2*y)": "w*sqrt(y)",
    "sqrt(w**2*z)": "sqrt(w**2*z)",  # where w is 0, the root of a negative z would be missing
    "sqrt(2.5*x**2*z)": "x*sqrt(2.5*z)",
    "sqrt(z/x**2)": "sqrt(z)/x",
    "sqrt(n**2)": "-n",
    "sqrt(z**2*y)": "sqrt(y*z**2)",
    "sqrt((x + 1)**2*z)": "(x + 1)*sqrt(z)",
    "364.3*(x**2)**0.7516": "364.3*x**1.5032",
    "(z**2)**0.7516": "(z**2)**0.7516",
    "(x**2*y**2)**0.75": "(x*y)**1.5",
    "(x**4)**0.25": "x",
    "1.7*log(x**2)": "3.4*log(x)",
    "1.7*log(z**2)": "1.7*log(z**2)",
    "y + 1.7*log(x**2/y**2)": "3.4*log(x/y) + y",
    "abs(x - 6.5)": "6.5 - x",
    "abs(x*n)": "-n*x",
    "abs(x*z)": "abs(x*z)",
    "max(x, 0)": "x",
    "min(x, 4)": "min(x, 4)",
    "relu(n)": "0",
    "z*sign(n)": "-z",
    "z if x > 0 else y": "z",
    "z if sqrt(z) > -1 else y": "z if sqrt(z) > -1 else y",  # a root may be NaN
}


@pytest.mark.parametrize("text", FORMS)
def test_ranges_are_facts(text):
    found = tidy(parse(text, ("x", "y", "n", "w", "z")), COMPILED, RANGES)
    assert found.readable == FORMS[text]
    assert tidy(found, COMPILED, RANGES) == found


@pytest.mark.slow
@pytest.mark.parametrize("low", [0.0, 0.5, -2.5])
@settings(max_examples=60)
@given(tree=trees(), seed=st.integers(0, 2**32))
def test_values_stay_where_the_facts_hold(low, tree, seed):
    ranges = dict.fromkeys(PARAMETERS, (low, low + 2.0))
    rows = list(np.random.default_rng(seed).uniform(low, low + 2.0, (len(PARAMETERS), 50)))
    for found in (tidy(tree, COMPILED, ranges), simplify(tree, functions=COMPILED, ranges=ranges)):
        assert found.size <= tree.size
        with np.errstate(all="ignore"):
            plain = simplify(tree, functions=COMPILED)
            expected, values = (np.broadcast_to(evaluate(f, rows, np.float64, COMPILED), 50) for f in (plain, found))
            moved = [evaluate(plain, [x * (1 + s * 1e-12) for x in rows], np.float64, COMPILED) for s in (-1, 1)]
            change = sum(abs(np.broadcast_to(each, 50) - expected) for each in moved)
            smooth = np.isfinite(expected) & (change <= 1e-9 * abs(expected)) & (abs(expected) < 1e100)
            wrong = ~(abs(values - expected) <= 1e-8 * abs(expected) + 1e-12)
        assert (smooth & wrong).sum() <= (0 if tree.size < 4 else 1), (str(tree), str(found))


@pytest.mark.parametrize("given", [(5.0, -0.5), 3, (1.0,), (float("nan"), 1.0)])
def test_what_is_no_range_is_refused(given):
    with pytest.raises(ValueError, match=r"the range of 'x' is .*; give its least and its greatest value"):
        simplify(parse("abs(x)"), ranges={"x": given})


def test_an_assigned_name_has_no_range():
    tree = parse("def f(x):\n    y = x - 3\n    return abs(y)*x")
    assert "abs" in str(tidy(tree, COMPILED, {"x": (1.0, 5.0), "y": (1.0, 2.0)}))


def test_the_ranges_of_rows_are_those_of_all_rows():
    dataset = Dataset.from_arrays([[1.0, -2.0], [3.0, 5.0], [2.0, 0.5]], [1.0, 2.0, 3.0], features=["a", "b"])
    assert dataset.ranges == {"a": (1.0, 3.0), "b": (-2.0, 5.0)}
    assert dataset.take([2]).take([0]).ranges == dataset.ranges


def test_a_search_in_positive_rows_writes_no_root_of_a_square():
    X = np.random.default_rng(20).uniform(0.5, 5.0, (20, 2))
    found = shine.evolve(X, X[:, 0] * np.sqrt(X[:, 1]), generations=5, seconds=30)
    assert found.best.expression == "x0*sqrt(x1)"
