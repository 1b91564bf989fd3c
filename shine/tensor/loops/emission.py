"""From a module to LLVM IR: a function of its own for each group of nests, and the calls of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, declare
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS
from shine.tensor.form.types import TensorType
from shine.tensor.loops.division import Part, Sharing
from shine.tensor.loops.driver import driver_ir
from shine.tensor.loops.entries import Steps, entry, step
from shine.tensor.loops.groups import emit_group, emit_paddings, needs_padding, scratch_bytes
from shine.tensor.loops.kernel import moved
from shine.tensor.loops.lanes import BYTE, load
from shine.tensor.loops.machine import Machine, machine_of
from shine.tensor.loops.nest import Site, emit_nest
from shine.tensor.loops.placement import Placement, is_uniform
from shine.tensor.loops.plan import Group, Nest, copied, plan_of, reads
from shine.tensor.loops.sharing import SHARED_CALL, sharing_of, work_of
from shine.tensor.loops.sharing import scratch_bytes as part_bytes
from shine.tensor.passes.memory import ALIGNMENT, Plan, Step, aligned, plan_memory


@dataclass(frozen=True)
class Interface:
    """A function ``void NAME(const void *const *arguments, void *const *results, void *arena)``.

    Parameters
    ----------
    name : str
    parameters, results : tuple of TensorType
        Row-major; results overlap neither each other nor arguments.
    arena_bytes : int
        Memory that a call needs, aligned to 64 bytes.
    report : tuple of str
        What each group of nests does, in order.
    steps : tuple of int
        Blocks of each step that threads share; none if it does not pay.
    scratch_bytes : int
        Memory of its own that each thread needs.
    """

    name: str
    parameters: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    arena_bytes: int
    report: tuple[str, ...]
    steps: tuple[int, ...] = ()
    scratch_bytes: int = 0


def emit(
    module: Module,
    machine: Machine | None = None,
    function: str = "main",
    name: str | None = None,
    has_parts: bool = False,
    is_shared: bool = False,
) -> tuple[str, Interface]:
    """LLVM IR of a function of a module.

    Parameters
    ----------
    module : Module
        Verified; its gradients are defined.
    machine : Machine, optional
        This one by default.
    function : str
        The function to be called from outside.
    name : str, optional
        Its name in the code; that of the module's function by default.
    has_parts : bool
        Whether there is a function ``NAME.part.I``, of the same type, for each of its groups of nests.
    is_shared : bool
        Whether there is a function ``NAME.share`` for several threads (`driver_ir`) instead, if that pays.

    Returns
    -------
    str
        A module with one external function, and those of the parts.
    Interface
        What it takes.
    """
    code = _Code(module, machine or machine_of())
    declared, name = module.function(function), name or function
    inner, arena = code.function(function)
    types = declared.parameter_types, declared.result_types
    shared = code.shared(declared, name) if is_shared else None
    if shared is not None:
        text = "\n".join([str(code.ir), *code.data, driver_ir(name, list(shared.blocks.items()))])
        return text, Interface(name, *types, arena, tuple(shared.said), tuple(shared.blocks.values()), shared.scratch)
    entry(code.ir, name, declared, inner)
    parts = code.parts(declared) if has_parts else []
    for number, part in enumerate(parts):
        entry(code.ir, f"{name}.part.{number}", declared, part)
    text = "\n".join([str(code.ir), *code.data])
    return text, Interface(name, *types, arena, tuple(code.report[function]))


@dataclass(eq=False)
class _Code:
    """The code of a module in the making."""

    module: Module
    machine: Machine
    ir: ir.Module = field(default_factory=ir.Module)
    data: list[str] = field(default_factory=list)
    report: dict[str, list[str]] = field(default_factory=dict)
    _functions: dict[str, tuple[ir.Function, int]] = field(default_factory=dict)
    _constants: dict[tuple[str, bytes], ir.Value] = field(default_factory=dict)
    _bodies: dict[str, ir.Function] = field(default_factory=dict)
    _plans: dict[str, tuple[Placement, list[Group]]] = field(default_factory=dict)
    _groups: int = 0

    def function(self, name: str) -> tuple[ir.Function, int]:
        """The code of a function, and the bytes of its arena."""
        if name not in self._functions:
            self._functions[name] = self._emit_function(self.module.function(name))
        return self._functions[name]

    def constant(self, value: np.ndarray) -> ir.Value:
        """The address of data in the code."""
        kind = value.dtype.newbyteorder("<" if self.machine.is_little else ">")
        data = np.ascontiguousarray(value.astype(kind)).tobytes()
        key = (str(value.dtype), data)
        if key not in self._constants:
            name = f"shine.data.{len(self._constants)}"
            room = ir.GlobalVariable(ir.Module(), ir.ArrayType(BYTE, len(data)), name)
            room.type = POINTER
            self.data.append(f'@"{name}" = internal constant [{len(data)} x i8] c"{_escaped(data)}", align {ALIGNMENT}')
            self._constants[key] = room
        return self._constants[key]

    def shared(self, function: Function, name: str) -> Steps | None:
        """Functions of the steps that threads share; None if it does not pay."""
        placed, groups = self._planned(function)
        found = [sharing_of(self.machine, placed, group) for group in groups]
        work = sum(work_of(placed, group) for group, sharing in zip(groups, found, strict=True) if sharing)
        if not any(found) or work < SHARED_CALL:
            return None
        said = list(self.report[function.name])
        steps, alone = Steps(said), list[ir.Function]()

        def close() -> None:
            if alone:
                step(self.ir, steps, f"{name}.step.{len(steps.blocks)}", function, tuple(alone))
                alone.clear()

        # Copies of results are behind the groups.
        for place, sharing in enumerate([*found, *[None] * (len(said) - len(groups))]):
            if sharing is None:
                alone.append(self._sequence(function, placed, groups, place))
                continue
            if needs_padding(self.machine, groups[place]):
                alone.append(self._sequence(function, placed, groups, place, is_padding=True))
            close()
            inner = self._sequence(function, placed, groups, place, sharing)
            step(self.ir, steps, f"{name}.step.{len(steps.blocks)}", function, (inner,), sharing)
            steps.scratch = max(steps.scratch, aligned(part_bytes(self.machine, placed, groups[place])))
            said[place] = self.report[function.name][-1]
        close()
        return steps

    def parts(self, function: Function) -> list[ir.Function]:
        """A function for each group of nests of a function, and each copy of a result."""
        placed, groups = self._planned(function)
        report = list(self.report[function.name])
        found = [self._sequence(function, placed, groups, place) for place in range(len(report))]
        self.report[function.name] = report
        return found

    def _planned(self, function: Function) -> tuple[Placement, list[Group]]:
        if function.name not in self._plans:
            self._plans[function.name] = plan_of(function)
        return self._plans[function.name]

    def _emit_function(self, function: Function) -> tuple[ir.Function, int]:
        placed, groups = self._planned(function)
        return self._sequence(function, placed, groups), self._memory(function, placed, groups).arena_bytes

    def _memory(self, function: Function, placed: Placement, groups: Sequence[Group]) -> Plan:
        return plan_memory(replace(function, body=_data(function)), list(self._steps(placed, groups)), placed.base)

    def _sequence(
        self,
        function: Function,
        placed: Placement,
        groups: Sequence[Group],
        only: int | None = None,
        sharing: Sharing | None = None,
        is_padding: bool = False,
    ) -> ir.Function:
        """The function that runs all groups, or one of them, or a part of one, or what comes before its parts."""
        memory, data = self._memory(function, placed, groups), _data(function)
        labels = [f"a{i}" for i in range(len(function.parameters))] + [f"r{i}" for i in range(len(function.results))]
        suffix = "" if only is None else f".part.{only}" + ".padding" * is_padding
        kinds = [POINTER] * (len(labels) + 1) + ([POINTER, I64, I64] if sharing else [])
        labels += ["arena", *(("scratch", "begin", "end") if sharing else ())]
        made = declare(self.ir, f"shine.{function.name}{suffix}", ir.VoidType(), kinds, labels)
        made.linkage = "internal"
        builder = ir.IRBuilder(made.append_basic_block("entry"))
        results, (arena, *own) = (
            made.args[len(function.parameters) :][: len(function.results)],
            made.args[len(function.parameters) + len(function.results) :],
        )
        pointers: dict[Value, ir.Value] = {}
        for value, place in memory.places.items():
            if place.kind == "constant":
                array: Any = data[place.at].attributes["value"]
                pointers[value] = self.constant(array)
            elif place.kind == "arena":
                pointers[value] = moved(builder, arena, place.at, "u8")
            else:
                pointers[value] = (made.args if place.kind == "parameter" else results)[place.at]
        todo = [(group, offset) for group, offset in zip(groups, memory.scratch, strict=True)]
        for value, result in memory.copies:
            target = Value(f"result.{result}", value.type)
            pointers[target] = results[result]
            todo.append((Group([copied(value, target)]), 0))
        said = self.report.setdefault(function.name, [])
        for group, offset in todo if only is None else todo[only : only + 1]:
            room = moved(builder, arena, offset, "u8")
            if group.nests[0].kind in CALLS:
                self._emit_call(builder, placed, group.nests[0], pointers, room)
                said.append(_called(group.nests[0]))
            else:
                part = Part(sharing, (own[1], own[2]), own[0]) if sharing else None
                said.append(self._emit_group(builder, placed, group, pointers, room, part, is_padding))
        builder.ret_void()
        return made

    def _steps(self, placed: Placement, groups: Sequence[Group]) -> Iterator[Step]:
        """What each group does with memory; what is written in pieces is there from the first one on."""
        done: set[Value] = set()
        for group in groups:
            written = dict.fromkeys(value for nest in group.nests for value in sorted(nest.written, key=str))
            read = {placed.base(leaf): None for nest in group.nests for leaf, _ in reads(placed, nest)}
            new = tuple(value for value in written if value not in done)
            old = tuple(value for value in {**read, **written} if value not in new)
            done.update(written)
            yield Step(old, new, scratch=sum(aligned(self._scratch_bytes(placed, nest)) for nest in group.nests))

    def _scratch_bytes(self, placed: Placement, nest: Nest) -> int:
        """Bytes that a nest needs while it runs."""
        maker = nest.maker
        if maker is None or nest.kind not in CALLS:
            return scratch_bytes(self.machine, placed, nest)
        names = [name for name in maker.attributes.values() if isinstance(name, str)]
        state = sum(aligned(result.type.bytes) for result in maker.results) if nest.kind == "while" else 0
        return 2 * state + ALIGNMENT + max(self.function(name)[1] for name in names)

    def _emit_group(
        self,
        builder: ir.IRBuilder,
        placed: Placement,
        group: Group,
        pointers: Mapping[Value, ir.Value],
        room: ir.Value,
        part: Part | None = None,
        is_padding: bool = False,
    ) -> str:
        """A function for a group of nests, or the one of an equal group, and the call; what it does, in words."""
        needed: dict[Value, None] = {}
        for nest in group.nests:
            needed |= dict.fromkeys(placed.base(leaf) for leaf, _ in reads(placed, nest))
            needed |= dict.fromkeys(value for value in sorted(nest.written, key=str) if value in pointers)
        values = list(needed)
        name = f"shine.group.{self._groups}"
        labels = [*(f"p{place}" for place in range(len(values))), "scratch"]
        own = [] if part is None else [part.scratch, *part.span]
        kinds = [POINTER] * len(labels) + [value.type for value in own]
        labels += ["own", "begin", "end"][: len(own)]
        made = declare(self.ir, name, ir.VoidType(), kinds, labels)
        made.linkage = "internal"
        made.attributes.add("noinline")
        for argument in made.args[: len(kinds) - 2 if own else None]:
            argument.add_attribute("noalias")
        inner = dict(zip(values, made.args, strict=False))
        for alias in placed.aliases:
            if placed.base(alias) in inner:
                inner[alias] = inner[placed.base(alias)]
        site = Site(ir.IRBuilder(made.append_basic_block("entry")), self.machine, placed, inner)
        before = set(self.ir.globals)
        if is_padding:
            said = ""
            emit_paddings(site, group, made.args[len(values)])
        else:
            inside = None if part is None else Part(part.sharing, (made.args[-2], made.args[-1]), made.args[-3])
            said = emit_group(site, group, made.args[len(values)], inside)
        site.builder.ret_void()
        body = str(made).replace(name, "")
        self._groups += 1
        if body in self._bodies and set(self.ir.globals) == before:
            del self.ir.globals[name]
            made = self._bodies[body]
        else:
            self._bodies[body] = made
        builder.call(made, [*(pointers[value] for value in values), room, *own])
        return said

    def _emit_call(
        self, builder: ir.IRBuilder, placed: Placement, nest: Nest, pointers: Mapping[Value, ir.Value], room: ir.Value
    ) -> None:
        """The calls of `call`, `cond` and `while`."""
        maker = nest.maker
        assert maker is not None
        given = [pointers[placed.base(operand)] for operand in maker.operands]
        results = [pointers[result] for result in maker.results]
        if nest.kind == "call":
            builder.call(self.function(str(maker.attributes["function"]))[0], [*given, *results, room])
        elif nest.kind == "cond":
            with builder.if_else(load(builder, given[0], "bool")) as (then, otherwise):
                for branch, name in ((then, "true"), (otherwise, "false")):
                    with branch:
                        builder.call(self.function(str(maker.attributes[name]))[0], [*given[1:], *results, room])
        else:
            self._emit_while(builder, maker, given, results, room)

    def _emit_while(
        self,
        builder: ir.IRBuilder,
        maker: Instruction,
        given: Sequence[ir.Value],
        results: Sequence[ir.Value],
        room: ir.Value,
    ) -> None:
        """Two copies of the state, read and written in turn; the first is read from the operands."""
        rooms: list[list[ir.Value]] = [[], []]
        at = 0
        for copy in rooms:
            for result in maker.results:
                copy.append(moved(builder, room, at, "u8"))
                at += aligned(result.type.bytes)
        flag, arena = moved(builder, room, at, "u8"), moved(builder, room, at + ALIGNMENT, "u8")
        test, body = (self.function(str(maker.attributes[name]))[0] for name in ("condition", "body"))
        before = builder.block
        head, inside, done = (builder.append_basic_block(label) for label in ("while", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        phis = [[builder.phi(POINTER) for _ in maker.results] for _ in range(3)]
        for phi, *start in zip(phis[0], given, strict=True):
            phi.add_incoming(start[0], before)
        for copy, room_of in zip(phis[1:], rooms, strict=True):
            for phi, start_at in zip(copy, room_of, strict=True):
                phi.add_incoming(start_at, before)
        now, following, other = phis
        builder.call(test, [*now, flag, arena])
        builder.cbranch(load(builder, flag, "bool"), inside, done)
        builder.position_at_end(inside)
        builder.call(body, [*now, *following, arena])
        for current, after, third in zip(now, following, other, strict=True):
            current.add_incoming(after, builder.block)
            after.add_incoming(third, builder.block)
            third.add_incoming(after, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        for source, target, result in zip(now, results, maker.results, strict=True):
            self._copy(builder, source, target, result.type)

    def _copy(self, builder: ir.IRBuilder, source: ir.Value, target: ir.Value, type: TensorType) -> None:
        value, copy = Value("source", type), Value("target", type)
        placed = Placement(Function("copy", (value,), (), ()), {})
        emit_nest(Site(builder, self.machine, placed, {value: source, copy: target}), copied(value, copy), [])


def _data(function: Function) -> tuple[Instruction, ...]:
    """Constants that are arrays in the code."""
    return tuple(made for made in function.body if made.operation == "constant" and not is_uniform(made))


def _called(nest: Nest) -> str:
    assert nest.maker is not None
    names = [f"@{value}" for value in nest.maker.attributes.values() if isinstance(value, str)]
    return f"{nest.kind} {', '.join(names)}"


_ESCAPES = [f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    return "".join(map(_ESCAPES.__getitem__, data))
