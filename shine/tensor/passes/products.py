"""Choices among forms of matrix products: their order, joined ones, flat ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial, reduce

import numpy as np

from shine.tensor.form.module import Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.form.types import TensorType, broadcast
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, rewritten, with_bodies

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
    kept = [(a, b) for a, b, _ in sides if r.array(a) is None or r.array(b) is None]
    copied = sum(v.type.bytes for pair in kept for v in pair)
    if copied >= 2 * one.type.bytes + OVERHEAD_BYTES:
        return None
    return r.make("dot", *(r.make("concatenate", first, second, axis=axis) for first, second, axis in sides))


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


def order_products(module: Module) -> Module:
    """Multiply chains of matrices, of stacks of them, and of vectors in the order of fewest multiplications.

    Precondition: the module is valid. Postcondition: no other order of a chain `dot(dot(A, B), C)`, whose partial
    products nobody else needs, has fewer multiplications. Integers keep their bits; floats are equal up to rounding.

    Notes
    -----
    Dynamic programming over the intervals of the chain; Godbole, S. S. (1973). "On efficient computation of matrix
    chain products." IEEE Transactions on Computers C-22 (9).
    """
    return rewritten(module, _reordered)


def cost(left: TensorType, right: TensorType) -> int:
    """Multiplications of a product."""
    rows = left.shape[-2] if left.rank > 1 else 1
    columns = right.shape[-1] if right.rank > 1 else 1
    return math.prod(broadcast([left.shape[:-2], right.shape[:-2]])) * rows * left.shape[-1] * columns


@dataclass(frozen=True)
class _Order:
    """The best order of an interval of factors."""

    cost: int
    type: TensorType
    cut: int = 0


def _reordered(r: Rewriting, instruction: Instruction) -> Replacement:
    if instruction.operation != "dot" or _is_inner(r, instruction):
        return None
    factors, spent = _chain(r, instruction, 64)  # factors of a chain; the search takes the cube of it
    if len(factors) < 3:
        return None

    @cache
    def best(first: int, last: int) -> _Order:
        """Factors first .. last, both included."""
        if first == last:
            return _Order(0, factors[first].type)
        found = []
        for cut in range(first, last):
            left, right = best(first, cut), best(cut + 1, last)
            total = left.cost + right.cost + cost(left.type, right.type)
            found.append(_Order(total, _product_type(left.type, right.type), cut))
        return min(found, key=lambda order: order.cost)

    if best(0, len(factors) - 1).cost >= spent:
        return None

    def built(first: int, last: int) -> Value:
        if first == last:
            return factors[first]
        cut = best(first, last).cut
        return r.make("dot", built(first, cut), built(cut + 1, last))

    return built(0, len(factors) - 1)


def _is_inner(r: Rewriting, instruction: Instruction) -> bool:
    """Whether it is part of a longer chain, which is ordered as a whole."""
    users = r.readers(instruction.result)
    if len(users) != 1 or users[0].operation != "dot" or r.uses[instruction.result] != 1:
        return False
    return _joins(users[0], users[0].operands.index(instruction.result), instruction)


def _chain(r: Rewriting, instruction: Instruction, most: int) -> tuple[list[Value], int]:
    """The factors of a product of products, up to a number, and the multiplications of the present order."""
    factors: list[Value] = []
    left, right = instruction.operands
    spent = cost(left.type, right.type)
    for side, operand in enumerate((left, right)):
        inner = r.maker(operand, "dot")
        room = most - 1 if side == 0 else most - len(factors)
        if inner is not None and r.uses_now(operand) == 1 and room > 1 and _joins(instruction, side, inner):
            more, work = _chain(r, inner, room)
            factors += more
            spent += work
        else:
            factors.append(operand)
    return factors, spent


def _joins(outer: Instruction, side: int, inner: Instruction) -> bool:
    """Whether a product and its factor, itself a product, are a chain of three: the outer one contracts the axis that
    the inner one kept, and vectors stand at the ends of chains of plain matrices only."""
    others = [*inner.operands, outer.operands[1 - side]]
    ranks = [value.type.rank for value in others]
    if min(ranks) == 1 and max(ranks) > 2:
        return False
    if side == 0:
        # (A B) C: B has columns, so that the outer product does not sum over the rows of A.
        return inner.operands[1].type.rank > 1
    return inner.operands[0].type.rank > 1


def _product_type(left: TensorType, right: TensorType) -> TensorType:
    matrix = [*([left.shape[-2]] if left.rank > 1 else []), *([right.shape[-1]] if right.rank > 1 else [])]
    return left.with_shape((*broadcast([left.shape[:-2], right.shape[:-2]]), *matrix))


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
