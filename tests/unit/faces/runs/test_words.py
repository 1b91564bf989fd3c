"""The words of a formula, read from its text."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from strategies import trees

from shine.faces.runs.words import word, words_of
from shine.lang.forms.tree import Tree


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("2.5*exp(-a) + b", {"mul", "exp", "neg", "a", "add", "b"}),
        ("1e-300*x2 - -5.0", {"mul", "x2", "sub"}),
        ("x**-2.0", {"x", "pow"}),
        ("square(x)", {"square", "pow", "x"}),
        ("(a if a <= b else -0.0)//3 % 2", {"a", "b", "where", "le", "floordiv", "mod"}),
        ("not (a < b) and c", {"logical_not", "logical_and", "lt", "a", "b", "c"}),
        ("größe*µ", {"größe", "mul", "µ"}),
        ("exponent + 1", {"exponent", "add"}),
        ("min(0, -x) + max(-1.0, -0.0)", {"min", "neg", "x", "add", "max"}),
        ("", set()),
    ],
)
def test_the_words_of_a_formula(formula: str, words: set[str]):
    assert words_of(formula) == words


@pytest.mark.parametrize(("given", "known"), [("+", "add"), ("^", "pow"), ("ln", "log"), ("x1", "x1"), ("exp", "exp")])
def test_users_words_for_them(given: str, known: str):
    assert word(given) == known


BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}  # fmt: skip


@given(trees())
def test_names_and_operators_are_those_that_pythons_parser_finds(tree: Tree):
    nodes = list(ast.walk(ast.parse(str(tree), mode="eval")))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    operators = {BINARY[type(node.op)] for node in nodes if isinstance(node, ast.BinOp)}
    found = words_of(str(tree))
    assert names <= found
    assert found & (set(BINARY.values()) - names - {"pow"}) == operators - names - {"pow"}
