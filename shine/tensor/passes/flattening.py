"""A stack of matrices times one matrix is one product of more rows."""

from __future__ import annotations

import math

from shine.tensor.form.module import Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, rewritten


def flatten_products(module: Module) -> Module:
    """Multiply the rows of a whole stack at once, together with the elementwise operations that follow.

    Reshapes cost nothing: they are names of the same memory. So that sums still go through a bias and the like before
    they are stored, the reshape back moves behind elementwise operations.

    Precondition: the module is valid. Postcondition: the left operand of a product is a stack only if the right one is
    a stack or a vector. Each element is the same sum of products.
    """
    return rewritten(module, by_table(RULES))


def _flat(r: Rewriting, instruction: Instruction) -> Replacement:
    left, right = instruction.operands
    if left.type.rank < 3 or right.type.rank != 2:
        return None
    *stack, inner = left.type.shape
    rows = r.make("reshape", left, shape=(math.prod(stack), inner))
    return r.shaped(r.make("dot", rows, right), instruction.result.type.shape)


def _before_the_reshape(r: Rewriting, instruction: Instruction) -> Replacement:
    """op(reshape(product), y) is reshape(op(product, y)), for a vector y, and for values that are stored anyway."""
    found = instruction.result.type
    flat = next((m.operands[0] for v in instruction.operands if (m := _unflattened(r, v)) is not None), None)
    if flat is None or flat.type.elements != found.elements:
        return None
    operands = [_flattened(r, value, flat, found.shape) for value in instruction.operands]
    if any(operand is None for operand in operands):
        return None
    made = r.make(instruction.operation, *(v for v in operands if v is not None), **instruction.attributes)
    return r.shaped(made, found.shape)


def _unflattened(r: Rewriting, value: Value) -> Instruction | None:
    """The reshape that makes a stack of the rows of a product, or of values computed from them."""
    maker = r.maker(value, "reshape")
    if maker is None or maker.operands[0].type.rank != 2 or value.type.rank < 3:
        return None
    rows = maker.operands[0]
    is_product = r.maker(rows, "dot", *ELEMENTWISE) is not None
    return maker if is_product and rows.type.shape[-1] == value.type.shape[-1] else None


def _flattened(r: Rewriting, value: Value, flat: Value, shape: tuple[int, ...]) -> Value | None:
    """An operand for the rows; None if it cannot be one without more memory."""
    if value.type.shape == shape:
        maker = r.maker(value)
        is_stored = maker is None or maker.operation not in ELEMENTWISE
        return r.shaped(value, flat.type.shape) if is_stored else None
    return value if value.type.rank <= 1 else None


RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), (_before_the_reshape,)),
    "dot": (_flat,),
}
"""Rules by operation."""
