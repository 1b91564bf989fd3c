"""Calls: functions that are written into their callers, and functions of fewer arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS
from shine.tensor.form.verifier import called_by, needed_by
from shine.tensor.passes.dce import key_of
from shine.tensor.passes.rewriting import Replacement, Rewriting

_FIRST = {"call": 0, "cond": 1, "while": 0}
"""The first operand that is an argument."""


def specialize(module: Module) -> Module:
    """Give functions of their own to calls with constant arguments, and to loops with constant states.

    Precondition: the module is valid. Postcondition: no call, branch or loop has a constant operand, but for the
    predicate and states that the loop changes. The functions with all parameters stay; `remove_dead` removes them. No
    bit changes.
    """
    making = _Making(module)
    functions = [making.with_constants(function) for function in module.defined]
    if not making.functions:
        return module
    return module.with_functions(*functions, *making.functions.values())


class _Making:
    """Functions with constants in the place of parameters, made on demand."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[str, Function] = {}
        self._names: dict[Hashable, str] = {}

    def with_constants(self, function: Function) -> Function:
        """A function whose calls have no constant arguments."""
        constants = {i.result: i for i in function.body if i.operation == "constant"}
        now: dict[Value, Value] = {}
        body = []
        for instruction in function.body:
            operands = tuple(now.get(operand, operand) for operand in instruction.operands)
            found = replace(instruction, operands=operands) if operands != instruction.operands else instruction
            known = self._known(found, constants)
            if known:
                dropped = known if found.operation == "while" else {}
                now.update((result, operands[i]) for i, result in enumerate(found.results) if i in dropped)
                found = self._narrow(found, known, dropped)
            body.append(found)
        results = tuple(now.get(result, result) for result in function.results)
        return replace(function, body=tuple(body), results=results)

    def _known(self, instruction: Instruction, constants: Mapping[Value, Instruction]) -> dict[int, Instruction]:
        """The constant arguments, by place; of a loop, those that it does not change."""
        if instruction.operation not in CALLS:
            return {}
        arguments = instruction.operands[_FIRST[instruction.operation] :]
        fixed: Collection[int] = range(len(arguments))
        if instruction.operation == "while":
            fixed = unchanged(self.module, instruction)
        return {i: constants[v] for i, v in enumerate(arguments) if v in constants and i in fixed}

    def _narrow(self, call: Instruction, known: Mapping[int, Instruction], dropped: Collection[int]) -> Instruction:
        first = _FIRST[call.operation]
        kept = tuple(v for i, v in enumerate(call.operands[first:]) if i not in known)
        names = set(called_by(call))
        attributes = {
            key: self._name(str(value), known, dropped if key == "body" else ()) if value in names else value
            for key, value in call.attributes.items()
        }
        results = tuple(result for i, result in enumerate(call.results) if i not in dropped)
        return Instruction(results, call.operation, call.operands[:first] + kept, attributes)

    def _name(self, name: str, known: Mapping[int, Instruction], dropped: Collection[int]) -> str:
        """The function with constants in the place of parameters, and without some results."""
        key = name, tuple((place, key_of(constant)) for place, constant in known.items()), tuple(dropped)
        if key not in self._names:
            taken = self.module.functions.keys() | self.functions.keys()
            new = next(n for i in range(len(taken) + 1) if (n := f"{name}.{i}") not in taken)
            old = self.module.function(name)
            inside = tuple(replace(known[i], results=(old.parameters[i],)) for i in known)
            self.functions[new] = replace(
                old,
                name=new,
                parameters=tuple(v for i, v in enumerate(old.parameters) if i not in known),
                body=inside + old.body,
                results=tuple(v for i, v in enumerate(old.results) if i not in dropped),
            )
            self._names[key] = new
        return self._names[key]


def unchanged(module: Module, loop: Instruction) -> set[int]:
    """States that the body of a loop returns as they are."""
    body = module.function(str(loop.attributes["body"]))
    pairs = enumerate(zip(body.parameters, body.results, strict=True))
    return {place for place, (parameter, result) in pairs if parameter == result}


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
