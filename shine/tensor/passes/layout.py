"""Layout: transposes are moved until they meet and cancel, so that chains of operations keep one order of axes."""

from __future__ import annotations

from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.passes.canonicalize import canonicalize, fold
from shine.tensor.passes.dce import share
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, integer, integers, rewritten, trimmed

SMALL_PART = 8
"""An operand with this many times fewer elements than the result, such as a bias, may be transposed instead."""


def choose_layout(module: Module) -> Module:
    """Move transposes behind the operations that follow, where fewer bytes are transposed then.

    Precondition: the module is valid and in canonical form. Postcondition: no function transposes more bytes than
    before; constants are transposed at compile time. A network that was written for channels first (NCHW) becomes one
    transpose at its start and one at its end. No bit changes.
    """
    moved = share(fold(canonicalize(rewritten(module, by_table(RULES)))))
    kept = {}
    for function in module.defined:
        other = trimmed(moved.function(function.name))
        kept[function.name] = other if transposed_bytes(other) < transposed_bytes(function) else function
    changed = [f for name, f in kept.items() if f is not module.functions[name]]
    return module.with_functions(*changed) if changed else module


def transposed_bytes(function: Function) -> int:
    """Bytes of all results of transposes."""
    return sum(i.result.type.bytes for i in function.body if i.operation == "transpose")


def _elementwise(r: Rewriting, instruction: Instruction) -> Replacement:
    """op(x', y') is op(x, y)', and so it is if y is small or a constant."""
    rank = instruction.result.type.rank
    orders = [
        integers(maker, "permutation")
        for operand in instruction.operands
        if operand.type.rank == rank and (maker := r.maker(operand, "transpose")) is not None
    ]
    if not orders:
        return None
    order = orders[0]
    operands = [_before(r, operand, order, instruction.result.type.elements) for operand in instruction.operands]
    if any(operand is None for operand in operands):
        return None
    found = r.make(instruction.operation, *(v for v in operands if v is not None), **instruction.attributes)
    return r.turned(found, order)


def _before(r: Rewriting, value: Value, order: tuple[int, ...], elements: int) -> Value | None:
    """The value whose transpose this is; None if making it costs too much, and nobody needs it anyway."""
    if value.type.rank == 0:
        return value
    maker = r.maker(value, "transpose")
    if maker is not None and integers(maker, "permutation") == order:
        return maker.operands[0]
    inverse = _inverse(order)
    is_large = r.array(value) is None and value.type.elements * SMALL_PART > elements
    if is_large and not any(
        i.operation == "transpose" and integers(i, "permutation") == inverse for i in r.readers(value)
    ):
        return None
    full = r.shaped(value, (1,) * (len(order) - value.type.rank) + value.type.shape)
    return r.turned(full, inverse)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _each_axis(*names: str) -> Rule:
    """An operation with lists that have a number for each axis; further operands are scalars."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        first, *others = instruction.operands
        maker = r.maker(first, "transpose")
        if maker is None:
            return None
        order = integers(maker, "permutation")
        inverse = _inverse(order)
        lists = {name: tuple(integers(instruction, name)[axis] for axis in inverse) for name in names}
        return r.turned(r.make(instruction.operation, maker.operands[0], *others, **lists), order)

    return rule


def _concatenate(r: Rewriting, instruction: Instruction) -> Replacement:
    makers = [r.maker(operand, "transpose") for operand in instruction.operands]
    orders = {integers(maker, "permutation") for maker in makers if maker is not None}
    if len(orders) != 1 or None in makers:
        return None
    (order,) = orders
    sources = [maker.operands[0] for maker in makers if maker is not None]
    return r.turned(r.make("concatenate", *sources, axis=order[integer(instruction, "axis")]), order)


RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), (_elementwise,)),
    "pad": (_each_axis("low", "high", "interior"),),
    "slice": (_each_axis("start", "stop", "step"),),
    "concatenate": (_concatenate,),
}
"""Rules by operation."""
