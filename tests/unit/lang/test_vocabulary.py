"""Primitives as users give them: every way to name one gives the same, and what cannot be one is told."""

from __future__ import annotations

import functools
import linecache
import math
import operator
import pickle
from math import log10

import numpy as np
import pytest

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import select
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.vocabulary import portable, primitive_table

COLUMNS = [np.array([0.5, 1.0, 3.0]), np.array([2.0, 0.0, -1.0])]
FACTOR = 3.0


def names(*primitives):
    return primitive_table(primitives)[1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["+", "*", "sin", "-", "/"], ["add", "mul", "sin", "sub", "div"]),
        (["^", "**", "pow"], ["pow"]),
        ([operator.add, np.exp, math.sin, abs, min], ["add", "exp", "sin", "abs", "min"]),
        ([operator.truediv, np.divide, "/"], ["div"]),
        ([max, np.maximum, "max"], ["max"]),
        (["np.exp", "numpy.log", "math.sin", "operator.mul"], ["exp", "log", "sin", "mul"]),
        ([np.subtract, np.power, np.arcsin, math.log], ["sub", "pow", "asin", "log"]),
        ([np.clip, np.exp2], ["clip", "exp2"]),
    ],
)
def test_every_way_to_name_a_primitive(given, expected):
    table, found = primitive_table(given)
    assert found == expected
    assert len(select(table, found)) == len(expected)


def helper(a):
    return np.sqrt(a) + 1


def own(x):
    return FACTOR * np.log(x) + math.sin(x) + operator.mul(x, 2) + helper(x) + log10(x) + max(x, 0.7, 1)


def bare(x):
    return sqrt(x) * pi  # noqa: F821


def protected(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return 1


half = lambda x: x / 2  # noqa: E731


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (own, lambda x: np.array([own(float(value)) for value in x])),
        (bare, lambda x: np.sqrt(x) * np.pi),
        (half, half),
        (functools.partial(operator.mul, 4.0), lambda x: 4 * x),
        ("def own(x): return np.log(x) + math.pi", lambda x: np.log(x) + np.pi),
    ],
    ids=["def", "bare names", "lambda", "partial", "text"],
)
def test_own_functions_call_those_of_python_and_numpy(function, expected):
    table, (name,) = primitive_table([function])
    if callable(function) and hasattr(function, "__name__"):
        assert name in ("own", "bare", "half")
    found = evaluate(parse(f"{name}(x)", primitives=table), COLUMNS[:1])
    assert np.allclose(found, expected(COLUMNS[0]), rtol=1e-14)


def test_a_protected_division_means_what_python_does():
    table, (name,) = primitive_table([protected])
    assert evaluate(parse(f"{name}(a, b)", primitives=table), COLUMNS).tolist() == [0.25, 1.0, -3.0]


def test_formulas_may_have_dotted_names():
    assert str(parse("np.log(x) + math.sin(x)*np.pi + np.maximum(x, 1)")) == str(
        parse("log(x) + sin(x)*3.141592653589793 + max(x, 1)")
    )
    with pytest.raises(UnsupportedSyntaxError, match="column 1: attribute access is not part of the language"):
        parse("np.gamma(x)")


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def log1p(x):
    u = 1 + x
    corrected = np.log(u) * (x / (u - 1))
    return x if u == 1 else np.log(u) if u == x else corrected


def relu(a):
    return max(a, 0.01 * a)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sigmoid, "sigmoid"),
        ("def sigmoid(a): return 1/(1 + exp(-a))", "sigmoid"),
        (log1p, "log1p"),
        ("def add(a, b): return a + b", "add"),
        (relu, "relu_1"),
        ("def relu(a): return max(a, 0.01*a)", "relu_1"),
        ("def add(a, b):\n    try:\n        return a/b\n    except ZeroDivisionError:\n        return 1", "add_1"),
    ],
    ids=["def", "text", "other steps", "operator", "other meaning", "other meaning in a text", "text with try"],
)
def test_an_own_function_with_a_name_of_shines_is_that_primitive_or_gets_a_number(given, expected):
    table, (name,) = primitive_table([given])
    assert name == expected
    assert (table[name] is STANDARD.get(name)) == (name in STANDARD)


def test_an_own_function_stands_beside_the_primitive_of_its_name():
    table, found = primitive_table(["relu", relu])
    assert found == ["relu", "relu_1"]
    values = [evaluate(parse(f"{name}(x)", primitives=table), [np.array([-2.0])]).item() for name in found]
    assert values == [0.0, -0.02]


def test_a_text_may_have_what_a_function_in_a_file_may_have():
    text = "def f(a, b):\n    try:\n        a, b = b, a\n        return math.log(b) if np.isfinite(a) else a\n    "
    table, (name,) = primitive_table([f"{text}except ValueError:\n        return -1"])
    assert evaluate(parse("f(a, b)", primitives=table), COLUMNS).tolist() == [np.log(0.5), 0.0, np.log(3.0)]
    assert name == "f"


def loops(x):
    for _ in range(3):
        x = x * x
    return x


def unknown_name(x):
    return nowhere * x  # noqa: F821


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["def f(x):\n    try:\n        return g(x)\n    except ValueError:\n        return 1"],
            "line 3, .*'g', which is no",
        ),
        ("add", r"primitives is the text 'add'; give a list, such as \['add', 'mul', 'sin'\]"),
        (None, "primitives must be a list of names and functions, .* is None"),
        (3, "primitives must be a list of names and functions, .* is 3"),
        ([3], "primitives has 3; a primitive is a name, such as 'add', or a function"),
        ([print], "primitive 'print' cannot be used: it is print of type builtin_function_or_method"),
        (
            [loops],
            "primitive 'loops' cannot be used: .*py, line [0-9]+, column 5: 'for' is not part of",
        ),
        (
            [unknown_name],
            "primitive 'unknown_name' cannot be used: .*py, line [0-9]+, column 12: 'nowhere' is not known",
        ),
        ([lambda *a: 1], "it takes '\\*' arguments"),
    ],
)
def test_what_is_no_primitive_is_told(given, message):
    with pytest.raises((TypeError, UnsupportedSyntaxError), match=message):
        primitive_table(given)


@pytest.mark.parametrize(("name", "near"), {"subtract": "sub", "sqr": "square", "sinn": "sin"}.items())
def test_an_unknown_name_gets_the_one_that_is_meant(name, near):
    table, found = primitive_table([name])
    with pytest.raises(ValueError, match=f"primitives: unknown primitive '{name}'; did you mean '{near}'"):
        select(table, found)


def test_a_function_of_a_notebook_keeps_what_its_source_said():
    source = "def cell(x):\n    return x*x + offset\n"
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    scope = {"offset": 2.0, "__name__": "__main__"}
    exec(compile(source, "<cell>", "exec"), scope)
    before = portable([scope["cell"], "add", np.exp])
    del linecache.cache["<cell>"]
    with pytest.raises(UnsupportedSyntaxError, match="its source is not at hand"):
        primitive_table([scope["cell"]])
    table, found = primitive_table(pickle.loads(pickle.dumps(before)))
    assert found == ["cell", "add", "exp"]
    assert evaluate(parse("cell(x)", primitives=table), COLUMNS[:1]).tolist() == [2.25, 3.0, 11.0]


@pytest.mark.parametrize("kind", ["assign", "compare", "constant", "name"])
def test_a_function_with_the_name_of_a_kind_of_node_gets_a_number(kind):
    table, names = primitive_table([f"def {kind}(x): return x*x + 1"])
    assert names == [f"{kind}_1"]
    assert table[names[0]].arity == 1
