"""Typeset formulas are read back as a person would read them, and mean what the formula means."""

from __future__ import annotations

import ast
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PARAMETERS

from shine.formats.page.markup import depth, render
from shine.formats.page.mathml import LARGEST, NARROW, NESTED, WIDE, Typesetter, typeset
from shine.formats.page.mathml.operators import name_element, number_element
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

OPERATORS = {
    "−": "-", "×": "*", "⋅": "*", "\u2062": "*", "\u2061": "", "≤": "<=", "≥": ">=", "=": "==", "≠": "!=",
    "¬": " not ", ",": ",", ";": " else ", "^": "**",
}  # fmt: skip
FENCES = {("|", "prefix"): "abs(", ("|", "postfix"): ")", ("⌊", "prefix"): "floor(", ("⌋", "postfix"): ")",
          ("⌈", "prefix"): "ceil(", ("⌉", "postfix"): ")"}  # fmt: skip
NAMES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sgn": "sign"}


def read(node: ElementTree.Element) -> str:
    """The visible formula as one line of code: only fences and the two-dimensional layout group."""
    inner = [read(child) for child in node]
    text = node.text or ""
    match node.tag:
        case "math" | "mrow" | "mtr" | "mtd":
            return "".join(inner)
        case "mn":
            return text.replace("−", "-")
        case "mi":
            return "2.718281828459045" if node.get("mathvariant") == "normal" and text == "e" else NAMES.get(text, text)
        case "mo":
            return FENCES.get((text, node.get("form")), "" if text == "{" else OPERATORS.get(text, text))
        case "mtext":
            word = text.strip()
            return f" {word} " if word in ("and", "or", "if") else {"mod": "%", "otherwise": ""}.get(word, word)
        case "mspace":
            return ""
        case "msub":
            return "".join(inner)
        case "msubsup":
            return f"{inner[0]}{inner[1]}**({inner[2]})"
        case "msup":
            return f"{inner[0]}**({inner[1]})"
        case "mfrac":
            # A fraction next to a factor is one operand.
            return f"(({inner[0]})/({inner[1]}))"
        case "msqrt":
            return f"sqrt({''.join(inner)})"
        case "mroot":
            return f"cbrt({inner[0]})"
        case "mtable":
            rows = [(read(row[0]), read(row[1]).removeprefix(" if ")) for row in node]
            *cases, (last, otherwise) = rows
            assert not otherwise
            return "".join(f"({value}) if ({test}) else " for value, test in cases) + f"({last})"
    raise AssertionError(node.tag)


def read_back(tree: Tree, room: float = WIDE) -> Tree:
    text = "".join(read(ElementTree.fromstring(render(term))) for term in typeset(tree, room=room)[-1][1])
    return parse(text, tree.parameters)


FAITHFUL = sorted(set(STANDARD) - {"floordiv"})
CONSTANTS = st.sampled_from([0.5, 2, 3.0, -3, -0.25, 10.0, 1.25e-7, -2.5e8, -1.5, 1.0])


def expressions() -> st.SearchStrategy[ast.expr]:
    leaf = st.one_of(CONSTANTS.map(ast.Constant), st.sampled_from(PARAMETERS).map(lambda n: ast.Name(n, ast.Load())))

    def applied(children: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[ast.expr]:
        return st.sampled_from([*FAITHFUL, "add", "sub", "mul", "div", "pow", "neg"]).flatmap(
            lambda name: st.lists(children, min_size=STANDARD[name].arity, max_size=STANDARD[name].arity).map(
                lambda arguments: application(name, arguments)
            )
        )

    return st.recursive(leaf, applied, max_leaves=8)


COLUMNS = np.random.default_rng(0).uniform(-3, 3, (len(PARAMETERS), 64))


@pytest.mark.slow
@given(expressions().map(lambda node: parse(node, PARAMETERS)))
@settings(max_examples=100, derandomize=True)
def test_a_reader_of_the_page_gets_the_values_of_the_formula(tree):
    assert_alike(tree, read_back(tree))


def assert_alike(tree: Tree, read: Tree) -> None:
    expected = evaluate(tree, COLUMNS)
    got = evaluate(read, COLUMNS)
    # Sums in another order round differently, which matters where a function is steep or jumps.
    steady = np.ones(len(expected), dtype=bool)
    for factor in (1 - 1e-9, 1 + 1e-9):
        moved = evaluate(tree, COLUMNS * factor)
        with np.errstate(all="ignore"):
            steady &= np.isfinite(moved) & (abs(moved - expected) <= 1e-6 * abs(expected))
    steady &= np.isfinite(expected) & np.isfinite(got)
    np.testing.assert_allclose(got[steady], expected[steady], rtol=1e-4)


@pytest.mark.parametrize(
    ("code", "read_as"),
    [
        ("a*b**2", "a*b**(2)"),
        ("(a*b)**2", "(a*b)**(2)"),
        ("(-a)**2", "(-a)**(2)"),
        ("-a**2", "-a**(2)"),
        ("sin(a)**2", "(sin(a))**(2)"),
        ("a - (b - x1)", "a-(b-x1)"),
        ("a - (b + x1)", "a-(b+x1)"),
        ("a + -2.0*b", "a-2*b"),
        ("a + b*-2.0", "a+b*(-2)"),
        ("-1.5/a + b", "-((1.5)/(a))+b"),
        ("(a + b)*(a - b)", "(a+b)*(a-b)"),
        ("(a if b > 0 else 1) + 1", "((a) if (b>0) else (1))+1"),
        ("2e-9*a", "2*10**(-9)*a"),
        ("(2e-9)**a", "(2*10**(-9))**(a)"),
        ("a*a*b", "a**(2)*b"),
        ("x1*x1", "x1**(2)"),
        ("a**0.5", "sqrt(a)"),
        ("log1p(-a)", "log(1-a)"),
        ("abs(a)*floor(b)", "abs(a)*floor(b)"),
        ("(a and b) or not x1", "a and b or  not x1"),
        ("a and (b or x1)", "a and (b or x1)"),
        ("(a % b) % x1", "(a%b)%x1"),
        ("6.283185307179586*a", "2*π*a"),
        ("a/-17.32050807568877", "-((a)/(10*sqrt(3)))"),
        ("b**-17.32050807568877", "b**(-10*sqrt(3))"),
        ("a/-2.0 + 1e20*b", "-((a)/(2))+10**(20)*b"),
    ],
)
def test_parentheses_stand_where_they_are_needed(code, read_as):
    ((_, terms),) = typeset(parse(code, PARAMETERS))
    text = "".join(read(ElementTree.fromstring(render(term))) for term in terms)
    assert text.split() == read_as.split()


@pytest.mark.parametrize("room", [0.0, 3.0, 8.0, NARROW])
@pytest.mark.slow
@given(tree=expressions().map(lambda node: parse(node, PARAMETERS)))
@settings(max_examples=100, derandomize=True)
def test_however_narrow_the_formula_means_the_same(room, tree):
    assert_alike(tree, read_back(tree, room))


@pytest.mark.parametrize(
    ("name", "markup"),
    [
        ("x", "<mi>x</mi>"),
        ("x0", "<msub><mi>x</mi><mn>0</mn></msub>"),
        ("x_12", "<msub><mi>x</mi><mn>12</mn></msub>"),
        ("v_max", "<msub><mi>v</mi><mi>max</mi></msub>"),
        ("sigma_x", "<msub><mi>σ</mi><mi>x</mi></msub>"),
        ("temperature", "<mi>temperature</mi>"),
        ("blood_pressure", "<mi>blood_pressure</mi>"),
        ("pi", "<mi>pi</mi>"),
        ("x_1_2", "<mi>x_1_2</mi>"),
        ("x0''", '<mrow><msub><mi>x</mi><mn>0</mn></msub><mo form="postfix">′′</mo></mrow>'),
        ("'", "<mtext>'</mtext>"),
    ],
)
def test_names(name, markup):
    assert render(name_element(name)) == markup


def test_the_exact_constant_is_kept_where_digits_are_left_out():
    assert 'data-exact="0.1234567890123"' in render(number_element(0.1234567890123, "0.1234567890123"))
    assert "data-exact" not in render(number_element(2.0, "2.0"))


def test_names_that_are_markup_are_escaped():
    assert "<b>" not in render(name_element("<b>"))


def test_assignments_come_before_the_result():
    (name, terms), (last, _) = typeset(parse("def f(a, b):\n    c = a + b\n    return c*c"))
    assert (name, last, len(terms)) == ("c", None, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("outer", "inner"), [("sin(", ")"), ("-(", ")"), ("1 + 2*(", ")")])
def test_deep_formulas_do_not_recur(outer, inner):
    levels = 3000
    node: ast.expr = ast.Name("a", ast.Load())
    pattern = ast.parse(f"{outer}HOLE{inner}", mode="eval").body
    for _ in range(levels):
        node = _filled(pattern, node)
    tree = parse(node, ("a",))
    markup = Typesetter(True, {}, 6).visit(tree.result).markup
    # Two signs cancel; everything else nests.
    assert (depth(markup) > 2 * levels) == (outer != "-(")


def test_formulas_that_browsers_cannot_show_are_not_typeset():
    assert typeset(parse(" + ".join(["a"] * (LARGEST + 1)), ("a",))) == []
    assert typeset(parse("sin(" * NESTED + "a" + ")" * NESTED, ("a",))) == []


def _filled(pattern: ast.expr, hole: ast.expr) -> ast.expr:
    if isinstance(pattern, ast.Name):
        return hole
    if isinstance(pattern, ast.Call):
        return ast.Call(ast.Name("sin", ast.Load()), [hole], [])
    if isinstance(pattern, ast.UnaryOp):
        return ast.UnaryOp(ast.USub(), hole)
    return ast.BinOp(ast.Constant(1), ast.Add(), ast.BinOp(ast.Constant(2), ast.Mult(), hole))
