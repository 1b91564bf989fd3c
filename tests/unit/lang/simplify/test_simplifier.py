"""Simplified formulas have the same values, fewer nodes, and the form that users expect."""

from __future__ import annotations

import ast
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import PARAMETERS, expressions, trees

from shine.compiler.arrays import COMPILED
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import application, functions_of
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import ARITHMETIC, simplify

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-200, 1e200, -1e308, 5e-324, np.inf, -np.inf, np.nan, 0.1, 700.0]
ROWS = [
    np.array(column) for column in zip(*((a, b, c) for a in SPECIAL for b in SPECIAL for c in SPECIAL), strict=True)
]
"""All combinations of three special values."""

CONTINUOUS = (
    "add", "sub", "mul", "div", "neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "min", "max", "square", "cube", "inv", "sigmoid", "relu", "pow",
)  # fmt: skip
"""Functions whose values change little if an argument changes little."""

RATIONAL = ("add", "sub", "mul", "div", "neg", "square", "cube", "inv")

EXAMPLES = {
    "sqrt(0.0 + (square(b) + square(a)))": "sqrt(square(a) + square(b))",
    "x0*1.0 + 0.0": "x0",
    "a*b/(b*c)": "a/c",
    "(x + 1) - 1": "x",
    "exp(log(a))*b": "a*b",
    "1 + x + 2": "x + 3",
    "(x*2 + 4)*0.5": "x + 2",
    "2*(x + 1)": "2*x + 2",
    "x + x + y": "2*x + y",
    "x*y + x*z + w*y + w*z": "(w + x)*(y + z)",
    "a - -b": "a + b",
    "x*2*y*x3*x10": "2*x*x3*x10*y",
    "2*x + 2*y + z": "2*(x + y) + z",
    "x*(y + 1) - x": "x*y",
    "(a - b)/(b - a)": "-1",
    "sqrt(x)*sqrt(x)": "x",
    "square(sqrt(x))": "x",
    "sqrt(4*square(x)) + abs(x)": "3*abs(x)",
    "abs(abs(-x))": "abs(x)",
    "square(-x)": "square(x)",
    "square(x) + y*y": "square(x) + square(y)",
    "1/(1/x)": "x",
    "x - x": "0",
    "x**3/x + x**2": "2*x**2",
    "log(exp(x))": "x",
    "log(square(exp(x)))": "2*x",
    "log(square(exp(x))*exp(y)/exp(z))": "2*x + y - z",
    "(x - x)/0": "0/0",
    "x + 0/(y - y)": "x + 0/0",
    "exp(2*log(x))": "x*x",
    "sin(-x) + y": "y - sin(x)",
    "cos(-2*x)": "cos(2*x)",
    "sin(asin(x))": "x",
    "-(a - b)": "b - a",
    "x if 1 else y": "x",
    "(x if y else x) + 1": "x + 1",
    "max(max(x, 1), 2)": "max(x, 2)",
    "floor(ceil(x))": "ceil(x)",
    "sin(2 - 2)*x + cos(1 + 1 - 2)*y": "y",
    "(x + 0 if y*1 > 0 else z/1)": "x if y > 0 else z",
    "3*sqrt(4*x)*y": "6*y*sqrt(x)",
    "sqrt(2*x)*y": "y*sqrt(2*x)",
}  # fmt: skip
"""Formulas and the simplified forms that users expect."""


@pytest.mark.parametrize("given_text", EXAMPLES)
def test_simplified_forms_are_those_that_users_expect(given_text):
    assert str(simplify(parse(given_text))) == EXAMPLES[given_text]


@pytest.mark.parametrize(
    ("redundant", "expected"),
    [
        ("2.5 + log(3.0*x)", lambda x: 2.5 + np.log(3) + np.log(x)),
        ("log(3.0/x) - 2.5", lambda x: np.log(3) - 2.5 - np.log(x)),
        ("2.5*(3.0*x)**1.5", lambda x: 2.5 * 3**1.5 * x**1.5),
        ("2.5*exp(x + 3.0)", lambda x: 2.5 * np.exp(3) * np.exp(x)),
        ("2.5/sqrt(3.0*x)", lambda x: 2.5 / np.sqrt(3) / np.sqrt(x)),
    ],
)
def test_a_constant_inside_a_function_joins_the_one_outside(redundant, expected):
    found = simplify(parse(redundant), functions=COMPILED)
    assert found.size <= parse(redundant).size - 1
    x = np.linspace(0.1, 4, 20)
    assert np.allclose(evaluate(found, [x]), expected(x), rtol=1e-14)


UNCHANGED_BITS = {
    "x*1.0 + y/1.0": "x + y",
    "neg(neg(x))*0": "0",
    "a - -b": "a + b",
    "-a + b": "b - a",
    "x*x + square(y)": "square(x) + square(y)",
    "x + 1 - 1": "x + 1 - 1",
    "x*3/3": "3*x/3",
    "exp(log(x))": "exp(log(x))",
    "(2 + 3)*x": "5*x",
    "1/(x - x)": "1/0",
    "1 if x - x == 0 else 2": "1 if x - x == 0 else 2",
    "exp(1.0/(x + 0.0))": "exp(1.0/(x + 0.0))",
    "1.0/(x + 0.0)": "1.0/x",
    "square(x)*x + cube(y)": "cube(x) + cube(y)",
}


@pytest.mark.parametrize("given_text", UNCHANGED_BITS)
def test_without_rounding_no_bit_changes(given_text):
    assert str(simplify(parse(given_text), rounding=False)) == UNCHANGED_BITS[given_text]


@pytest.mark.slow
@settings(max_examples=300)
@given(trees())
def test_without_rounding_finite_values_keep_their_bits_and_the_domain_only_grows(tree):
    before, after = evaluate(tree, ROWS), evaluate(simplify(tree, rounding=False), ROWS)
    finite = np.isfinite(before)
    # Adding 0.0 makes all zeros positive; all other values keep their bits.
    assert np.array_equal((before[finite] + 0.0).view(np.int64), (after[finite] + 0.0).view(np.int64))


@pytest.mark.slow
@given(trees(), st.booleans())
def test_sizes_never_grow_and_a_second_time_changes_nothing(tree, rounding):
    simple = simplify(tree, rounding=rounding)
    assert simple.size <= tree.size
    assert simple.parameters == tree.parameters
    assert simplify(simple, rounding=rounding) == simple


@given(trees(), st.booleans())
def test_only_allowed_functions_are_introduced(tree, rounding):
    used = functions_of(tree)
    assert functions_of(simplify(tree, rounding=rounding)) <= used | ARITHMETIC
    few = PrimitiveSet(select(STANDARD, ("sub", "square", "inv")), PARAMETERS)
    assert functions_of(simplify(tree, few, rounding=rounding)) <= used | {"sub", "square", "inv"}


def intermediate_values(tree: Tree, columns: list[np.ndarray], dtype: type) -> np.ndarray:
    """Values of all parts of a formula, shape (n_parts, n_rows)."""
    parts = [node for node in ast.walk(tree.result) if isinstance(node, ast.expr) and not _is_function_name(node)]
    return np.array([evaluate(Tree(tree.parameters, part, functions=tree.functions), columns, dtype) for part in parts])


def _is_function_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id not in PARAMETERS


RANDOM = np.random.default_rng(0)
ORDINARY = [
    np.concatenate([RANDOM.normal(0, 2, 60), RANDOM.integers(-3, 4, 60), RANDOM.uniform(0, 1, 60)]).astype(float)
    for _ in PARAMETERS
]
for column in ORDINARY:
    RANDOM.shuffle(column)

small_expressions = expressions(CONTINUOUS)


@pytest.mark.slow
@settings(max_examples=400)
@given(small_expressions)
def test_values_agree_up_to_rounding_if_all_intermediate_values_are_finite(node):
    tree = parse(node, PARAMETERS)
    simple = simplify(tree)
    exact = evaluate(tree, ORDINARY, np.longdouble)
    rounded = evaluate(tree, ORDINARY, np.float64)
    found = evaluate(simple, ORDINARY, np.longdouble)
    sizes = np.abs(intermediate_values(tree, ORDINARY, np.longdouble))
    usual = (((sizes < 1e100) & (sizes > 1e-100)) | (sizes == 0)).all(axis=0)
    # The error of float64 shows how much rounding matters in a row.
    with np.errstate(all="ignore"):
        tolerance = 1e-11 * np.abs(exact) + 1e4 * np.abs(exact - rounded) + 1e-13 * sizes.max(axis=0)
        wrong = usual & ~(np.abs(found - exact) <= tolerance)
    assert not wrong.any(), f"{simple}: {[column[wrong][0] for column in ORDINARY]}"
    assert np.isfinite(evaluate(simple, ORDINARY)[usual & np.isfinite(rounded)]).all()


def rational_value(node: ast.expr, values: dict[str, Fraction]) -> Fraction:
    """Exact value of a formula that consists of arithmetic only."""
    match node:
        case ast.Constant(value=value):
            return Fraction(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(operand=operand):
            return -rational_value(operand, values)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = rational_value(left, values), rational_value(right, values)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case _:
                    return a / b
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            a = rational_value(argument, values)
            return {"square": a**2, "cube": a**3}[name] if name != "inv" else 1 / a
    raise AssertionError(ast.dump(node))


dyadic = st.sampled_from([0.0, 1.0, -1.0, 2.0, -4.0, 0.5, 8.0, 1024.0])


@st.composite
def rational_expressions(draw):
    """Arithmetic on features and powers of two, whose merging is exact."""
    leaf = st.one_of(dyadic.map(ast.Constant), st.sampled_from(PARAMETERS).map(lambda n: ast.Name(n, ast.Load())))

    def applied(children):
        return st.sampled_from(RATIONAL).flatmap(
            lambda name: st.lists(children, min_size=STANDARD[name].arity, max_size=STANDARD[name].arity).map(
                lambda arguments: application(name, arguments)
            )
        )

    return draw(st.recursive(leaf, applied, max_leaves=14))


@pytest.mark.slow
@settings(max_examples=400)
@given(rational_expressions())
def test_rational_formulas_are_algebraically_equal(node):
    tree = parse(node, PARAMETERS)
    values = dict(zip(PARAMETERS, (Fraction(17, 7), Fraction(-29, 11), Fraction(31, 13)), strict=True))
    try:
        expected = rational_value(tree.result, values)
    except ZeroDivisionError:
        assume(False)
    found = rational_value(simplify(tree).result, values)
    # Only constants that are sums of powers of two and a third of a number are rounded.
    assert abs(found - expected) <= abs(expected) / 10**12


@pytest.mark.slow
@pytest.mark.parametrize("rounding", [True, False])
def test_a_tree_deeper_than_the_stack_is_simplified(rounding):
    x: ast.expr = ast.Name("x", ast.Load())
    node: ast.expr = x
    for level in range(100_000):
        node = application("sin", [node]) if level % 3 else application("add", [node, ast.Constant(0.0)])
    simple = simplify(Tree(("x",), node, functions=STANDARD), rounding=rounding)
    assert simple.size == 1 + sum(level % 3 > 0 for level in range(100_000))


def add(a: ast.expr, b: ast.expr) -> ast.expr:
    return application("add", [a, b])


def mul(a: ast.expr, b: ast.expr) -> ast.expr:
    return application("mul", [a, b])


def test_assignments_are_simplified_and_unused_ones_removed():
    tree = parse("def f(x, y):\n    u = x + 0.0\n    v = y*2\n    return u*u*1 + v - v")
    simple = simplify(tree)
    assert [(name, ast.unparse(value)) for name, value in simple.assignments] == [("u", "x")]
    assert ast.unparse(simple.result) == "u * u"


def test_a_users_function_is_opaque_but_its_arguments_are_not():
    function = parse("def twice(x):\n    return x + x")
    table = {**STANDARD, "twice": type(STANDARD["add"])("twice", 1, function)}
    assert str(simplify(parse("twice(x + 0) - twice(x)*2 + twice(2)", primitives=table))) == "4 - twice(x)"


def test_only_functions_of_the_primitive_set_are_introduced():
    formula = parse("sqrt(square(x)) + 1/y")
    assert str(simplify(formula)) == "sqrt(square(x)) + 1/y"
    both = PrimitiveSet(select(STANDARD, ("add", "abs", "inv")), ("x", "y"))
    assert str(simplify(formula, both)) == "abs(x) + inv(y)"


def test_constants_that_would_overflow_are_not_merged():
    formula = parse("x*1e300*1e300*1e-300*1e-300")
    assert simplify(formula).size <= formula.size
    assert evaluate(simplify(parse("x*1e-300*1e-300")), [np.array([1e308])])[0] == 1e308 * 1e-300 * 1e-300


@pytest.mark.parametrize(
    "source", ["127 - 9e163*(2.5*a*(b/1e161))", "b/-5e160*(a + b)*1e160", "6e163*(a*sin(b)/2e161)"]
)
def test_factors_beyond_the_range_of_coefficients_cancel_where_columns_are_ordinary(source):
    tree, point = parse(source), [np.array([1.5]), np.array([2.25])]
    found = simplify(tree, ranges={"a": (-9.0, 9.0), "b": (-9.0, 9.0)})
    assert found.size < tree.size
    assert "e+1" not in str(found)
    assert evaluate(found, point) == pytest.approx(evaluate(tree, point), rel=1e-14)


def test_factors_of_columns_of_any_size_do_not_cancel():
    # A column of 1e200 squared is infinite; times 1e-200 first, it is not.
    tree = parse("(1e-200*a)*(1e-200*a)*1e300")
    assert evaluate(simplify(tree), [np.array([1e200])]) == pytest.approx(1e300)
