"""The work of simplification is in proportion to the size of the formula, whatever its shape."""

from __future__ import annotations

import ast
import copy
import sys

import pytest
from helpers.markers import mostly_slow

from shine.compiler.arrays import COMPILED
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.tidy import tidy

MOST_CALLS = 4000
"""Calls of functions for each node, less than a millisecond. Work that grows faster than the formula needs many times
as many in each of these families."""

CALLS = {1: ["{f}(y)"], 2: ["{f}(y, x)", "{f}(x, y)", "{f}(y, 1.7)"], 3: ["{f}(x, y, z)", "{f}(y, x, 1.5)"]}
AROUND = ["{}", "2.5*{}", "z - {}"]
NESTED = [
    *[
        around.format(call.format(f=name))
        for name, function in STANDARD.items()
        for call in CALLS[function.arity]
        for around in AROUND
    ],
    "x*(y + 1)", "(y + 1)*(x + 2)", "(y + x)**2", "(y*x)**0.7", "sqrt(x*y)*sqrt(z)", "log(x*y) + log(x)", "x - z/y",
    "exp(1.5 + log(y))", "tan(-x*y)", "sin(x)*cos(y)", "(x - y)/(z + 3.5)", "sin(-y)*cos(x)", "cos(y)**2 + x",
]  # fmt: skip
WIDE = {
    "names": "x{0}", "multiples": "{0}.37*x{0}", "sines": "sin({0}.5*x{1})", "products": "x{0}*x{1}",
    "squares": "{0}.5*(x{0} + {1})**2", "quadratics": "x{0}**2 + 3*x{0}", "logarithms": "log({0}.5*x{0})",
    "roots": "sqrt(2.5*x{0})", "sums": "(x{0} + 1)*(x{1} + 2.5)", "angles": "sin(x{0})**2 + cos(x{0})**2",
    "powers": "x**{0}", "inverses": "1/(x{0} + 1)", "one factor": "x*x{0}", "quotients": "sin(x{0})/cos(x{0})",
    "fractions": "x{0}**0.{0}1", "exponentials": "exp(x{0} + 1.5)", "few": "x{2}*sin(x{3})", "numbers": "0.{0}3",
}  # fmt: skip


def calls_of(action):
    """How many functions an action calls: a measure of its time that is the same on every machine."""
    count = 0

    def seen(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def nested(text, times):
    """A formula of y with itself in place of y, time and again; it may be deeper than text can be."""
    form, part = parse(text, ("x", "y", "z")), ast.Name("x", ast.Load())

    class Replaced(ast.NodeTransformer):
        def visit_Name(self, node):
            return part if node.id == "y" else node

    for _ in range(times):
        part = Replaced().visit(copy.deepcopy(form.result))
    return Tree(form.parameters, part, functions=form.functions)


def joined(text, operator, terms=200):
    return parse(operator.join(f"({text.format(i, i + 1, i % 5, i % 3)})" for i in range(terms)))


def check(tree):
    tidy(tree, COMPILED)  # compiles what folds its constants
    calls = [calls_of(lambda: tidy(tree, COMPILED)), calls_of(lambda: simplify(tree, functions=COMPILED))]
    assert max(calls) <= MOST_CALLS * tree.size, [each / tree.size for each in calls]


@pytest.mark.parametrize("text", mostly_slow(NESTED[::8], fast=NESTED[::40]))
def test_deep_formulas_take_work_in_proportion_to_their_size(text):
    check(nested(text, 30))


@pytest.mark.parametrize("operator", mostly_slow("+*", fast="*"))
@pytest.mark.parametrize("kind", mostly_slow(list(WIDE)[::2], fast=list(WIDE)[::10]))
def test_wide_formulas_take_work_in_proportion_to_their_size(kind, operator):
    check(joined(WIDE[kind], operator))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["sin(-2.5*y)", "exp(1.5 - y)", "sqrt(3.5*y)"])
def test_formulas_deeper_than_the_stack_are_simplified(text):
    tree = nested(text, 2 * sys.getrecursionlimit())
    assert tidy(tree, COMPILED).size <= tree.size
