"""Random formulas: each is worth finding, and the table counts those that are found."""

from __future__ import annotations

import numpy as np
import pytest
from quality.measurements import anywhere
from quality.problems import generator
from quality.random_trees import Drawn, parts, random_problem, size_of, text_of, values_of, worth_finding

A, B = ("x", 0), ("x", 1)
ONE = Drawn((anywhere(1, 3),), 500).points(np.random.default_rng(0))
TWO = Drawn((anywhere(1, 3), anywhere(-1, 1)), 500).points(np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("size", range(8, 21, 3))
def test_a_formula_has_the_nodes_that_were_asked_for(size):
    problems = [random_problem(size, number) for number in range(5)]
    assert [problem.truth.size for problem in problems] == [size] * 5
    assert len({problem.text for problem in problems}) == 5


def test_a_number_names_one_formula():
    assert random_problem(12, 3) == random_problem(12, 3)


def test_every_feature_of_a_formula_changes_its_values():
    for number in range(10):
        problem = random_problem(12, number)
        split = problem.split(generator(problem.name, 0))
        for column in range(split.X.shape[1]):
            X = split.X.copy()
            X[:, column] = np.random.default_rng(0).permutation(X[:, column])
            assert np.std(problem.truth.predict(X) - split.y) > 0.01 * np.std(split.y)


@pytest.mark.parametrize(
    ("tree", "X"),
    [
        (("add", A, ("c", 1.0)), TWO),  # the second feature is missing
        (("sub", ("mul", A, B), ("mul", A, B)), TWO),  # zero
        (("mul", A, ("div", B, A)), TWO),  # the second feature
        (("exp", ("log", A)), ONE),
        (("add", ("c", 1.0), ("add", A, ("c", 2.0))), ONE),  # constants that are one
        (("mul", A, ("exp", ("c", 2.0))), ONE),
        (("log", ("sub", A, ("c", 2.0))), ONE),  # no value at some rows
        (("add", A, ("mul", ("c", 0.0001), ("sin", A))), ONE),  # a part without influence
        (("div", A, ("mul", B, B)), TWO),  # a pole: few values are far from all others
        (("sqrt", ("add", ("square", A), ("sub", ("sin", A), ("sin", A)))), ONE),
    ],
)
def test_a_formula_that_is_not_what_it_seems_is_drawn_again(tree, X):
    assert not worth_finding(tree, X)


def test_the_text_of_a_tree_has_its_values_and_nodes():
    tree = ("div", ("square", ("sub", A, B)), ("add", ("c", 1.5), ("exp", B)))
    assert text_of(tree) == "(((a - b))**2/(1.5 + exp(b)))"
    assert size_of(tree) == len(list(parts(tree))) == 9
    np.testing.assert_allclose(values_of(tree, TWO), (TWO[:, 0] - TWO[:, 1]) ** 2 / (1.5 + np.exp(TWO[:, 1])))
