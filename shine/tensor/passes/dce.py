"""Removal of what is not needed: dead code, and values that are computed already."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.errors import FormError
from shine.tensor.form.module import Attribute, Function, Instruction, Module, Value
from shine.tensor.form.verifier import needed_by
from shine.tensor.passes.rewriting import Replacement, Rewriting, needed_instructions, trimmed, uses_of, with_bodies


def entries_of(module: Module) -> tuple[str, ...]:
    """Functions that users of the module may call: `@main`, those that no other calls, and those with a gradient."""
    called = {name for function in module.defined for name in needed_by(function)}
    return tuple(name for name in module.functions if name == "main" or name not in called)


def remove_dead(module: Module, entries: Collection[str] | None = None) -> Module:
    """Remove instructions, parameters and functions that no result of the entries depends on.

    Precondition: the module is valid. Postcondition: each function is an entry or needed by one; each instruction has a
    result that is needed; each state of a loop is needed after it, or by its condition or its next state; functions
    that are called have no parameter or result that no caller needs. Parameters and results of the entries stay. No
    bit changes.

    Parameters
    ----------
    module : Module
    entries : collection of str, optional
        Default: `entries_of`.

    Raises
    ------
    FormError
        If there is no function of the name of an entry.
    """
    kept = entries_of(module) if entries is None else entries
    unknown = sorted(set(kept) - module.functions.keys())
    if unknown:
        raise FormError(f"there is no function @{unknown[0]}; there are {', '.join(f'@{n}' for n in module.functions)}")
    while True:
        live = _reachable(with_bodies(module, map(trimmed, module.defined)), kept)
        narrow = _reachable(_narrowed(live), kept)
        if narrow is module:
            return module
        module = narrow


def _reachable(module: Module, entries: Collection[str]) -> Module:
    needed, left = set(entries), list(entries)
    while left:
        for name in needed_by(module.functions[left.pop()]):
            if name not in needed:
                needed.add(name)
                left.append(name)
    if needed == module.functions.keys():
        return module
    return replace(module, functions={name: f for name, f in module.functions.items() if name in needed})


def _narrowed(module: Module) -> Module:
    """Calls of functions without the parameters and results that they do not need there."""
    specialized = _Specialized(module)
    functions = [_with_narrow_calls(specialized, function) for function in module.defined]
    changed = with_bodies(module, functions)
    return changed.with_functions(*specialized.functions.values()) if specialized.functions else changed


class _Specialized:
    """Functions with fewer parameters and results, made on demand."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[str, Function] = {}
        self._names: dict[tuple[str, tuple[int, ...], tuple[int, ...]], str] = {}

    def parameters_needed(self, name: str, results: Collection[int]) -> set[int]:
        """Parameters that results of a function depend on."""
        function = self.module.function(name)
        wanted = tuple(function.results[place] for place in results)
        used = {
            operand for instruction in needed_instructions(function, wanted) for operand in instruction.operands
        } | set(wanted)
        return {place for place, parameter in enumerate(function.parameters) if parameter in used}

    def name(self, name: str, parameters: Collection[int], results: Collection[int]) -> str:
        """The function with some parameters and results only."""
        key = name, tuple(sorted(parameters)), tuple(sorted(results))
        function = self.module.function(name)
        if (len(key[1]), len(key[2])) == (len(function.parameters), len(function.results)):
            return name
        if key not in self._names:
            taken = self.module.functions.keys() | self.functions.keys()
            new = next(n for i in range(len(taken) + 1) if (n := f"{name}.{i}") not in taken)
            wanted = tuple(function.results[place] for place in key[2])
            given = tuple(function.parameters[place] for place in key[1])
            body = needed_instructions(function, wanted)
            self.functions[new] = replace(function, name=new, parameters=given, body=body, results=wanted)
            self._names[key] = new
        return self._names[key]


def _with_narrow_calls(specialized: _Specialized, function: Function) -> Function:
    uses = uses_of(function)
    body = []
    for instruction in function.body:
        used = {place for place, result in enumerate(instruction.results) if uses[result]}
        body.append(
            NARROW[instruction.operation](specialized, instruction, used)
            if instruction.operation in NARROW
            else instruction
        )
    same = all(new is old for new, old in zip(body, function.body, strict=True))
    return function if same else replace(function, body=tuple(body))


def _some(values: tuple[Value, ...], places: Collection[int]) -> tuple[Value, ...]:
    return tuple(value for place, value in enumerate(values) if place in places)


def _call(specialized: _Specialized, instruction: Instruction, used: set[int]) -> Instruction:
    return _branches(specialized, instruction, used, ("function",), 0)


def _cond(specialized: _Specialized, instruction: Instruction, used: set[int]) -> Instruction:
    return _branches(specialized, instruction, used, ("true", "false"), 1)


def _branches(
    specialized: _Specialized, instruction: Instruction, used: set[int], keys: tuple[str, ...], first: int
) -> Instruction:
    """Functions that get all operands but the first ones."""
    names = {key: str(instruction.attributes[key]) for key in keys}
    needed = set().union(*(specialized.parameters_needed(name, used) for name in names.values()))
    arguments = instruction.operands[first:]
    if (len(used), len(needed)) == (len(instruction.results), len(arguments)):
        return instruction
    attributes = {key: specialized.name(name, needed, used) for key, name in names.items()}
    operands = instruction.operands[:first] + _some(arguments, needed)
    return Instruction(_some(instruction.results, used), instruction.operation, operands, attributes)


def _while(specialized: _Specialized, instruction: Instruction, used: set[int]) -> Instruction:
    """A loop without the states that are needed neither after it nor by those that are."""
    condition, body = (str(instruction.attributes[key]) for key in ("condition", "body"))
    states = used | specialized.parameters_needed(condition, (0,))
    while not (more := specialized.parameters_needed(body, states)) <= states:
        states |= more
    if len(states) == len(instruction.operands):
        return instruction
    attributes = {
        "condition": specialized.name(condition, states, (0,)),
        "body": specialized.name(body, states, states),
    }
    operands, results = _some(instruction.operands, states), _some(instruction.results, states)
    return Instruction(results, "while", operands, attributes)


NARROW = {"call": _call, "cond": _cond, "while": _while}
"""Rules that drop parameters and results, for each operation that calls functions."""


def share(module: Module) -> Module:
    """Replace instructions by earlier ones that compute the same; calls too, because functions have no effects.

    Precondition: the module is valid; `canonicalize` first finds more. Postcondition: no two instructions of a function
    have the same operation, operands and attributes. No bit changes.
    """
    return with_bodies(module, (Rewriting(module, f).run(partial(_shared, {})) for f in module.defined))


def _shared(seen: dict[Hashable, tuple[Value, ...]], r: Rewriting, instruction: Instruction) -> Replacement:
    found = seen.setdefault(key_of(instruction), instruction.results)
    return None if found == instruction.results else found


def key_of(instruction: Instruction) -> Hashable:
    """Equal for instructions that compute the same."""
    attributes = tuple((name, _key(value)) for name, value in sorted(instruction.attributes.items()))
    return instruction.operation, instruction.operands, attributes


def _key(value: Attribute) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value
