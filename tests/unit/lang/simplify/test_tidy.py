"""Tidy formulas have the same values, no more nodes, and the form that people write."""

from __future__ import annotations

import ast
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PARAMETERS, trees

from shine.compiler.arrays import COMPILED
from shine.evaluate.rollouts.rates import with_named_constants
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.simplify.tidy import nodes_and_figures, short, tidy

FORMS = {
    "-1.0*(v1*v2*cos(v3))": "-v1*v2*cos(v3)",
    "sqrt(square(v2))*x": "x*abs(v2)",
    "2.25 - 2.0*x*y - square(x - 1.5)": "x*(3 - x - 2*y)",
    "367*sqrt(cube(x))": "367*x**1.5",
    "365.2*x*sqrt(x)": "365.2*x**1.5",
    "x**1.5*x": "x**2.5",
    "(x**1.5)**0.5": "x**0.75",
    "square(x**2.25)*y": "x**4.5*y",
    "0.5*x**-0.5*log(y)": "0.5*log(y)/sqrt(x)",
    "exp(1.5*log(x) + y)": "x**1.5*exp(y)",
    "square(sqrt(-x))": "-x",
    "((2.5/x)**0.25)**4": "2.5/x",
    "sqrt(-x)**-2": "-1/x",
    "exp(1.38629436111989 - 0.5*x)": "4*exp(-0.5*x)",
    "0.3333333333333333*x*y": "x*y/3",
    "3.0*sin(x)*cos(x)": "1.5*sin(2*x)",
    "0.5*sin(2.0*x)": "sin(x)*cos(x)",
    "1.0 - 2.0*square(sin(x))": "cos(2*x)",
    "3.0*square(sin(x)) + 3.0*square(cos(x)) + y": "y + 3",
    "sin(x)/cos(x)": "tan(x)",
    "log(x) - log(y)": "log(x/y)",
    "1.9*log(sqrt(x))": "0.95*log(x)",
    "x*x - 3.0*x + 2.25": "(x - 1.5)**2",
    "sqrt(x)*sqrt(x + y*(y/x - 2.0*cos(z)))": "sqrt(x*(x - 2*y*cos(z)) + y**2)",
    "4.1887902047863905*(square(x)*x - square(y)*y)": "4*pi/3*(x**3 - y**3)",
    "cos(c)*b*(a + b)*square(a)": "a**2*b*(a + b)*cos(c)",
    "0.1 + 0.2*x*3.0": "0.6*x + 0.1",
    "-1.0*x*(a - b)": "x*(b - a)",
    "y*(2.5*abs(x) - z/y)": "2.5*y*abs(x) - z",
    "-2.0*x*(cos(y) - 1.0)": "2*x*(1 - cos(y))",
    "log(7275331.9583896/x)": "15.8 - log(x)",
    "log(7.5e6/x)": "log(7.5e6/x)",
    "15.830413578506539 - log(x)": "log(7.5e6/x)",
    "1.4142135623730951*a*sqrt(g*h)": "a*sqrt(2*g*h)",
    "a*sqrt(2.0*g*h)": "a*sqrt(2*g*h)",
    "-2.63*sin(-0.54*x)": "2.63*sin(0.54*x)",
    "2.0*3.141592653589793*x": "2*pi*x",
    "-0.07957747154594767*x": "-x/(4*pi)",
    "x*0.5641895835477562": "x/sqrt(pi)",
    "cos(-0.442*x - 2)": "cos(0.442*x + 2)",
    "square(-0.3*x - 2)": "(0.3*x + 2)**2",
    "(x - 4)/(-0.0023/y - 0.0215)": "(4 - x)/(0.0023/y + 0.0215)",
}


@pytest.mark.parametrize("text", FORMS)
def test_formulas_are_written_as_people_write_them(text):
    tree = parse(text)
    found = tidy(tree, COMPILED)
    assert found.readable == FORMS[text]
    assert found.size <= tree.size
    assert tidy(found, COMPILED) == found


def precise(node, point):
    """The value with 60 digits, by mpmath; only operators and functions of real numbers."""
    names = ("sqrt", "exp", "log", "sin", "cos", "tan")
    functions = {name: getattr(mpmath, name) for name in names}
    functions |= {
        "abs": abs,
        "square": lambda x: x * x,
        "cube": lambda x: x**3,
        "inv": lambda x: 1 / x,
        "pi": mpmath.pi,
    }
    functions["pow"] = mpmath.power
    code = compile(node, "formula", "eval")
    with mpmath.workdps(60):
        return eval(code, {"__builtins__": {}}, {**functions, **{name: mpmath.mpf(v) for name, v in point.items()}})


def ordinary(tree, rows):
    """Rows in which no subformula is infinite, undefined, huge or tiny."""
    count = len(rows[0])
    good = np.ones(count, np.bool_)
    with np.errstate(all="ignore"):
        for node in ast.walk(tree.result):
            if isinstance(node, ast.expr) and not (isinstance(node, ast.Name) and node.id not in PARAMETERS):
                values = evaluate(Tree(PARAMETERS, node, functions=STANDARD), rows, np.float64, COMPILED)
                sizes = np.broadcast_to(abs(values), count)
                good &= np.isfinite(sizes) & (sizes < 1e100) & ((sizes == 0) | (sizes > 1e-100))
    return good


def angles(tree: Tree, row: list[np.ndarray]) -> list[float]:
    """Arguments of sines, cosines and tangents at a row."""
    calls = [node for node in ast.walk(tree.result) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    turned = [call.args[0] for call in calls if call.func.id in ("sin", "cos", "tan")]
    with np.errstate(all="ignore"):
        found = [evaluate(Tree(PARAMETERS, node, functions=STANDARD), row, np.float64, COMPILED) for node in turned]
    return [float(np.broadcast_to(each, 1)[0]) for each in found]


SMOOTH = ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "square", "cube", "inv",
          "pow")  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150)
@given(trees(SMOOTH), st.integers(0, 2**32))
def test_values_are_equal_for_an_independent_oracle(tree, seed):
    found = tidy(tree, COMPILED)
    assert found.size <= tree.size
    rng = np.random.default_rng(seed)
    for _ in range(8):
        point = {name: float(rng.uniform(-3.0, 3.0)) for name in PARAMETERS}
        row = [np.array([value]) for value in point.values()]
        if not ordinary(tree, row).all():
            continue
        if any(abs(each) > 1e6 for each in angles(tree, row)):
            continue  # the digits of a constant decide it
        expected = precise(str(tree), point)
        if abs(float(evaluate(tree, row, np.float64, COMPILED)[0]) - expected) > 1e-12 * max(abs(expected), 1):
            continue  # rounding is magnified too much
        if not isinstance(expected, mpmath.mpf | int | float):
            continue  # a root of a negative number that float64 takes for whole
        nearby = precise(str(tree), {name: value * (1 + 1e-13) for name, value in point.items()})
        value = precise(str(found), point)
        # Constants are rounded to about 1e-15, which a formula may magnify as it magnifies changes of its arguments.
        assert abs(value - expected) <= 1e-9 * max(abs(expected), 1) + 100 * abs(nearby - expected), (str(tree), point)


@pytest.mark.slow
@settings(max_examples=150)
@given(trees(), st.integers(0, 2**32), st.booleans())
def test_all_functions_keep_their_values(tree, seed, exact):
    found = tidy(tree, COMPILED, exact=exact)
    length = nodes_and_figures if exact else lambda tree: tree.size
    assert length(found) <= length(tree)
    rows = list(np.random.default_rng(seed).uniform(0.5, 2.5, (len(PARAMETERS), 50)))
    with np.errstate(all="ignore"):
        expected, values = (np.broadcast_to(evaluate(form, rows, np.float64, COMPILED), 50) for form in (tree, found))
        named, constants = with_named_constants(tree)
        inputs = [*rows, *constants.tolist()]
        moved = [evaluate(named, [x * (1 + s * 1e-12) for x in inputs], np.float64, COMPILED) for s in (-1, 1)]
        change = sum(abs(np.broadcast_to(values, 50) - expected) for values in moved)
        smooth = ordinary(tree, rows) & (change <= 1e-9 * abs(expected))
        wrong = ~(abs(values - expected) <= 1e-8 * abs(expected) + 1e-12)
    assert not (smooth & wrong).any(), (str(tree), str(found))


@given(trees(), st.booleans())
def test_tidying_again_changes_nothing(tree, exact):
    found = tidy(tree, COMPILED, exact=exact)
    assert tidy(found, COMPILED, exact=exact) == found


def test_numbers_lose_the_digits_of_rounding_only():
    assert short(0.1 + 0.2) == 0.3
    assert short(1.3 * 1.7) == 2.21
    assert short(1 / 3) == 1 / 3
    assert short(1.00000000001) == 1.00000000001


@pytest.mark.parametrize(
    ("found", "short"),
    [
        ("0.15100000000008001*x - 0.4599999999998788*x**0.6666666666666666 + 1.234567891",
         "0.151*x - 0.46*x**0.6666666666666666 + 1.234567891"),
        ("9.81*x*(0.050968399592253*y**2 + z)", "x*(y**2/2 + 9.81*z)"),
        ("2.7*x/(y + 0.37037037037*z)", "2.7*x/(y + z/2.7)"),
        ("1.7*exp(x)*(y - 1.4117647058824)", "(1.7*y - 2.4)*exp(x)"),
        ("x*(y + 0.333333333336*z)", "x*(y + z/3)"),
        ("3*(x + 1.16666666666667)**2 + 0.916666666666667", "x*(3*x + 7) + 5"),
        ("(x - 6.5)**2/9 - 0.0277777777777", "(x - 7)*(x - 6)/9"),
        ("1.4 - 1.76/(x + 1.4)", "(7*x + 1)/(5*x + 7)"),
        ("0.75*x/(y + 1.25)", "3*x/(4*y + 5)"),
        ("x + 0.916666666666667", "x + 11/12"),
        ("0.25*x*(y - 8) + 0.5", "x*(y - 8)/4 + 0.5"),
        ("0.0707106781186548*sqrt(200 - x*y)", "sqrt(1 - x*y/200)"),
        ("0.714285714285714*x/y", "x/(1.4*y)"),
        ("0.714285714285714/y", "5/(7*y)"),
        ("5*x/(7*y)", "5*x/(7*y)"),
        ("0.35*x/(0.07*y)", "5*x/y"),
        ("157.142857142857*x/y", "1100*x/(7*y)"),
        ("0.00777777777777778*x", "0.07*x/9"),
        ("z - 0.0909090909090909*x/y", "z - x/(11*y)"),
        ("x*(y + 2)/1.4 + 3", "x*(y + 2)/1.4 + 3"),
        ("0.5*x/y + 0.1", "0.5*x/y + 0.1"),
    ],
)  # fmt: skip
def test_exact_formulas_have_the_numbers_that_people_write(found, short):
    assert tidy(parse(found), COMPILED, digits=9, exact=True).readable == short


def length(text):
    """Nodes, figures and points of a text."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Name)]
    numbers = re.findall(r"\d[\d.]*", text)
    return len(nodes) + sum(1 + len(each.replace(".", "").strip("0")) + ("." in each) for each in numbers)


SHORT = [*map(str, range(1, 31)), *(f"{tenths / 10:g}" for tenths in range(1, 100))]


@given(
    st.sampled_from(["x", "x*y", "x/y", "x/(y*z)", "1/y"]),
    st.lists(st.tuples(st.sampled_from("*/"), st.sampled_from([*SHORT, "0.07", "0.25", "0.35"])), max_size=3),
)
def test_products_keep_their_values_without_more_figures(first, factors):
    text = first + "".join(map("".join, factors))
    found = tidy(parse(text, ("x", "y", "z")), COMPILED, digits=9, exact=True).readable
    point = {"x": Fraction(3, 2), "y": Fraction(7, 5), "z": Fraction(11, 3)}
    exactly = [eval(re.sub(r"(\d[\d.]*)", r"F('\1')", each), {"F": Fraction, **point}) for each in (text, found)]
    assert abs(exactly[1] / exactly[0] - 1) < 1e-8
    assert length(found) <= length(text)


@pytest.mark.parametrize(("above", "below"), [("x", ""), ("x", "y"), ("", "y"), ("(x + 2)", "sqrt(y)")])
@given(st.sampled_from(SHORT), st.sampled_from(SHORT))
def test_a_factor_stands_where_it_needs_the_fewest_figures(above, below, numerator, divisor):
    def written(one, other):
        bottom = "*".join(filter(None, ("" if other == "1" else other, below)))
        top = "*".join(filter(None, ("" if one == "1" and above else one, above)))
        return top if not bottom else f"{top}/({bottom})" if "*" in bottom else f"{top}/{bottom}"

    value = Fraction(numerator) / Fraction(divisor)
    whole = ("*".join(filter(None, (repr(float(value)), above)))) + (f"/{below}" if below else "")
    found = tidy(parse(whole, ("x", "y")), COMPILED, digits=9, exact=True).readable
    ways = [(one, f"{float(Fraction(one) / value):.12g}") for one in SHORT]
    ways = [(one, other) for one, other in ways if Fraction(one) / Fraction(other) == value]
    assert length(found) <= min(length(written(*way)) for way in ways) + 1  # a decimal may keep its point


@pytest.mark.parametrize(
    ("found", "short"),
    [
        ("x/(x/y + 1)", "x*y/(x + y)"),
        ("3/(1/x + 1/y)", "3*x*y/(x + y)"),
        ("5.2/(2.1/x + 1)", "5.2*x/(x + 2.1)"),
        ("1/(0.3/x + 0.5)", "1/(0.3/x + 0.5)"),
        ("x/(y + z/x)", "x/(z/x + y)"),
        ("1/(1/x + 1/y + 1/z)", "1/(1/x + 1/y + 1/z)"),
        ("(y + sqrt(x**2/z))*sqrt(z)", "x + y*sqrt(z)"),
        ("sqrt(x**2*y/z)", "x*sqrt(y/z)"),
        ("sqrt(x**2/(y*z))", "x/sqrt(y*z)"),
    ],
)
def test_quotients_have_no_quotients_within_where_that_is_shorter(found, short):
    ranges = dict.fromkeys("xyz", (0.5, 5.0))
    assert tidy(parse(found), COMPILED, ranges).readable == short
