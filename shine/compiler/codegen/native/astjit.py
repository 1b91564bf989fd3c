"""AstJit: the visitor that lowers a tree to LLVM IR."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from llvmlite import ir

from shine.base.errors import LoweringError
from shine.compiler.codegen.lowering import FLOAT_LOWERINGS, INTEGER_LOWERINGS, Emitter
from shine.compiler.codegen.numbers import Numbers
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.tree import BOOLEAN_OPERATORS, COMPARISONS, CONDITIONAL, Primitive, Tree
from shine.lang.forms.visitor import Visit

BLOCK_NODES = 400
"""Most nodes of a basic block: the time of LLVM's instruction selection is not linear in its length."""


class AstJit(Interpretation):
    """Lowers trees at a builder's position; every value is a scalar or a vector of one number type.

    It computes both sides of a conditional and selects one. The emitter's `active` keeps track of the lanes that Python
    would evaluate, so that integer division by zero fails in those only.
    """

    def __init__(self, builder: ir.IRBuilder, numbers: Numbers) -> None:
        self.emit = Emitter(builder, numbers)
        self._names: dict[str, ir.Value] = {}
        self._functions: Mapping[str, Primitive] = {}
        self._count = 0

    @property
    def failed(self) -> ir.Value | None:
        """Mask of the lanes that divided by zero; None if no instruction can."""
        return self.emit.failed

    def lower(self, tree: Tree, arguments: Sequence[ir.Value]) -> ir.Value:
        """Emit a tree for the arguments, one for each parameter; return its value.

        A `LoweringError` if a primitive or a number has no meaning in the number type.
        """
        (result,) = self.lower_all([tree], arguments)
        return result

    def lower_all(self, trees: Sequence[Tree], arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit trees that share their parameters and assignments; return their values, errors as of `lower`."""
        caller = self._names, self._functions
        self._names, self._functions = dict(zip(trees[0].parameters, arguments, strict=True)), trees[0].functions
        for name, value in trees[0].assignments:
            self._names[name] = self.visit(value)
        results: list[ir.Value] = [self.visit(tree.result) for tree in trees]
        self._names, self._functions = caller
        return results

    def generic_visit(self, node: ast.AST) -> ir.Value:
        raise LoweringError(f"{type(node).__name__} has no lowering; verify the tree with shine.lang.parse first")

    def _apply(self, name: str, *arguments: ir.Value) -> ir.Value:
        self._count += 1
        if self._count % BLOCK_NODES == 0:
            block = self.emit.builder.append_basic_block("next")
            self.emit.builder.branch(block)
            self.emit.builder.position_at_end(block)
        table = INTEGER_LOWERINGS if self.emit.numbers.is_integer else FLOAT_LOWERINGS
        if name in table:
            return table[name](self.emit, *arguments)
        definition = self._functions[name].definition if name in self._functions else None
        if definition is None:
            raise LoweringError(
                f"primitive {name!r} has no meaning for {self.emit.numbers.dtype} numbers; use float64 or float32"
            )
        return self.lower(definition, arguments)

    def visit_Constant(self, node: ast.Constant) -> ir.Value:
        assert isinstance(node.value, int | float)
        return self.emit.constant(node.value)

    def visit_Name(self, node: ast.Name) -> ir.Value:
        if node.id not in self._names:
            raise LoweringError(f"name {node.id!r} is neither a parameter nor assigned")
        return self._names[node.id]

    def visit_Compare(self, node: ast.Compare) -> Visit:
        reached, left = self.emit.active, (yield node.left)
        result = None
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = yield comparator
            holds = self._apply(COMPARISONS[type(operator)], left, right)
            result = holds if result is None else self._apply("logical_and", result, holds)
            self._narrow(self.emit.truth(result))
            left = right
        self.emit.active = reached
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        name = BOOLEAN_OPERATORS[type(node.op)]
        reached, left = self.emit.active, (yield node.values[0])
        holds = self.emit.truth(left)
        self._narrow(holds if name == "logical_and" else self.emit.builder.not_(holds))
        right = yield node.values[1]
        self.emit.active = reached
        return self._apply(name, left, right)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        reached, test = self.emit.active, (yield node.test)
        holds = self.emit.truth(test)
        self._narrow(holds)
        body = yield node.body
        self.emit.active = reached
        self._narrow(self.emit.builder.not_(holds))
        orelse = yield node.orelse
        self.emit.active = reached
        return self._apply(CONDITIONAL, test, body, orelse)

    def _narrow(self, mask: ir.Value) -> None:
        """Leave only the lanes of a mask active."""
        if self.emit.numbers.is_integer:
            active = self.emit.active
            self.emit.active = mask if active is None else self.emit.builder.and_(active, mask)
