"""The contract of each pass, checked independently: for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shine.base.errors import FormError
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.verifier import needed_by
from shine.tensor.passes.algebra import simplify
from shine.tensor.passes.canonicalize import MIRRORED, canonicalize
from shine.tensor.passes.dce import key_of, remove_dead, share
from shine.tensor.passes.fold import MOST_BYTES, NOT_FOLDED, fold
from shine.tensor.passes.layout import choose_layout
from shine.tensor.passes.products import flatten_products, join_products, order_products
from shine.tensor.passes.specialize import MOST_INSTRUCTIONS, SMALL, inline, specialize

_COMPOSED = frozenset({"reshape", "transpose", "broadcast", "slice"})
"""Operations that never follow one of their kind in canonical form."""

_COPYING = _COMPOSED | {"pad", "cast"}

Makers = dict[Value, Instruction]


def _instructions(module: Module) -> Iterator[tuple[Function, Instruction, Makers]]:
    """Each with the instructions that made the values before it."""
    for function in module.defined:
        makers: Makers = {}
        for instruction in function.body:
            yield function, instruction, makers
            makers.update(dict.fromkeys(instruction.results, instruction))


def _is_constant(value: Value, makers: Makers) -> bool:
    return value in makers and makers[value].operation == "constant"


def _check_canonical(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        name, operands = instruction.operation, instruction.operands
        if name in _COPYING and operands[0].type == instruction.result.type and name != "transpose":
            _fail(function, instruction, "it only copies")
        if name in _COMPOSED and operands[0] in makers and makers[operands[0]].operation == name:
            _fail(function, instruction, f"there are two in a row: {name}")
        if name in MIRRORED or name in ("add", "mul", "eq", "ne", "and", "or"):
            first, second = (_is_constant(operand, makers) for operand in operands)
            if first and not second:
                _fail(function, instruction, "a constant stands left")


def _check_folded(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        constant = bool(instruction.operands) and all(_is_constant(operand, makers) for operand in instruction.operands)
        size = sum(result.type.bytes for result in instruction.results)
        moves = instruction.operation in ("reshape", "transpose", "slice", "concatenate")
        if constant and size <= MOST_BYTES and moves and instruction.operation not in NOT_FOLDED:
            _fail(function, instruction, "its operands are constants")


def _check_simplified(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        name = instruction.operation
        before = makers.get(instruction.operands[0]) if instruction.operands else None
        if name in ("neg", "not") and before is not None and before.operation == name:
            _fail(function, instruction, "it undoes the one before")
        if name in ("cond", "select") and _is_constant(instruction.operands[0], makers):
            value = makers[instruction.operands[0]].attributes["value"]
            if getattr(value, "size", 0) == 1:
                _fail(function, instruction, "its condition is known")
        if name == "select" and instruction.operands[1] == instruction.operands[2]:
            _fail(function, instruction, "its values are the same")


def _check_shared(module: Module) -> None:
    for function in module.defined:
        seen = set()
        for instruction in function.body:
            key = key_of(instruction)
            if key in seen:
                _fail(function, instruction, "it is computed twice")
            seen.add(key)


def _check_alive(module: Module) -> None:
    for function in module.defined:
        used = set(function.results) | {operand for instruction in function.body for operand in instruction.operands}
        for instruction in function.body:
            if used.isdisjoint(instruction.results):
                _fail(function, instruction, "nobody needs it")


def _check_inlined(module: Module) -> None:
    calls = [name for function in module.functions.values() for name in needed_by(function)]
    for function, instruction, _ in _instructions(module):
        if instruction.operation == "call":
            callee = module.function(str(instruction.attributes["function"]))
            small = len(callee.body) <= SMALL and len(function.body) < MOST_INSTRUCTIONS // 2
            if not callee.separate and (small or calls.count(callee.name) == 1):
                _fail(function, instruction, "the call could be inlined")


def _check_specialized(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        if instruction.operation in ("call", "cond"):
            first = 1 if instruction.operation == "cond" else 0
            if any(_is_constant(operand, makers) for operand in instruction.operands[first:]):
                _fail(function, instruction, "an argument is a constant")


def _check_flat(module: Module) -> None:
    for function, instruction, _ in _instructions(module):
        ranks = [operand.type.rank for operand in instruction.operands]
        if instruction.operation == "dot" and ranks[0] > 2 and ranks[1] == 2:
            _fail(function, instruction, "its left operand is a stack, and its right one is not")


def _check_valid(module: Module) -> None:
    """Choices by cost promise no form; the verifier has seen the module."""


def _fail(function: Function, instruction: Instruction, problem: str) -> None:
    names = ", ".join(map(str, instruction.results)) or instruction.operation
    raise FormError(f"@{function.name}, {names}: {problem}")


CHECKS: dict[Callable[..., Module], Callable[[Module], None]] = {
    canonicalize: _check_canonical,
    fold: _check_folded,
    simplify: _check_simplified,
    share: _check_shared,
    remove_dead: _check_alive,
    inline: _check_inlined,
    specialize: _check_specialized,
    order_products: _check_valid,
    join_products: _check_valid,
    choose_layout: _check_valid,
    flatten_products: _check_flat,
}
"""The check of each pass; all raise FormError."""
