"""Order of matrix products by cost: (A B) x becomes A (B x)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from shine.tensor.form.module import Instruction, Module, Value
from shine.tensor.form.types import TensorType, broadcast
from shine.tensor.passes.rewriting import Replacement, Rewriting, rewritten

MOST_FACTORS = 64
"""Factors of a chain; the search takes the cube of it."""


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
    factors, spent = _chain(r, instruction, MOST_FACTORS)
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
    """At most so many factors of a product of products, and the multiplications of the present order."""
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
