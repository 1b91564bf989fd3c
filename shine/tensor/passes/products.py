"""Linear-algebra fusion: several matrix products become one larger product."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from shine.tensor.form.module import Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.passes.rewriting import Replacement, Rewriting, rewritten, with_bodies

OVERHEAD_BYTES = 4096
"""Bytes that are copied in the time that starting another product takes: filling and draining its registers."""


def join_products(module: Module) -> Module:
    """Join products that are added, and products that share an operand.

    `A B + C D` is `[A C] [B; D]`, if the copies cost less than storing and adding a product. `x U` and `x V` of
    constants U and V are slices of `x [U V]`, if the slices are read in place or cost less than reading x again.

    Precondition: the module is valid; single products are in the order of `order_products`. Postcondition: no such pair
    is left. Integers keep their bits. Floats are equal up to rounding: sums of products add in another order.
    """
    module = rewritten(module, _joined_sum)
    return with_bodies(module, (Rewriting(module, f).run(partial(_merged, {})) for f in module.defined))


# Sums of products.


def _joined_sum(r: Rewriting, instruction: Instruction) -> Replacement:
    if instruction.operation != "add" or _is_inner_sum(r, instruction):
        return None
    terms = _terms(r, instruction, instruction.result)
    for first, one in enumerate(terms):
        for second in range(first + 1, len(terms)):
            joined = _joined(r, one, terms[second])
            if joined is not None:
                others = terms[:first] + terms[first + 1 : second] + terms[second + 1 :]
                constants = [term for term in others if r.array(term) is not None]
                variable = [term for term in others if r.array(term) is None]
                sums = [*variable, _sum(r, constants)] if constants else variable
                return _sum(r, [joined, *sums])
    return None


def _sum(r: Rewriting, terms: list[Value]) -> Value:
    return reduce(partial(r.make, "add"), terms)


def _is_inner_sum(r: Rewriting, instruction: Instruction) -> bool:
    users, result = r.readers(instruction.result), instruction.result
    return r.uses[result] == 1 and [(u.operation, u.results[0].type) for u in users] == [("add", result.type)]


def _terms(r: Rewriting, instruction: Instruction, total: Value) -> list[Value]:
    """The summands of a sum whose partial sums have the shape of the whole and are not used elsewhere."""
    terms = []
    for operand in instruction.operands:
        inner = r.maker(operand, "add")
        if inner is not None and operand.type == total.type and r.uses_now(operand) == 1:
            terms += _terms(r, inner, total)
        else:
            terms.append(operand)
    return terms


def _joined(r: Rewriting, one: Value, other: Value) -> Value | None:
    """One product for the sum of two, if that pays."""
    a, b = r.maker(one, "dot"), r.maker(other, "dot")
    if a is None or b is None or one.type != other.type or max(r.uses_now(one), r.uses_now(other)) > 1:
        return None
    sides = []
    for side, (first, second) in enumerate(zip(a.operands, b.operands, strict=True)):
        axis = first.type.rank - (2 if side and first.type.rank > 1 else 1)
        shapes = [(*v.type.shape[:axis], *v.type.shape[axis + 1 :]) for v in (first, second)]
        if first.type.rank != second.type.rank or shapes[0] != shapes[1]:
            return None
        sides.append((first, second, axis))
    copied = sum(
        v.type.bytes for first, second, _ in sides for v in (first, second) if not _all_constant(r, first, second)
    )
    if copied >= 2 * one.type.bytes + OVERHEAD_BYTES:
        return None
    return r.make("dot", *(r.make("concatenate", first, second, axis=axis) for first, second, axis in sides))


def _all_constant(r: Rewriting, *values: Value) -> bool:
    return all(r.array(value) is not None for value in values)


# Products that share an operand.


def _merged(done: dict[Value, Value], r: Rewriting, instruction: Instruction) -> Replacement:
    """Slices of one product; the first of several computes all."""
    if instruction.operation != "dot":
        return None
    if instruction.result in done:
        return done[instruction.result]
    for side in (0, 1):
        others = _with_operand(r, instruction, side)
        if len(others) > 1 and _pays(r, others, instruction.operands[side]):
            done.update(_all_in_one(r, others, side, instruction.operands[side]))
            return done[instruction.result]
    return None


def _with_operand(r: Rewriting, instruction: Instruction, side: int) -> list[Instruction]:
    """The products, from this one on, that have the same operand on a side and a constant matrix on the other."""
    readers = r.readers(instruction.operands[side])
    place = next((at for at, other in enumerate(readers) if other.results == instruction.results), len(readers))
    return [
        other
        for other in readers[place:]
        if other.operation == "dot"
        and other.operands[side] == readers[place].operands[side]
        and other.operands[1 - side] in r.constants
        and other.operands[1 - side].type.rank == 2
    ]


def _pays(r: Rewriting, products: list[Instruction], shared: Value) -> bool:
    """Whether the slices are read in place, or cost less than reading the shared operand again."""
    results = {product.result for product in products}
    users = [user for result in results for user in r.readers(result)]
    in_place = all(user.operation in ELEMENTWISE for user in users) and results.isdisjoint(r.function.results)
    copied = sum(result.type.bytes for result in results)
    return in_place or copied < (len(products) - 1) * (shared.type.bytes + OVERHEAD_BYTES)


def _all_in_one(r: Rewriting, products: list[Instruction], side: int, shared: Value) -> dict[Value, Value]:
    """The result of each product as a slice of one."""
    together = np.concatenate([r.constants[product.operands[1 - side]] for product in products], axis=1 - side)
    weights = r.constant(together)
    whole = r.make("dot", *((shared, weights) if side == 0 else (weights, shared)))
    # Columns of the constant are the last axis of the product, rows the last but one; the last for a vector.
    axis = whole.type.rank - (1 if side == 0 or shared.type.rank == 1 else 2)
    found, first = {}, 0
    for product in products:
        size = product.result.type.shape[axis]
        start, stop = [0] * whole.type.rank, list(whole.type.shape)
        start[axis], stop[axis] = first, first + size
        step = (1,) * whole.type.rank
        found[product.result] = r.make("slice", whole, start=tuple(start), stop=tuple(stop), step=step)
        first += size
    return found
