"""Constants that depend on the run: its number is a further control, and equations have cases by it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from shine.base.typing import Floats
from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.interpretation import Rebuilding
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit

RUN = "run"
"""Name of the control, and the subscript of a constant by run."""

MARK = 0.25
"""Added to places that stand for constants: no whole or half exponent comes about."""


class _Cases(Rebuilding):
    """Takes the case of a run, and writes out names."""

    def __init__(self, number: float | None, written: Mapping[str, ast.expr]) -> None:
        self.number, self.written = number, dict(written)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.written.get(node.id, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and operand.value < 0:  # type: ignore
            return ast.Constant(-operand.value)  # type: ignore[operator]
        return ast.UnaryOp(node.op, operand)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test = node.test
        by_run = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == RUN
        if not by_run or self.number is None:
            return (yield from super().visit_IfExp(node))
        border = test.comparators[0]  # type: ignore[attr-defined]
        taken = node.body if self.number <= float(border.value) else node.orelse
        return (yield taken)


def cases(value: float, count: int) -> str:
    """A number for each of some runs, as text, the same in all."""
    return "".join(f"{value!r} if {RUN} <= {run + 0.5} else " for run in range(count - 1)) + repr(value)


def of_run(tree: Tree, number: int) -> tuple[Tree, list[int]]:
    """The equation of one run, without cases, and the places of its constants among those of the tree."""
    named, values = with_named_constants(tree)
    places = named.parameters[len(named.parameters) - len(values) :]
    visitor = _Cases(number, {name: ast.Constant(place + MARK) for place, name in enumerate(places)})
    for name, value in named.assignments:
        visitor.written[name] = visitor.visit(value)
    numbered = replace(tree, assignments=(), result=visitor.visit(named.result))
    kept = [int(value) for value in with_named_constants(numbered)[1]]
    return with_numbers(numbered, values[kept]), kept


def bare(tree: Tree) -> Tree:
    """The equation with names for its constants by run, whose values are left out."""
    return replace(tree, assignments=())


def shown(tree: Tree) -> str:
    """The equation for people: ``k[run]`` for a constant by run."""
    subscripted = {name: ast.Name(f"{name}[{RUN}]", ast.Load()) for name, _ in tree.assignments}
    names = {name: subscripted[name] if _by_run(value) else value for name, value in tree.assignments}
    return replace(tree, assignments=(), result=_Cases(None, names).visit(tree.result)).readable


def values_by_run(tree: Tree, count: int) -> dict[str, list[Tree]]:
    """The value of each constant by run, in the order of the runs, as constant formulas."""
    return {
        name: [
            Tree(tree.parameters, _Cases(number, {}).visit(value), functions=tree.functions) for number in range(count)
        ]
        for name, value in tree.assignments
        if _by_run(value)
    }


def _by_run(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == RUN for node in ast.walk(value))


def covariance_of(covariance: Floats, kept: list[int]) -> Floats:
    """The covariance of some constants, one of which may be written twice."""
    return covariance[kept][:, kept]
