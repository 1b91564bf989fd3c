"""Lifetimes of values, and the bytes that are needed at once."""

from __future__ import annotations

from dataclasses import replace

from shine.tensor.form.module import Function, Module, Value
from shine.tensor.form.verifier import called_by


def without_dead(function: Function) -> Function:
    """A function without the instructions that no result depends on."""
    needed, body = set(function.results), []
    for instruction in reversed(function.body):
        if needed.intersection(instruction.results):
            needed.update(instruction.operands)
            body.append(instruction)
    return replace(function, body=tuple(reversed(body)))


def last_uses(function: Function) -> dict[Value, int]:
    """Index of the last instruction that needs each value; that of the end for results."""
    found: dict[Value, int] = {}
    for place, instruction in enumerate(function.body):
        for value in (*instruction.results, *instruction.operands):
            found[value] = place
    found.update(dict.fromkeys(function.results, len(function.body)))
    return found


def peak_bytes(module: Module, name: str) -> int:
    """Most bytes of values that a function needs at once, if each instruction has its results to itself.

    Parameters and constants do not count; they are not computed. A call needs what the function that it calls needs.
    """
    function = module.function(name)
    last = last_uses(function)
    alive: dict[Value, int] = {}
    peak = 0
    for place, instruction in enumerate(function.body):
        inside = max((peak_bytes(module, called) for called in called_by(instruction)), default=0)
        if instruction.operation != "constant":
            alive.update((result, result.type.bytes) for result in instruction.results)
        peak = max(peak, sum(alive.values()) + inside)
        alive = {value: size for value, size in alive.items() if last[value] > place}
    return peak
