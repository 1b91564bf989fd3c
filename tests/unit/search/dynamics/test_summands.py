"""Formulas as sums of products: the values stay, and one formula has one way of writing."""

import numpy as np
import pytest

from shine.evaluate.kernels.kernel import Kernel
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.dynamics.summands import NoSum, summands, written

NAMES = ("x", "y", "z")


@pytest.mark.parametrize(
    "text",
    [
        "x*(1.8 - 0.6*y)",
        "0.1*y*(x - 4.0)",
        "1.2*x*(1 - x/6) - 2*x*y/(1.5 + x)",
        "y/(1 + 1.5/x)",
        "-y/(x**2 + y**2)**1.5",
        "(x - y)**2*(z + 1)",
        "0.6*sqrt(4*x) - sqrt(y + z)",
        "exp(2*x - 1)*3 + log(y)/(x*z)",
        "-sin(y - x) + cos(z - x) - tanh(-2*y)",
        "3/(1 + y**3) - x",
        "(x + y + z)**3*(x + y)*(y + z)",
        "min(x, 2*y) - x - 0",
    ],
)
def test_values_stay(text):
    tree = parse(text, NAMES)
    points = np.random.default_rng(0).uniform(0.3, 3, (3, 50))
    again = parse(written(summands(tree)), NAMES)
    np.testing.assert_allclose(Kernel(again)(*points), Kernel(tree)(*points), rtol=1e-9)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x*(2 - y)", "2*x - y*x"),
        ("sin(x - y)", "-sin(y - x)"),
        ("cos(x - y)", "cos(y - x)"),
        ("x/(3 + 2*y)", "0.5*x/(y + 1.5)"),
        ("x*y - y*x", "0"),
        ("(x*y)**2", "y*x*x*y"),
    ],
)
def test_equal_formulas_are_written_alike(one, other):
    assert written(summands(parse(one, NAMES))) == written(summands(parse(other, NAMES)))


@pytest.mark.parametrize(
    "text",
    [
        "x if x > 0 else y",
        "x > y",
        "x/0",
        "y/(x - x)",
        "1e300*x*1e300",
        "x + exp(1e200*(1e200*y + 1))",
        "sin(1e300*1e10*x)",
    ],
)
def test_conditions_and_numbers_that_are_none_are_no_sums(text):
    with pytest.raises(NoSum):
        summands(parse(text, NAMES))


def test_functions_of_the_user_are_in_no_sum():
    table, _ = primitive_table(["add", "def hill(x): return x/(1 + x)"])
    with pytest.raises(NoSum, match="a function of the user's"):
        summands(parse("x + hill(y)", NAMES, table))
