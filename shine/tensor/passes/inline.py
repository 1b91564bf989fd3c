"""Inlining: a call becomes the instructions of the function."""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter

from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.verifier import needed_by
from shine.tensor.passes.rewriting import Replacement, Rewriting

SMALL = 24
"""Instructions of a function that is inlined wherever it is called: passes then see it together with its arguments."""

MOST_INSTRUCTIONS = 4096
"""Instructions of a function beyond which others are inlined into it only if they are called once."""


def inline(module: Module) -> Module:
    """Replace calls by the instructions of the function, where it pays.

    Precondition: the module is valid. Postcondition: a function that is left in a `call` is `separate`, or it is
    called more than once and has more than `SMALL` instructions, or its caller has more than `MOST_INSTRUCTIONS`. No
    bit changes.
    """
    order = TopologicalSorter({f.name: sorted(set(needed_by(f))) for f in module.functions.values()}).static_order()
    for name in order:
        function = module.functions[name]
        if isinstance(function, Function):
            calls = Counter(n for f in module.functions.values() for n in needed_by(f))
            module = _into(module, function, calls)
    return module


def _into(module: Module, function: Function, calls: Counter[str]) -> Module:
    """Inline into one function; those that it calls are done."""
    length = len(function.body)

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        nonlocal length
        if instruction.operation != "call":
            return None
        callee = module.function(str(instruction.attributes["function"]))
        if callee.separate or (calls[callee.name] > 1 and (len(callee.body) > SMALL or length > MOST_INSTRUCTIONS)):
            return None
        length += len(callee.body)
        return _copied(r, callee, instruction.operands)

    found = Rewriting(module, function).run(rule)
    return module if found is function else module.with_functions(found)


def _copied(r: Rewriting, callee: Function, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
    """The instructions of a function with arguments in the place of its parameters."""
    values = dict(zip(callee.parameters, arguments, strict=True))
    for instruction in callee.body:
        operands = [values[operand] for operand in instruction.operands]
        made = r.emit(instruction.operation, operands, **instruction.attributes)
        values.update(zip(instruction.results, made, strict=True))
    return tuple(values[result] for result in callee.results)
