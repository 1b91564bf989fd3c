"""Rewriting: each instruction of a module is kept, or replaced by values that rules put in its place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from shine.tensor.form.module import Attribute, Function, Instruction, Module, Value
from shine.tensor.form.operations import result_types
from shine.tensor.form.types import TensorType, type_of
from shine.tensor.form.verifier import signature, without_dead


class Rewriting:
    """A function while it is rewritten.

    Attributes
    ----------
    uses : Counter of Value
        Number of times that values of the original are operands or results.
    """

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.uses = uses_of(function)
        self._uses_now = self.uses.copy()
        self._order: dict[Value, int] = {parameter: place for place, parameter in enumerate(function.parameters)}
        self._body: list[Instruction] = []
        self._makers: dict[Value, Instruction] = {}
        self._now: dict[Value, Value] = {}
        self._replaced: defaultdict[Value, list[Value]] = defaultdict(list)
        self._names = {value.name for value in self._order}
        self._names |= {result.name for instruction in function.body for result in instruction.results}
        self._numbers = count(len(self._names))

    def maker(self, value: Value, *operations: str) -> Instruction | None:
        """The instruction that makes a value, if its operation is one of these; of any operation if none is given."""
        found = self._makers.get(value)
        return found if found is not None and (not operations or found.operation in operations) else None

    def array(self, value: Value) -> np.ndarray | None:
        """The elements of a constant; None if the value is none."""
        found = self.maker(value, "constant")
        return None if found is None else found.attributes["value"]  # type: ignore[return-value]

    def place(self, value: Value) -> int:
        """Values that are made earlier have a smaller one."""
        return self._order[value]

    def uses_now(self, value: Value) -> int:
        """Number of uses of a value of the original, or of its replacement; 0 for new values."""
        return self._uses_now[value]

    def readers(self, value: Value) -> list[Instruction]:
        """The instructions of the original that read a value, or its original; in order if it replaces nothing."""
        return [i for old in (value, *self._replaced[value]) for i in self._readers[old]]

    @cached_property
    def constants(self) -> dict[Value, np.ndarray]:
        """Constants of the original, also those that come later."""
        body = (i for i in self.function.body if i.operation == "constant")
        return {i.result: np.asarray(i.attributes["value"]) for i in body}

    @cached_property
    def _readers(self) -> defaultdict[Value, list[Instruction]]:
        found: defaultdict[Value, list[Instruction]] = defaultdict(list)
        for instruction in self.function.body:
            for operand in dict.fromkeys(instruction.operands):
                found[operand].append(instruction)
        return found

    def emit(self, operation: str, operands: Sequence[Value], **attributes: Attribute) -> tuple[Value, ...]:
        """Add an instruction with all its attributes; returns its results."""
        types = result_types(
            operation, tuple(v.type for v in operands), attributes, lambda name: signature(self.module, name)
        )
        results = tuple(Value(self._new_name(), type) for type in types)
        self._add(Instruction(results, operation, tuple(operands), attributes))
        return results

    def make(self, operation: str, *operands: Value, **attributes: Attribute) -> Value:
        """As `emit`, for operations with one result."""
        (result,) = self.emit(operation, operands, **attributes)
        return result

    def constant(self, value: ArrayLike, type: TensorType | None = None) -> Value:
        """A constant; of one element for all if a type is given."""
        array = np.asarray(value) if type is None else np.full(type.shape, value, type.numpy)
        array = array.astype(type_of(array).numpy)
        array.flags.writeable = False
        return self.make("constant", value=array)

    def fitted(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A value broadcast to a shape, if it has another one."""
        return value if value.type.shape == shape else self.make("broadcast", value, shape=shape)

    def shaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A value reshaped to a shape, if it has another one."""
        return value if value.type.shape == shape else self.make("reshape", value, shape=shape)

    def turned(self, value: Value, permutation: Sequence[int]) -> Value:
        """A value transposed, if that changes the order of its axes."""
        order = tuple(permutation)
        return value if order == tuple(range(len(order))) else self.make("transpose", value, permutation=order)

    def run(self, rule: Callable[[Rewriting, Instruction], Replacement]) -> Function:
        """Apply a rule to each instruction in order; the same function if it replaces nothing."""
        is_changed = False
        for original in self.function.body:
            operands = tuple(self._now.get(operand, operand) for operand in original.operands)
            instruction = original if operands == original.operands else replace(original, operands=operands)
            found = rule(self, instruction)
            if found is None:
                self._add(instruction)
                continue
            is_changed = True
            values = (found,) if isinstance(found, Value) else found
            for old, new in zip(original.results, values, strict=True):
                assert old.type == new.type, f"{instruction.operation}: {old.type} became {new.type}"
                self._now[old] = new
                self._replaced[new].append(old)
                self._uses_now[new] += self.uses[old]
        if not is_changed:
            return self.function
        results = tuple(self._now.get(result, result) for result in self.function.results)
        return replace(self.function, body=tuple(self._body), results=results)

    def _add(self, instruction: Instruction) -> None:
        self._body.append(instruction)
        for result in instruction.results:
            self._makers[result] = instruction
            self._order[result] = len(self._order)

    def _new_name(self) -> str:
        name = next(f"v{number}" for number in self._numbers if f"v{number}" not in self._names)
        self._names.add(name)
        return name


Replacement: TypeAlias = "Value | tuple[Value, ...] | None"
Rule: TypeAlias = Callable[[Rewriting, Instruction], Replacement]
"""Replacements of the results of an instruction; None if the instruction stays."""


def rewritten(module: Module, rule: Rule) -> Module:
    """Apply a rule to all instructions until it replaces nothing; the same module if it never does."""
    return with_bodies(module, (_settled(module, function, rule) for function in module.defined))


def _settled(module: Module, function: Function, rule: Rule) -> Function:
    # Times that a rule is applied to a function; each shortens a chain of operations by one at least.
    for _ in range(64):
        before, function = function, Rewriting(module, function).run(rule)
        if function is before:
            break
        function = trimmed(function)
    return function


def trimmed(function: Function) -> Function:
    """Without instructions whose results nobody needs."""
    body = needed_instructions(function, function.results)
    return function if len(body) == len(function.body) else replace(function, body=body)


def needed_instructions(function: Function, results: Sequence[Value]) -> tuple[Instruction, ...]:
    """The instructions that values depend on."""
    return without_dead(replace(function, results=tuple(results))).body


def by_table(rules: Mapping[str, Sequence[Rule]]) -> Rule:
    """The first of the rules for the instruction's operation that replaces it."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        for each in rules.get(instruction.operation, ()):
            found = each(r, instruction)
            if found is not None:
                return found
        return None

    return rule


def with_bodies(module: Module, functions: Iterable[Function]) -> Module:
    """The module with functions in the place of those with their names; the same if they are the same."""
    changed = [function for function in functions if function is not module.functions[function.name]]
    return module.with_functions(*changed) if changed else module


def uses_of(function: Function) -> Counter[Value]:
    """Number of times that each value is an operand or a result."""
    uses = Counter(operand for instruction in function.body for operand in instruction.operands)
    uses.update(function.results)
    return uses


def integers(instruction: Instruction, name: str) -> tuple[int, ...]:
    """An attribute that is a list of integers."""
    found: Any = instruction.attributes[name]
    return tuple(found)


def integer(instruction: Instruction, name: str) -> int:
    """An attribute that is an integer."""
    found: Any = instruction.attributes[name]
    return int(found)


def splat(array: np.ndarray | None) -> Any:
    """The element that all places of a constant have, as a number of Python; None if they differ, or for NaN."""
    if array is None or array.size == 0:
        return None
    first = array.reshape(-1)[0]
    same = (array == first).all() and (array.dtype.kind != "f" or (np.signbit(array) == np.signbit(first)).all())
    return first.item() if same else None
