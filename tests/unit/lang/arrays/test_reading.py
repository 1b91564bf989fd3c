"""Array formulas are read, written back, and rejected with their place."""

from __future__ import annotations

import ast
import math
from functools import reduce
from operator import mul

import numpy as np
import pytest

import shine
from shine.base.errors import UnsupportedSyntaxError
from shine.lang.arrays.formula import ArrayFormula
from shine.lang.arrays.reading import array_formula

SCALE = 3


def mean_of(x):
    return sum(x) / len(x)


def product(x):
    size = len(x)
    return reduce(mul, (np.cos(v) * SCALE for v in x), 1) + math.prod(x[i] for i in range(1, size))


def two(x, a):
    m = mean_of_squares = sum(v * v for v in x)  # noqa: F841
    return m, a


def branches(x):
    if x[0] > 0:
        return x[0], 1
    return -x[0], 2


def calls_another(x):
    return mean_of(x) + x[0]


def loops(x):
    largest = x[0]
    for v in x:
        if v > largest:
            largest = v
    return largest


SAME = {
    "sum(x)": "sum(x[i] for i in range(len(x)))",
    "sum(v*v for v in x[1:-1])": "sum(x[i]*x[i] for i in range(1, len(x) - 1))",
    "max(b - a for a, b in zip(x[:-1], x[1:]))": "max(x[i + 1] - x[i] for i in range(len(x) - 1))",
    "sum(k*v for k, v in enumerate(x, 1))": "sum((i + 1)*x[i] for i in range(len(x)))",
    "sum(sum(x[i:i + 2]) for i in range(n - 1))": (
        "sum(sum(x[i_2] for i_2 in range(i, min(i + 2, len(x)))) for i in range(len(x) - 1))"
    ),
    "sum(v for v in reversed(x))": "sum(x[i] for i in range(len(x) - 1, -1, -1))",
    "sum(v for v in x[::-1])": "sum(x[i] for i in range(len(x) - 1, -1, -1))",
    "sum([x[i] for i in range(0, n, 2)], 0)": "sum(x[i] for i in range(0, len(x), 2))",
    "reduce(mul, x[:3], 1)": "prod(x[i] for i in range(min(3, len(x))))",
    "math.prod(x) + np.sum(x)": "prod(x[i] for i in range(len(x))) + sum(x[i] for i in range(len(x)))",
    "sum(a*b for a, b in zip(x, y))": "sum(x[i]*y[i] for i in range(min(len(x), len(y))))",
    "sum(sum(x[j] for j in range(i + 1))**2 for i in range(n))": (
        "sum(sum(x[j] for j in range(i + 1))**2 for i in range(len(x)))"
    ),
    "x[2*(n - 1) - n] * n**2": "x[len(x) - 2]*len(x)**2",
    "i*sum(v for v in x)": "i*sum(x[i_2] for i_2 in range(len(x)))",
    "(x[0], n - 1)": "x[0], len(x) - 1",
}


@pytest.mark.parametrize("text", SAME)
def test_spellings_have_one_normal_form_which_reads_back(text):
    formula = array_formula(text)
    assert str(formula) == SAME[text]
    assert array_formula(str(formula)) == formula


REJECTED = {
    "sum(x[i*i] for i in range(n))": "line 1, column 7: the index of an element of 'x' is made of whole numbers",
    "x[0.5]": "column 3: the index",
    "x[a] + sum(x)": "column 3: the index",
    "sum(x[i] for i in range(n//2))": "column 25: a bound of range is made of",
    "sum(x[v] for v in range(0, n, 0))": "step of range is a whole number other than 0",
    "max(v for v in x if v > 0)": "'if' is part of sums and products only",
    "sum(a*b for a in x for b in x)": "a reduction has one 'for'",
    "sum(v for v in y + 1)": "a reduction runs over range",
    "sum(x, 3)": "sum begins with 0",
    "sum(x[-2:])": "a slice is x\\[a:b\\]",
    "sum(x[::2])": "a slice is x\\[a:b\\]",
    "sum(sum(x[i - 1:]) for i in range(n))": "a slice is x\\[a:b\\]",
    "sum(sum(x[i:]) for i in range(n, 0, -1))": "a slice is x\\[a:b\\]",
    "sum(sum(x[:n - i]) for i in range(n))": "a slice is x\\[a:b\\]",
    "x[1:] + 1": "a slice is no number",
    "x + sum(x)": "'x' is a vector; write an element x\\[i\\]",
    "sin(x) + len(x)": "'x' is a vector",
    "sum(a for a, b in x)": "needs one name",
    "sum(a for a in zip(x, x))": "needs 2 names",
    "sum(zip(x, x))": "sum of tuples",
    "sum(v[0] for v in x)": "only a vector has elements",
    "len(x[1:])": "len takes a vector",
    "len(3)": "len takes a vector",
    "reduce(sub, x)": "reduce takes mul or add",
    "sum(v for v in zip(range(0, n, 2), x))": "a step of 1 or -1",
    "max(x, default=0)": "max takes no keyword arguments",
    "sum(foo(v) for v in x)": "unknown primitive 'foo'",
    "sum(*x)": "sum takes what it runs over",
    "[v for v in x]": "a list is not part of the language; write what it is for",
    "x[True]": "constant True is not a number",
    "()+sum(x)": "Tuple is not part of the language",
}


@pytest.mark.parametrize("text", REJECTED)
def test_what_is_not_part_of_the_language_is_rejected_with_its_place(text):
    with pytest.raises(UnsupportedSyntaxError, match=REJECTED[text]):
        shine.jit(text)


@pytest.mark.slow
def test_functions_bring_their_outer_numbers_and_functions():
    x = [0.5, 2.0, 3.0]
    assert shine.jit(mean_of)(x) == sum(x) / 3
    assert shine.jit(product)(x) == pytest.approx(math.prod(3 * math.cos(v) for v in x) + 6.0, rel=1e-15)
    assert shine.jit(lambda v: sum(v) * SCALE)(x) == 16.5
    assert shine.jit(calls_another)(x) == sum(x) / 3 + 0.5


@pytest.mark.slow
def test_functions_may_return_tuples_on_several_paths():
    assert shine.jit(branches)([[2.0], [-3.0]])[0].tolist() == [2.0, 3.0]
    assert shine.jit(branches)([[2.0], [-3.0]])[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (two, "this assignment is not part of the language"),
        (loops, "a loop adds terms to a name"),
    ],
)
def test_functions_are_rejected_with_file_and_line(function, message):
    with pytest.raises(UnsupportedSyntaxError, match=message) as caught:
        shine.jit(function)
    assert str(caught.value).startswith("tests/unit/lang/arrays/test_reading.py, line ")
    first = function.__code__.co_firstlineno
    assert first < caught.value.line <= first + 4


def test_parameters_are_ordered_and_may_be_given():
    assert array_formula("b*sum(x) + a*y[0]").parameters == ("x", "y", "a", "b")
    assert array_formula("b*sum(x)", ["b", "c", "x"]).parameters == ("b", "c", "x")
    assert array_formula("def f(b, x): return b*x[0]", ["x", "b"]).parameters == ("x", "b")
    with pytest.raises(UnsupportedSyntaxError, match="'x' is not a vector among the arguments"):
        array_formula("b*sum(x)", ["b"])
    # n is a parameter here, which may differ between individuals.
    with pytest.raises(UnsupportedSyntaxError, match="a bound of range"):
        array_formula("sum(x[i] for i in range(n))", ["x", "n"])


def test_a_formula_without_vectors_is_none_of_these():
    assert array_formula("max(a, b) + n") is None
    assert isinstance(shine.jit("a + n"), shine.Kernel)
    assert array_formula(3) is None
    assert isinstance(array_formula(ast.parse("x[0]", mode="eval")), ArrayFormula)
