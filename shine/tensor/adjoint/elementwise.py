"""Adjoints of elementwise operations: the partial derivatives are those of formulas."""

from __future__ import annotations

from shine.lang.derivative import is_constant
from shine.lang.partials import table_partials
from shine.tensor.adjoint.shaping import Adjoints, Wanted, summed_to
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.formulas import write_formula
from shine.tensor.form.module import Value


def of_primitive(
    b: FunctionBuilder,
    name: str,
    operands: tuple[Value, ...],
    result: Value,
    cotangent: Value,
    wanted: Wanted,
) -> Adjoints:
    """Adjoints of the operands of a primitive of the language, by `shine.lang.partials`."""
    found: Adjoints = []
    for operand, partial, is_wanted in zip(operands, table_partials(name), wanted, strict=True):
        if not is_wanted or partial is None:
            found.append(None)
        elif is_constant(partial, 1):
            found.append(summed_to(b, cotangent, operand.type.shape))
        elif is_constant(partial, -1) or str(partial.result) == "-1":
            found.append(summed_to(b, b.neg(cotangent), operand.type.shape))
        else:
            product = b.mul(cotangent, write_formula(b, partial, [*operands, result]))
            found.append(summed_to(b, product, operand.type.shape))
    return found


def select(b: FunctionBuilder, operands: tuple[Value, ...], cotangent: Value, wanted: Wanted) -> Adjoints:
    """The cotangent where the condition chooses the operand, 0 elsewhere."""
    condition, first, second = operands
    zero = b.constant(0, cotangent.type.dtype)
    return [
        None,
        summed_to(b, b.select(condition, cotangent, zero), first.type.shape) if wanted[1] else None,
        summed_to(b, b.select(condition, zero, cotangent), second.type.shape) if wanted[2] else None,
    ]
