"""Runs a function in the memory that a plan gives it: bytes that nobody needs are overwritten all the time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.form.verifier import called_by
from shine.tensor.passes.fusion import Group, fuse
from shine.tensor.passes.memory import Plan, aligned, plan_module

GARBAGE = 0xA5


def run_planned(module: Module, name: str, arguments: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Results of a function whose values are in the places that `plan_module` gives them."""
    plans = plan_module(module)
    return _Run(module, plans, module.function(name), np.full(plans[name].arena_bytes, GARBAGE, np.uint8)).run(
        arguments
    )


class _Run:
    """A function with its arena."""

    def __init__(self, module: Module, plans: dict[str, Plan], function: Function, arena: np.ndarray) -> None:
        self.module, self.plans, self.function, self.arena = module, plans, function, arena
        self.plan = plans[function.name]
        self.groups = fuse(function)
        self.names = {i.result: i.operands[0] for i in function.body if i.operation == "reshape"}

    def base(self, value: Value) -> Value:
        while value in self.names:
            value = self.names[value]
        return value

    def run(self, arguments: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        self.arguments = list(arguments)
        self.results = [np.full(v.type.bytes, GARBAGE, np.uint8) for v in self.function.results]
        self.constants = [np.asarray(i.attributes["value"]) for i in self.function.body if i.operation == "constant"]
        for step, group in enumerate(self.groups):
            self.overwrite_dead(step)
            read = {value: self.load(value) for value in group.reads}
            for result in group.root.results:
                self.poison(group, result)
            for result, array in zip(group.root.results, self.values(group, read, step), strict=True):
                found = np.asarray(array, result.type.numpy).reshape(result.type.shape)
                self.bytes(result)[:] = np.frombuffer(found.tobytes(), np.uint8)
        self.overwrite_dead(len(self.groups))
        for value, index in self.plan.copies:
            self.results[index][:] = np.frombuffer(self.load(value).tobytes(), np.uint8)
        types = self.function.result_types
        return tuple(
            np.frombuffer(b.tobytes(), t.numpy).reshape(t.shape) for b, t in zip(self.results, types, strict=True)
        )

    def bytes(self, value: Value) -> np.ndarray:
        """The memory of a value."""
        place = self.plan.places[value]
        if place.kind == "result":
            return self.results[place.at]
        assert place.kind == "arena" and place.at % 64 == 0
        found = self.arena[place.at : place.at + value.type.bytes]
        assert found.size == value.type.bytes, "the arena is too small"
        return found

    def load(self, value: Value) -> np.ndarray:
        base = self.base(value)
        place = self.plan.places[base]
        if place.kind == "parameter":
            array = self.arguments[place.at]
        elif place.kind == "constant":
            array = self.constants[place.at]
        else:
            array = np.frombuffer(self.bytes(base).tobytes(), base.type.numpy)
        return np.asarray(array).reshape(value.type.shape)

    def values(self, group: Group, known: dict[Value, np.ndarray], step: int) -> tuple[np.ndarray, ...]:
        found: tuple[np.ndarray, ...] = ()
        for member in group.members:
            operands = [known[operand] for operand in member.operands]
            found = self.evaluate(member, operands, step)
            for result, array in zip(member.results, found, strict=True):
                known[result] = np.asarray(array, result.type.numpy).reshape(result.type.shape)
        return found

    def evaluate(self, member: Instruction, operands: list[np.ndarray], step: int) -> tuple[np.ndarray, ...]:
        start = self.plan.scratch[step]
        if member.operation == "while":
            start += 64 + sum(aligned(result.type.bytes) for result in member.results)

        def called(name: str, given: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            assert name in called_by(member)
            size = self.plans[name].arena_bytes
            assert start + size <= self.plan.arena_bytes
            # A copy: what the callee writes outside of its own arena would be lost, and be noticed.
            inner = self.arena[start : start + size]
            return _Run(self.module, self.plans, self.module.function(name), inner).run(given)

        with np.errstate(all="ignore"):
            return evaluate(member, operands, called)

    def poison(self, group: Group, result: Value) -> None:
        """Spoil what is to be written, as code that writes before it has read all would; but not in place."""
        place = self.plan.places[result]
        shared = [v for v in map(self.base, group.reads) if self.plan.places[v] == place and v.type.bytes]
        if not shared or not result.type.bytes:
            self.bytes(result)[:] = GARBAGE
        elif group.root.operation not in ("while", "scatter_add"):
            assert all(member.operation in ELEMENTWISE for member in group.members if shared[0] in member.operands)
            assert group.anchor is None

    def overwrite_dead(self, step: int) -> None:
        """Spoil the arena, but for what later steps read."""
        written = {r for group in self.groups[:step] for r in group.root.results}
        read = {self.base(v) for group in self.groups[step:] for v in group.reads}
        read |= {value for value, _ in self.plan.copies}
        is_live = np.zeros(len(self.arena), bool)
        for value in written & read:
            place = self.plan.places[value]
            if place.kind == "arena":
                is_live[place.at : place.at + value.type.bytes] = True
        self.arena[~is_live] = GARBAGE
