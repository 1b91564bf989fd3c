"""Derivatives as trees, against mpmath, complex steps and differences of values."""

import ast

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import PARAMETERS, expressions

from shine.lang.derivative import PARTIALS, derivative, gradient, partials, value_and_gradient
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

EVERYWHERE = (-300.0, -41.0, -2.5, -0.75, -1e-9, 1e-9, 0.3, 1.0, 2.5, 41.0, 300.0)
POSITIVE = (1e-300, 1e-9, 0.3, 1.0, 2.5, 1e9, 1e300)
INSIDE = (-0.9999999999, -0.5, -1e-9, 1e-9, 0.3, 0.999999)
PAIRS = ((0.3, 2.5), (-2.5, 0.75), (40.0, -3.0), (1e-8, 1e8))

ORACLES = {
    "add": (lambda a, b: a + b, PAIRS),
    "sub": (lambda a, b: a - b, PAIRS),
    "mul": (lambda a, b: a * b, PAIRS),
    "div": (lambda a, b: a / b, PAIRS),
    "mod": (lambda a, b: a - b * mpmath.floor(a / b), ((7.3, 2.5), (-7.3, 2.5), (7.3, -2.5), (0.5, 3.0))),
    "pow": (lambda a, b: a**b, ((0.3, 2.5), (2.5, 0.75), (40.0, -3.0), (1.5, 0.0))),
    "min": (min, PAIRS),
    "max": (max, PAIRS),
    "neg": (lambda a: -a, EVERYWHERE),
    "abs": (abs, EVERYWHERE),
    "sqrt": (mpmath.sqrt, POSITIVE),
    "exp": (mpmath.exp, EVERYWHERE),
    "log": (mpmath.log, POSITIVE),
    "sin": (mpmath.sin, EVERYWHERE),
    "cos": (mpmath.cos, EVERYWHERE),
    "tan": (mpmath.tan, EVERYWHERE),
    "asin": (mpmath.asin, INSIDE),
    "acos": (mpmath.acos, INSIDE),
    "atan": (mpmath.atan, EVERYWHERE),
    "sinh": (mpmath.sinh, EVERYWHERE),
    "cosh": (mpmath.cosh, EVERYWHERE),
    "tanh": (mpmath.tanh, EVERYWHERE),
    "where": (lambda c, a, b: a if c else b, ((1.0, 2.0, 3.0), (0.0, 2.0, 3.0))),
    "square": (lambda x: x * x, EVERYWHERE),
    "cube": (lambda x: x**3, EVERYWHERE),
    "inv": (lambda x: 1 / x, EVERYWHERE),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), EVERYWHERE),
    "relu": (lambda x: max(x, mpmath.mpf(0)), EVERYWHERE),
    "hypot": (lambda a, b: mpmath.sqrt(a * a + b * b), (*PAIRS, (1e-300, 1e-299), (1e200, -1e200))),
    "log1p": (mpmath.log1p, (*POSITIVE, -1e-17, -0.5, -0.999999)),
    "expm1": (mpmath.expm1, EVERYWHERE),
    "log2": (lambda x: mpmath.log(x, 2), POSITIVE),
    "log10": (mpmath.log10, POSITIVE),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (*POSITIVE, -1e-200, -3.0)),
    "aq": (lambda a, b: a / mpmath.sqrt(1 + b * b), PAIRS),
    "protected_div": (lambda a, b: a / b if abs(b) > 0.001 else mpmath.mpf(1), (*PAIRS, (2.0, 1e-5))),
    "protected_log": (lambda x: mpmath.log(abs(x)) if abs(x) > 0.001 else mpmath.mpf(0), EVERYWHERE),
    "protected_sqrt": (lambda x: mpmath.sqrt(abs(x)), EVERYWHERE),
}
"""Each primitive with a derivative, in mpmath, and points where the derivative exists."""

FLAT = {name for name, rows in PARTIALS.items() if not any(rows)}


def at(tree: Tree, *point: float) -> float:
    """Value of a tree at one point."""
    return float(evaluate(tree, [np.array([value]) for value in point])[0])


def chain(nodes: int, step) -> Tree:
    """A tree as deep as it has steps."""
    node: ast.expr = ast.Name("x", ast.Load())
    for i in range(nodes):
        node = step(node, i)
    return parse(node)


def sines_and_factors(node: ast.expr, i: int) -> ast.expr:
    if i % 2:
        return ast.Call(ast.Name("sin", ast.Load()), [node], [])
    return ast.BinOp(node, ast.Mult(), ast.Constant(1.5))


def choices(node: ast.expr, i: int) -> ast.expr:
    x = ast.Name("x", ast.Load())
    term = ast.BinOp(x, ast.Mult(), ast.Constant(float(i)))
    return ast.IfExp(ast.Compare(x, [ast.Lt()], [ast.Constant(float(i))]), term, node)


def test_the_oracles_cover_every_primitive_that_is_not_flat():
    assert set(ORACLES) == set(STANDARD) - FLAT - {"logical_and", "logical_or"}
    assert {"floordiv", "floor", "ceil", "sign", "lt", "le", "gt", "ge", "eq", "ne", "logical_not"} == FLAT


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_the_partials_of_a_primitive_are_those_of_mpmath(name):
    function, points = ORACLES[name]
    for point in points:
        arguments = point if isinstance(point, tuple) else (point,)
        names = tuple("abc"[: len(arguments)])
        value = at(parse(f"{name}({', '.join(names)})", names), *arguments)
        for position, tree in enumerate(partials(STANDARD[name])):
            with mpmath.workdps(700):
                exact = [mpmath.mpf(argument) for argument in arguments]
                step = (abs(exact[position]) or 1) * mpmath.mpf("1e-200")
                shifted = [
                    function(*exact[:position], exact[position] + sign * step, *exact[position + 1 :])
                    for sign in (1, -1)
                ]
                expected = float((shifted[0] - shifted[1]) / (2 * step)) if name != "where" or position else 0.0
            found = 0.0 if tree is None else at(tree, *arguments, value)
            # Partials in terms of the value inherit its error of 2 ulp, a few times.
            assert found == pytest.approx(expected, rel=5e-15, abs=1e-300), (point, position)


def test_a_function_of_the_user_has_the_partials_of_its_definition():
    f, g = (
        parse(text)
        for text in ("def f(y, v1):\n    s = y * v1\n    return sin(s) + floor(v1)", "def g(x):\n    return 3")
    )
    (by_y, by_v1), (nothing,) = partials(Primitive("f", 2, f)), partials(Primitive("g", 1, g))
    assert by_y.parameters == by_v1.parameters == ("y", "v1", "y_1")
    assert at(by_y, 0.5, 2.0, 0.0) == 2 * np.cos(1.0)
    assert at(by_v1, 0.5, 2.0, 0.0) == 0.5 * np.cos(1.0)
    assert nothing is None


def test_a_function_with_the_name_of_a_standard_one_has_its_own_derivative():
    table = {**STANDARD, "square": Primitive("square", 1, parse("x + 7*x"))}
    assert str(derivative(parse("square(a)", primitives=table), "a")) == "8"


@pytest.mark.parametrize(
    ("source", "parameter", "written"),
    [
        ("sin(a)*b", "a", "b*cos(a)"),
        ("sin(a)*b", "b", "sin(a)"),
        ("x**2", "x", "2*x"),
        ("x**3", "x", "3*x**2"),
        ("a - b", "b", "-1"),
        ("a/b", "a", "1/b"),
        ("x*x", "x", "2*x"),
        ("7 + a*0", "a", "0"),
        ("floor(a) + (a < 1)", "a", "0"),
        ("a*b if a < b else 0", "b", "a if a < b else 0"),
    ],
)
def test_a_simple_derivative_is_written_as_people_write_it(source, parameter, written):
    assert str(derivative(parse(source), parameter)) == written


def test_derivatives_share_the_values_they_have_in_common():
    value, by_a, by_b = value_and_gradient(parse("exp(sin(a*b))"))
    assert value.assignments is by_a.assignments is by_b.assignments
    names = [token[0] for token in by_a.tokens[1:]]
    assert names.count("exp") == names.count("sin") == names.count("cos") == 1


@pytest.mark.parametrize(
    ("source", "point", "expected"),
    [
        ("abs(x)", 0.0, 0.0),
        ("max(x, 0)", 0.0, 0.0),
        ("max(0, x)", 0.0, 1.0),
        ("min(x, 0)", 0.0, 0.0),
        ("relu(x)", 0.0, 0.0),
        ("sqrt(x)", 0.0, np.inf),
        ("cbrt(x)", 0.0, np.inf),
        ("protected_sqrt(x)", 0.0, 0.0),
        ("hypot(x, 0)", 0.0, 0.0),
        ("x**1", 0.0, 1.0),
        ("x**2", 0.0, 0.0),
        ("x**0", 0.0, 0.0),
        ("x**(x*0)", 0.0, 0.0),
        ("(-2 - x)**3", 0.0, -12.0),
        ("0**(x + 1)", 0.0, 0.0),
        ("x and 3*x", 2.0, 3.0),
        ("x or 3*x", 2.0, 1.0),
        ("x or 3*x", 0.0, 3.0),
        ("0 < x < 1", 0.5, 0.0),
    ],
)
def test_the_derivative_at_a_kink_or_an_edge_is_that_of_one_side_or_zero(source, point, expected):
    assert at(derivative(parse(source), "x"), point) == expected


@pytest.mark.parametrize(
    ("source", "point", "expected"),
    [
        ("sqrt(x) if x > 0 else 0", 0.0, 0.0),
        ("log(x)*x if x > 0 else 2*x", -1.0, 2.0),
        ("1/x if x != 0 else 1", 0.0, 0.0),
        ("max(sqrt(x), 5*x + 1)", 0.0, 5.0),
        ("(sqrt(x) + (1/x if x > 2 else sqrt(x))) if x > 1 else x", 0.0, 1.0),
        ("(sqrt(x) if x > 0 else 3) * (4 if x > 2 else sin(x))", 0.0, 3.0),
    ],
)
def test_a_branch_that_is_not_taken_contributes_nothing_even_where_it_is_infinite(source, point, expected):
    assert at(derivative(parse(source), "x"), point) == expected


def test_a_zero_within_a_taken_branch_still_contributes():
    second = derivative(derivative(parse("sin(x)*x if x > -1 else 0"), "x"), "x")
    assert at(second, 0.0) == 2.0


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("exp(-x*x)", lambda x: mpmath.exp(-x * x)),
        ("tanh(3*x)/x", lambda x: mpmath.tanh(3 * x) / x),
        ("sigmoid(x)*log1p(x)", lambda x: mpmath.log1p(x) / (1 + mpmath.exp(-x))),
        ("atan(x)**3", lambda x: mpmath.atan(x) ** 3),
        ("x**x", lambda x: x**x),
        ("cbrt(x) + hypot(x, 2)", lambda x: mpmath.cbrt(x) + mpmath.hypot(x, 2)),
        ("asin(x/9) - acos(x/7)*sinh(x)", lambda x: mpmath.asin(x / 9) - mpmath.acos(x / 7) * mpmath.sinh(x)),
    ],
)
def test_derivatives_of_derivatives_are_those_of_mpmath(source, function):
    tree = parse(source)
    for order in (1, 2, 3):
        tree = derivative(tree, "x")
        for point in (0.25, 1.0, 3.5):
            with mpmath.workdps(60):
                expected = float(mpmath.diff(function, mpmath.mpf(point), order))
            assert at(tree, point) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_the_tail_of_tanh_has_all_its_digits_and_its_second_derivative_never_becomes_nan():
    first = derivative(parse("tanh(x)"), "x")
    assert at(first, 30.0) == pytest.approx(float(mpmath.sech(30) ** 2), rel=1e-14)
    assert at(derivative(first, "x"), 1000.0) == 0.0


def test_assignments_and_branches_of_a_function_are_differentiated():
    tree = parse(
        "def f(a, b):\n    s = a*b\n    if s > 1:\n        s = s*s\n    else:\n        s = 3*s\n    return s + a"
    )
    by_a, by_b = gradient(tree)
    assert (at(by_a, 2.0, 3.0), at(by_b, 2.0, 3.0)) == (2 * 6 * 3 + 1, 2 * 6 * 2)
    assert (at(by_a, 0.5, 1.0), at(by_b, 0.5, 1.0)) == (4.0, 1.5)


def test_a_cotangent_multiplies_every_derivative():
    by_a, by_b = gradient(parse("sin(a)*b"), cotangent="s")
    assert by_a.parameters == ("s", "a", "b")
    assert at(by_a, 7.0, 0.5, 2.0) == pytest.approx(14 * np.cos(0.5), rel=1e-15)
    assert at(by_b, 7.0, 0.5, 2.0) == pytest.approx(7 * np.sin(0.5), rel=1e-15)


@pytest.mark.slow
def test_the_derivative_of_a_chain_of_100_000_is_right():
    tree = chain(100_000, sines_and_factors)
    found = derivative(tree, "x")
    # The product of the factors 1.5*cos, in forward order.
    value, expected = 0.3, 1.0
    for i in range(100_000):
        expected *= np.cos(value) if i % 2 else 1.5
        value = np.sin(value) if i % 2 else value * 1.5
    assert at(found, 0.3) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_product_of_constants_that_overflows_stays_a_product():
    assert at(derivative(parse("1e200*(1e200*(x*1e-300))"), "x"), 1.0) == pytest.approx(1e100)
    assert at(derivative(parse("x*1e300*1e300"), "x"), 1.0) == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("step", [sines_and_factors, choices])
def test_the_derivative_is_linear_in_the_size_of_the_formula(step):
    small, large = (chain(count, step) for count in (1000, 4000))
    first, second = derivative(small, "x").size, derivative(large, "x").size
    assert first < 6 * small.size
    assert second < 4.1 * first


def test_a_derivative_written_as_text_is_read_back():
    found = derivative(chain(60, sines_and_factors), "x")
    assert parse(str(found), ("x",)) == found


SMOOTH = ("add", "sub", "mul", "div", "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan")
small_numbers = st.floats(0.5, 3.0)


def parts(tree: Tree) -> list[Tree]:
    """Every subtree of a tree without assignments."""
    nodes = [node for node in ast.walk(tree.result) if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call)]
    return [Tree(tree.parameters, node, functions=tree.functions) for node in nodes]


@given(expressions(SMOOTH), st.tuples(small_numbers, small_numbers, small_numbers))
def test_derivatives_of_random_analytic_formulas_are_those_of_complex_steps(node, point):
    tree = parse(node, PARAMETERS)
    assume(all(1e-3 < abs(at(part, *point)) < 1e3 for part in parts(tree)))
    for position, name in enumerate(PARAMETERS):
        columns = [np.array([value + 1e-40j * (i == position)]) for i, value in enumerate(point)]
        expected = float(evaluate(tree, columns, "complex128").imag[0] / 1e-40)
        assert at(derivative(tree, name), *point) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.slow
@given(expressions((*STANDARD,)), st.tuples(small_numbers, small_numbers, small_numbers))
def test_derivatives_of_random_formulas_are_the_slopes_of_their_values(node, point):
    tree = parse(node, PARAMETERS)
    step = 1e-5
    assume(all(abs(at(part, *point)) < 100 for part in parts(tree)))
    for position, name in enumerate(PARAMETERS):
        shifted = np.array([value + (i == position) * step * np.arange(-4, 5) for i, value in enumerate(point)])
        values = evaluate(tree, list(shifted))
        slopes = np.diff(values) / step
        # If the slopes on both sides differ, there is a kink, a step or too much curvature for differences.
        assume(np.isfinite(slopes).all() and np.ptp(slopes) < 1e-3 * (1 + np.abs(slopes).max()))
        found = at(derivative(tree, name), *point)
        assume(np.isfinite(found))  # as in sqrt(x*0)
        assert found == pytest.approx(slopes.mean(), rel=1e-2, abs=1e-2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: derivative(parse("a*b"), "c"), "no parameter 'c' to differentiate by; its parameters are a, b"),
        (lambda: gradient(parse("a*b"), cotangent="a"), "cannot be called 'a'"),
    ],
)
def test_unknown_and_taken_names_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
