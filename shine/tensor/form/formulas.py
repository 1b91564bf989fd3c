"""Formulas of the language as instructions: elementwise, with broadcasting."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from shine.lang.forms.functions import with_definitions
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.operations import FROM_THE_LANGUAGE

DIFFERENTIABLE: Mapping[str, Primitive] = with_definitions(
    STANDARD,
    """
def log1p(x):
    # Kahan's correction. Where 1 + x is 1 it would divide by 0, and where it is x itself, infinity by infinity.
    u = 1 + x
    gap = u - 1
    return x if gap == 0 else log(u) if u == x else log(u) * (x / (1 if gap == 0 else gap))

def expm1(x):
    # By the hyperbolic tangent of half of it, which keeps the digits near 0.
    half = tanh(0.5 * min(1, x))
    return exp(x) - 1 if x > 1 else 2 * half / (1 - half)
""",
)
"""The language's functions; of some, whose definitions divide 0 by 0 in branches that are not taken, others are here.
In formulas these have derivatives of their own, but in a module a formula is differentiated as it is written."""


def definition_of(function: Primitive) -> Tree:
    """The definition of a composite that modules have: that of `DIFFERENTIABLE` for a function of the language."""
    definition = (DIFFERENTIABLE[function.name] if STANDARD.get(function.name) == function else function).definition
    assert definition is not None, f"{function.name!r} is neither a basic primitive nor a composite"
    return definition


def write_composite(builder: FunctionBuilder, function: Primitive, operands: Sequence[Value]) -> Value:
    """Add the instructions of a composite, as `write_formula` does, and note whose they are."""
    result = write_formula(builder, definition_of(function), operands)
    if result not in operands:
        builder.composites.setdefault(result.name, (function, tuple(operands)))
    return result


def write_formula(builder: FunctionBuilder, tree: Tree, operands: Sequence[Value]) -> Value:
    """Add the instructions of a formula.

    Parameters
    ----------
    builder : FunctionBuilder
    tree : Tree
    operands : sequence of Value
        The parameters' values: floats of one element type, whose shapes can be broadcast together.

    Returns
    -------
    Value
        Floats of the same element type. Its shape is that of the operands that the formula uses, broadcast.
    """
    return _Writer(builder, operands[0].type.dtype).run(tree, operands)


class _Writer(Interpretation):
    """Comparisons and logic give truth, which becomes a number where a number is needed, and the other way round."""

    def __init__(self, builder: FunctionBuilder, dtype: str) -> None:
        self.builder, self.dtype = builder, dtype
        self.values: dict[str, Value] = {}
        self.functions: Mapping[str, Primitive] = {}

    def run(self, tree: Tree, operands: Sequence[Value]) -> Value:
        caller = self.values, self.functions
        self.values, self.functions = dict(zip(tree.parameters, operands, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.values[name] = self._number(self.visit(value))
        result = self._number(self.visit(tree.result))
        self.values, self.functions = caller
        return result

    def _apply(self, name: str, *operands: Value) -> Value:
        if name in ("logical_and", "logical_or"):
            return self._logic(name, *operands)
        if name == "logical_not":
            return self.builder.emit("not", [self._truth(operands[0])])[0]
        if name == "where":
            condition, *branches = operands
            return self.builder.emit("select", [self._truth(condition), *map(self._number, branches)])[0]
        if name in FROM_THE_LANGUAGE:
            return self.builder.emit(name, [self._number(operand) for operand in operands])[0]
        return self.run(definition_of(self.functions[name]), [self._number(operand) for operand in operands])

    def _logic(self, name: str, left: Value, right: Value) -> Value:
        """`and` and `or` of truth; of numbers, they give one of them."""
        if left.type.dtype == right.type.dtype == "bool":
            return self.builder.emit(name.removeprefix("logical_"), [left, right])[0]
        first, second = (right, left) if name == "logical_and" else (left, right)
        return self.builder.emit("select", [self._truth(left), self._number(first), self._number(second)])[0]

    def _truth(self, value: Value) -> Value:
        if value.type.dtype == "bool":
            return value
        return self.builder.emit("ne", [value, self.builder.like(value, 0)])[0]

    def _number(self, value: Value) -> Value:
        return value if value.type.dtype != "bool" else self.builder.emit("cast", [value], dtype=self.dtype)[0]

    def visit_Constant(self, node: ast.Constant) -> Value:
        assert isinstance(node.value, int | float)
        return self.builder.constant(node.value, self.dtype)

    def visit_Name(self, node: ast.Name) -> Value:
        return self.values[node.id]
