"""The exported module is run, on its own, and compared with the reference tier."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest
from helpers.equality import same_bits, ulps
from helpers.formulas import FEATURES
from helpers.rows import random_rows
from hypothesis import given, settings
from strategies import PARAMETERS, trees
from unit.formats.write.oracles import SPECIAL, run

from shine.base.errors import ExportError
from shine.formats.write.language import identifiers
from shine.formats.write.python import identifier, python_expression, python_source
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

OWN_ROUNDING = {"log1p": 4, "expm1": 4, "cbrt": 4, "log2": 4, "log10": 4, "cube": 2, "pow": 2}
"""Primitives that NumPy rounds otherwise than the reference tier does, and by how many ulp at most."""

SAME = tuple(name for name in STANDARD if name not in OWN_ROUNDING)
COLUMNS = random_rows(np.random.default_rng(0), 10_000, "float64")


def of_expression(text: str, parameters: tuple[str, ...]):
    return run(f"import numpy as np\ndef f({', '.join(parameters)}):\n    return {text}")


def broadcast(function, columns):
    with np.errstate(all="ignore"):
        return np.broadcast_to(function(*columns), len(columns[0]))


@pytest.mark.parametrize("name", STANDARD)
def test_each_primitive_has_the_values_of_the_reference_tier(name):
    columns = COLUMNS[: STANDARD[name].arity]
    tree = parse(f"{name}({', '.join(FEATURES[: len(columns)])})", FEATURES[: len(columns)])
    expected = evaluate(tree, columns)
    limit = OWN_ROUNDING.get(name, 0)
    for function in (run(python_source(tree)), of_expression(python_expression(tree), tree.parameters)):
        found = broadcast(function, columns)
        assert (ulps(found, expected) <= limit).all()
    exact = same_bits(run(python_source(tree))(*columns), expected)
    assert exact.all() if limit == 0 else np.array_equal(np.isnan(expected), np.isnan(found))


@pytest.mark.slow
@settings(max_examples=100)
@given(trees(SAME))
def test_any_tree_has_the_bits_of_the_reference_tier(tree):
    grid = np.array(np.meshgrid(*[SPECIAL] * 3)).reshape(3, -1)
    found = run(python_source(tree))(*grid)
    assert same_bits(found, evaluate(tree, list(grid))).all(), python_source(tree)


@settings(max_examples=60)
@given(trees(tuple(name for name in SAME if name not in ("min", "max", "relu", "hypot"))))
def test_an_expression_has_the_same_values_except_for_the_sign_of_equal_zeros(tree):
    grid = np.array(np.meshgrid(*[SPECIAL] * 3)).reshape(3, -1)
    found = broadcast(of_expression(python_expression(tree), PARAMETERS), list(grid))
    assert same_bits(np.asarray(found, np.float64), evaluate(tree, list(grid))).all()


def test_numbers_integers_and_lists_are_taken_as_well_as_arrays():
    function = run(python_source(parse("a/b + (a > 2) - a**-1 + 7//b")))
    assert function(3, 0) == np.inf
    assert function([1, 4], [2, 2]).tolist() == [0.5 - 1 + 3, 2 + 1 - 0.25 + 3]
    assert function(a=np.array([1, 4], np.int8), b=2).tolist() == [2.5, 5.75]


def test_a_formula_without_features_is_a_column_all_the_same():
    assert run(python_source(parse("2.5", ["x", "y"])))(np.zeros(3), np.ones(3)).tolist() == [2.5] * 3
    assert run(python_source(parse("1/0 - 1/0", ["x"])))(np.zeros((2, 2))).shape == (2, 2)
    assert run(python_source(parse("2.5")))() == 2.5


def test_the_result_is_never_the_argument_itself():
    x = np.zeros(3)
    run(python_source(parse("x")))(x)[:] = 1
    assert not x.any()


def test_the_text_is_made_for_people():
    text = python_source(parse("2.5*sqrt(a*a + b**2) - -3*a if a > b else 0"), "model")
    assert (
        text
        == '''"""A formula found by Shine."""

import numpy as np


def model(a, b):
    """2.5*sqrt(a*a + b**2) - -3*a if a > b else 0"""
    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(a > b, 2.5*np.sqrt(a*a + b**2) + 3*a, 0.0)
'''
    )


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(a + b)*c - (a - b)", "(a + b)*c - (a - b)"),
        ("-a**2 + (-a)**2 + 2**-a", "-a**2 + (-a)**2 + 2**-a"),
        ("(a**b)**c + a**b**c", "(a**b)**c + a**b**c"),
        ("a*(b*c) - (a + -2)", "a*(b*c) - (a - 2)"),
        ("(a < b < c) + (not a)", "np.where((a < b) & (b < c), 1.0, 0.0) + np.where(a == 0, 1.0, 0.0)"),
        ("a if b and c > 1 else 2", "np.where(np.where(b != 0, np.where(c > 1, 1.0, 0.0), b) != 0, a, 2.0)"),
        ("a if b > 1 or not c > 1 else 2", "np.where((b > 1) | ~(c > 1), a, 2.0)"),
        ("square(a + b) + inv(a) + log1p(a)", "(a + b)**2 + 1/a + np.log1p(a)"),
        ("a*2 - 1/3*a + 2*3", "2*a - 0.3333333333333333*a + 6.0"),
    ],
)
def test_expressions_read_as_one_would_write_them(formula, expected):
    assert python_expression(parse(formula)) == expected


def test_functions_of_the_user_become_functions():
    def twice(x, y):
        half = x / 2
        return half + y if half > y else max(half, 3)

    table = {**STANDARD, "twice": Primitive("twice", 2, parse(twice))}
    tree = parse("twice(a, b) + twice(b, 1/0) + twice(twice(b, a), b)", primitives=table)
    source = python_source(tree)
    assert source.count("def twice(x, y):") == 1
    assert same_bits(run(source)(*COLUMNS[:2]), evaluate(tree, COLUMNS[:2])).all()


@pytest.mark.parametrize(
    "names",
    [
        ("np", "f", "x"),
        ("_minimum", "_maximum", "step"),
        ("hypot", "sin", "protected_div"),
        ("t", "large", "hypot_"),
        ("float64", "dtype", "value"),
        ("ﬁ", "fi", "fi_"),
    ],
)
def test_names_that_the_module_uses_are_no_danger(names):
    def formula(x, y, z):
        t = min(x, y) + hypot(z, x)  # noqa: F821
        return t / (1 + protected_div(max(t, y), z)) + sin(t)  # noqa: F821

    plain = parse(formula)
    renamed = dict(zip(plain.parameters, names, strict=True))
    if "t" in names:
        renamed |= {name: f"{name}_value" for name, _ in plain.assignments}

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(renamed.get(node.id, node.id), ast.Load())

        def visit_Call(self, node: ast.Call) -> ast.Call:
            return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])

    assignments = tuple((renamed.get(n, n), Rename().visit(v)) for n, v in parse(formula).assignments)
    tree = Tree(names, Rename().visit(parse(formula).result), assignments, "formula", STANDARD)
    assert same_bits(run(python_source(tree))(*COLUMNS), evaluate(plain, COLUMNS)).all()


def test_invalid_names_become_identifiers():
    assert identifiers(identifier, ["my col", "my_col", "2nd", "class", "é", ""], ()) == {
        "my col": "my_col", "my_col": "my_col_", "2nd": "_2nd", "class": "class_", "é": "é", "": "_",
    }  # fmt: skip
    tree = Tree(("my col", 'a"""b\\'), ast.Name("my col", ast.Load()), functions=STANDARD)
    assert run(python_source(tree))(4, 5) == 4


@pytest.mark.slow
@pytest.mark.parametrize("chain", ["sin", "add", "where"])
def test_formulas_of_ten_thousand_levels_are_exported(chain):
    node = ast.Name("x", ast.Load())
    for _ in range(10_000):
        node = application(chain, [node, *[ast.Constant(0.5)] * (STANDARD[chain].arity - 1)])
    tree = Tree(("x",), node, functions=STANDARD)
    x = np.array([0.3, -2.0, np.nan])
    assert same_bits(run(python_source(tree))(x), evaluate(tree, [x])).all()


def test_values_that_double_at_every_step_are_shared_or_refused():
    lines = ["    t0 = x + 1", *(f"    t{i} = t{i - 1}*t{i - 1}" for i in range(1, 200))]
    tree = parse("\n".join(["def f(x):", *lines, "    return t199"]))
    assert run(python_source(tree))(0.0) == 1.0
    with pytest.raises(ExportError, match="too long for a Python expression"):
        python_expression(tree)


def test_the_module_needs_numpy_only():
    source = python_source(parse("hypot(a, relu(b)) + a**0.5"))
    check = f"import sys\n{source}\nassert f(3.0, 4.0) > 6\nassert not {{'shine', 'llvmlite'}} & sys.modules.keys()"
    subprocess.run([sys.executable, "-W", "error", "-c", check], check=True)


def test_an_invalid_name_is_refused():
    with pytest.raises(ValueError, match="is not a name for a Python function"):
        python_source(parse("x"), "my model")
