"""SymPy's expressions as formulas; the oracle is SymPy's own evaluation with fifty digits."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import shine
from shine.base.errors import GraphImportError, UnsupportedSyntaxError
from shine.formats.read.sympy import from_sympy
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.sympy import FUNCTIONS, RECIPROCALS

sympy = pytest.importorskip("sympy", reason="needs SymPy: pip install 'shine-gp[sympy]'")

a, b, x, y, z = sympy.symbols("a b x y z", real=True)
Rational, Piecewise = sympy.Rational, sympy.Piecewise

WRITTEN: dict[str, Any] = {
    "sqrt(a*a + b*b)": sympy.sqrt(a**2 + b**2),
    "x - y - 1": x - y - 1,
    "-x - y": -x - y,
    "2*x/(3*(y*y))": Rational(2, 3) * x / y**2,
    "square(a + b)": (a + b) ** 2,
    "cube(a + b)": (a + b) ** 3,
    "x*x*x": x**3,
    "x**9": x**9,
    "x**1.5": x ** Rational(3, 2),
    "x**y": x**y,
    "1/x": 1 / x,
    "-1/x": -1 / x,
    "-2*x": -2 * x,
    "-(x/y)": -x / y,
    "1/sqrt(x)": 1 / sympy.sqrt(x),
    "0.3333333333333333": Rational(1, 3),
    "x/3": x / 3,
    "1/tan(x)": sympy.cot(x),
    "max(max(3, x), y)": sympy.Max(x, y, 3),
    "x if x > 0 else y if y < 1 else 0": Piecewise((x, x > 0), (y, y < 1), (0, True)),
    "x > 0 and y < 2": sympy.And(x > 0, y < 2),
    "not (x != 0 and y != 0)": sympy.Not(sympy.And(x, y)),
    "x % 3": sympy.Mod(x, 3),
    "hypot(x, y)": sympy.Function("hypot")(x, y),
    "2.5*x": 2.5 * x,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_an_expression_reads_as_one_would_write_it(text):
    tree = from_sympy(WRITTEN[text])
    assert str(tree) == text
    assert parse(text, tree.parameters).tokens == tree.tokens


UNARY = [
    getattr(sympy, name) for name in ("sin", "cos", "tanh", "atan", "Abs", "sign", "floor", "ceiling", "Heaviside")
]
leaves = st.one_of(
    st.sampled_from([x, y, z, sympy.pi, sympy.E, sympy.sqrt(2)]),
    st.integers(-5, 5).map(sympy.Integer),
    st.fractions(-3, 3, max_denominator=7).map(lambda f: Rational(f.numerator, f.denominator)),
    st.floats(-3, 3).map(sympy.Float),
)


def grown(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def related(parts: tuple[Any, Any, Any]) -> Any:
        relation, *sides = parts
        # SymPy refuses to compare what is not real for certain.
        if any(side.is_extended_real is False for side in sides):
            reject()
        return relation(*sides)

    relations = st.tuples(st.sampled_from([sympy.Lt, sympy.Ge, sympy.Ne]), children, children).map(related)
    return st.one_of(
        st.lists(children, min_size=2, max_size=4).map(lambda parts: sympy.Add(*parts)),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: sympy.Mul(*parts)),
        st.tuples(children, st.integers(-3, 4)).map(lambda parts: sympy.Pow(*parts)),
        st.tuples(st.sampled_from(UNARY), children).map(lambda parts: parts[0](parts[1])),
        children.map(lambda part: sympy.sqrt(sympy.Abs(part))),
        children.map(lambda part: sympy.exp(sympy.sin(part))),
        children.map(lambda part: sympy.log(2 + sympy.cos(part))),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: sympy.Max(*parts)),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: sympy.Min(*parts)),
        st.tuples(children, relations, children).map(lambda p: Piecewise((p[0], p[1]), (p[2], True))),
        st.tuples(children, relations, relations, children).map(
            lambda p: Piecewise((p[0], sympy.Or(p[1], sympy.Not(p[2]))), (p[3], True))
        ),
    )


POINT = {x: Rational(71, 97), y: Rational(-131, 89), z: Rational(229, 101)}


def exactly(expression: Any) -> float:
    """SymPy's value at the point; it may not be finite."""
    value = sympy.N(expression.subs(POINT), 50, maxn=200)
    return float(value) if value.is_Float or value.is_Rational else math.nan


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.recursive(leaves, grown, max_leaves=6))
def test_a_formula_has_the_value_of_its_expression(expression):
    largest = max((abs(exactly(part)) for part in sympy.preorder_traversal(expression) if part.is_Number is not None
                   and isinstance(part, sympy.Expr)), default=0.0)  # fmt: skip
    assume(largest < 1e4)
    # A step is nowhere near: rounding may move across it.
    for part in sympy.preorder_traversal(expression):
        if type(part).__name__ in ("floor", "ceiling", "sign", "Heaviside", "StrictLessThan", "GreaterThan"):
            inner = part.args[0] - part.args[1] if isinstance(part, sympy.core.relational.Relational) else part.args[0]
            assume(abs(exactly(inner) - round(exactly(inner))) > 1e-6)
    tree = from_sympy(expression, [x, y, z])
    columns = [np.array([float(POINT[symbol])]) for symbol in (x, y, z)]
    expected = exactly(expression)
    assume(math.isfinite(expected))
    assert evaluate(tree, columns)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [*FUNCTIONS, *RECIPROCALS])
def test_every_function_has_the_value_that_sympy_gives_it(name):
    kind = getattr(sympy, name)
    arity = 2 if name in ("Mod",) or issubclass(kind, sympy.core.relational.Relational) else 1
    for values in [(0.3, 0.7), (0.7, 0.3), (0.5, 0.5)]:
        expression = kind(*(x, y)[:arity])
        exact = kind(*map(Rational, values[:arity]))
        expected = float(exact) if isinstance(exact, sympy.Expr) else float(bool(exact))
        tree = from_sympy(expression, [x, y])
        assert evaluate(tree, [np.array([value]) for value in values])[0] == pytest.approx(expected, rel=1e-12)


def test_a_step_has_its_value_at_zero_and_keeps_nan():
    tree = from_sympy(sympy.Heaviside(x, Rational(1, 4)))
    values = evaluate(tree, [np.array([-2.0, 0.0, 3.0, np.nan])])
    np.testing.assert_array_equal(values, [0, 0.25, 1, np.nan])


def test_every_function_that_takes_formulas_takes_expressions():
    expression = x - y
    assert shine.parse(expression).parameters == ("x", "y")
    assert shine.jit(expression, [y, x])(1.0, 3.0) == 2.0
    assert shine.jit(x**2 + y, dtype="float32")(3.0, 1.0) == 10.0
    assert shine.grad(x**2 * y)(3.0, 2.0) == (12.0, 9.0)
    assert shine.Population.from_sources([expression], ["x", "y"]).primitives.features == ("x", "y")


def test_symbols_can_be_given_names():
    lam, sub = sympy.symbols("lambda x_{1}")
    tree = from_sympy(lam * sub + y, {sub: "x1", lam: "rate", y: "y"})
    assert tree.parameters == ("x1", "rate", "y")
    assert str(tree) == "y + rate*x1"
    with pytest.raises(UnsupportedSyntaxError, match="'lambda' is not a name"):
        from_sympy(lam + 1)


def test_repeated_parts_do_not_make_a_formula_explode():
    expression = x
    for _ in range(60):
        expression = sympy.sin(expression) + sympy.cos(expression)
    assert from_sympy(expression).size < 500


def test_an_expression_deeper_than_the_stack_of_python_is_read():
    expression = x
    for _ in range(2_000):
        expression = sympy.sin(expression, evaluate=False)
    tree = from_sympy(expression)
    assert parse(str(tree)).tokens == tree.tokens
    value = 0.5
    for _ in range(2_000):
        value = math.sin(value)
    assert evaluate(tree, [np.array([0.5])])[0] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sympy.erf(x), r"SymPy's erf has no counterpart in the language \(supported are sums, products, powers"),
        (sympy.I * x, "SymPy's ImaginaryUnit has no counterpart"),
        (sympy.zoo * x, "SymPy's ComplexInfinity has no counterpart"),
        (sympy.nan, "SymPy's NaN has no counterpart"),
        (sympy.oo, "SymPy's Infinity has no counterpart"),
        (sympy.Integral(x**x, x), r"SymPy's Integral has no counterpart in the language; evaluate it with doit\(\)"),
        (sympy.Derivative(sympy.Function("f")(x), x), "SymPy's Derivative has no counterpart"),
        (sympy.Tuple(x, y), "SymPy's Tuple has no counterpart"),
        (sympy.Matrix([x]).as_immutable(), "SymPy's ImmutableDenseMatrix has no counterpart"),
        (Piecewise((x, x > 0)), "Piecewise has no value for all other cases; add one with the condition True"),
        (sympy.Integer(10) ** 400, "SymPy's Integer: the number is too large"),
        (Rational(10**400, 3), "SymPy's Rational: the number is too large"),
        (sympy.Pow(-2, Rational(1, 3)), "is not a real number; the language has only real numbers"),
        (sympy.Symbol("x") + x, "two different symbols are called 'x'"),
        (sympy.Function("g")(x), "undefined function g of 1 arguments: there is no such primitive"),
        (sympy.Function("hypot")(x), "undefined function hypot of 1 arguments: the primitive takes 2"),
    ],
)  # fmt: skip
def test_a_part_without_a_counterpart_is_named(expression, message):
    with pytest.raises(GraphImportError, match=message):
        shine.parse(expression)


def test_an_object_that_is_not_an_expression_is_a_type_error():
    with pytest.raises(TypeError, match="a SymPy expression is needed, not str"):
        from_sympy("x + y")
    with pytest.raises(TypeError, match="a Tree, a model or a SymPy expression, not int"):
        shine.parse(3)


@pytest.mark.slow
def test_shine_does_not_import_sympy():
    code = "import sys, shine; shine.jit('a + b'); shine.formats.read.sympy; print('sympy' in sys.modules)"
    code = code.replace("shine.formats.read.sympy", "__import__('shine.formats.read.sympy')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
