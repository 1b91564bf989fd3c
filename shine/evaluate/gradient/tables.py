"""The handlers of the gradient machine, and the assembler's tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, number
from shine.evaluate.gradient.instructions import BROADCAST_BYTES, emit_adjoint, emit_value
from shine.evaluate.machine.instructions import emit_end
from shine.evaluate.machine.tables import table
from shine.lang.derivative import partials
from shine.lang.forms.tree import Primitive, Tree

NO_PARTIAL, UNCHANGED = 0, 1
"""Entries of the adjoint table instead of an address, if the partial derivative is 0, or 1."""

_DOUBLE = ir.DoubleType()


@dataclass(frozen=True)
class GradientTables:
    """Tables for the assembler, as global constants of the module.

    Parameters
    ----------
    arity : ir.Value
        i64 of each function.
    forward : ir.Value
        Address of each function's handler.
    adjoint : ir.Value
        An array of shape (functions, `most_arguments`): `NO_PARTIAL`, `UNCHANGED`, or a handler's address.
    most_arguments : int
        Largest arity of the functions.
    zeros, ones : ir.Value
        Broadcast constants.
    end : ir.Value
        Address of the handler that ends a list of instructions.
    """

    arity: ir.Value
    forward: ir.Value
    adjoint: ir.Value
    most_arguments: int
    zeros: ir.Value
    ones: ir.Value
    end: ir.Value


def most_arguments(functions: Sequence[Primitive]) -> int:
    """Largest arity of the functions; at least 1."""
    return max([1, *(function.arity for function in functions)])


def emit_gradient_tables(module: ir.Module, functions: Sequence[Primitive], size: int) -> GradientTables:
    """Emit all handlers of some functions, and the tables; an instruction has `size` bytes."""
    most = most_arguments(functions)
    forward, adjoint = [], []
    for function in functions:
        forward.append(emit_value(module, function, size))
        found = [
            _adjoint_entry(module, function, argument, partial, size)
            for argument, partial in enumerate(partials(function))
        ]
        adjoint += found + [_table_entry(NO_PARTIAL)] * (most - len(found))
    return GradientTables(
        arity=table(module, "arity", [number(function.arity) for function in functions]),
        forward=table(module, "forward", forward),
        adjoint=table(module, "adjoint", adjoint),
        most_arguments=most,
        zeros=_broadcast_table(module, "zeros", 0.0),
        ones=_broadcast_table(module, "ones", 1.0),
        end=emit_end(module),
    )


def _adjoint_entry(module: ir.Module, function: Primitive, argument: int, partial: Tree | None, size: int) -> ir.Value:
    if partial is None:
        return _table_entry(NO_PARTIAL)
    if partial.tokens[1:] in ((("constant", "1"),), (("constant", "1.0"),)):
        return _table_entry(UNCHANGED)
    return emit_adjoint(module, function, argument, partial, size)


def _table_entry(code: int) -> ir.Value:
    """A small number instead of an address."""
    return ir.Constant(I64, code).inttoptr(POINTER)


def _broadcast_table(module: ir.Module, name: str, value: float) -> ir.GlobalVariable:
    kind = ir.ArrayType(_DOUBLE, BROADCAST_BYTES // 8)
    variable = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    variable.type, variable.linkage, variable.global_constant = POINTER, "internal", True
    variable.initializer = ir.Constant(kind, [ir.Constant(_DOUBLE, value)] * kind.count)
    return variable
