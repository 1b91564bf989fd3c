"""From a module to LLVM IR: a function of its own for each group of nests, and the calls of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, declare
from shine.compiler.processor import Machine, machine_of
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS
from shine.tensor.form.types import TensorType
from shine.tensor.loops.arena import ALIGNMENT, aligned
from shine.tensor.loops.division import Part, Sharing
from shine.tensor.loops.fusion import Group, Nest, copied, reads
from shine.tensor.loops.groups import emit_group, emit_paddings, needs_padding
from shine.tensor.loops.lanes import BYTE, load
from shine.tensor.loops.memory import Plan, loop_scratch, plan_module
from shine.tensor.loops.nest import Site, emit_nest
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.kernel import moved
from shine.tensor.loops.products.tiles import in_rows, row_length
from shine.tensor.loops.sharing import SHARED_CALL, driver_ir, scratch_bytes, sharing_of, work_of


@dataclass(eq=False)
class Steps:
    """Shared by threads: groups in words; functions of steps and their blocks; memory of each thread."""

    said: list[str]
    blocks: dict[str, int] = field(default_factory=dict)
    scratch: int = 0


def entry(module: ir.Module, name: str, declared: Function, inner: ir.Function) -> None:
    """Emit the function of C."""
    outer = declare(module, name, ir.VoidType(), [POINTER] * 3, ("arguments", "results", "arena"))
    builder = ir.IRBuilder(outer.append_basic_block("entry"))
    builder.call(inner, _unpacked(builder, outer, declared))
    builder.ret_void()


def _unpacked(builder: ir.IRBuilder, outer: ir.Function, declared: Function) -> list[ir.Value]:
    """Addresses of arguments, results and arena."""
    pointers = []
    for table, count in ((outer.args[0], len(declared.parameters)), (outer.args[1], len(declared.results))):
        for place in range(count):
            address = builder.gep(table, [ir.Constant(I64, place)], source_etype=POINTER)
            pointers.append(builder.load(address, typ=POINTER))
    return [*pointers, outer.args[2]]


def step(
    module: ir.Module,
    steps: Steps,
    name: str,
    function: Function,
    inner: Sequence[ir.Function],
    sharing: Sharing | None = None,
) -> None:
    """A function for a block of a step."""
    labels = ("arguments", "results", "arena", "scratch", "block")
    made = declare(module, name, ir.VoidType(), [*[POINTER] * 4, I64], labels)
    made.linkage = "internal"
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    more: list[ir.Value] = []
    if sharing is not None:
        units, blocks, block = ir.Constant(I64, sharing.units), ir.Constant(I64, sharing.blocks), made.args[4]
        for number in (block, builder.add(block, ir.Constant(I64, 1))):
            more.append(builder.udiv(builder.mul(number, units), blocks))
        more.insert(0, made.args[3])
    given = _unpacked(builder, made, function)
    for each in inner:
        builder.call(each, [*given, *more])
    builder.ret_void()
    steps.blocks[name] = sharing.blocks if sharing else 1


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
        Descriptions of the groups of nests, in order.
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
        Its arguments.
    """
    machine = machine or machine_of()
    declared, name = module.function(function), name or function
    plans = plan_module(module, machine)
    code = _Code(module, machine, plans)
    inner, arena = code.function(function), plans[function].memory.arena_bytes
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
    plans: Mapping[str, Plan]
    ir: ir.Module = field(default_factory=ir.Module)
    data: list[str] = field(default_factory=list)
    report: dict[str, list[str]] = field(default_factory=dict)
    _functions: dict[str, ir.Function] = field(default_factory=dict)
    _constants: dict[tuple[str, bytes], ir.Value] = field(default_factory=dict)
    _bodies: dict[str, ir.Function] = field(default_factory=dict)
    _groups: int = 0

    def function(self, name: str) -> ir.Function:
        """The code of a function."""
        if name not in self._functions:
            self._functions[name] = self._sequence(self.module.function(name))
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
        placed, groups = self.plans[function.name].placed, self.plans[function.name].groups
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
                alone.append(self._sequence(function, place))
                continue
            if needs_padding(self.machine, groups[place]):
                alone.append(self._sequence(function, place, is_padding=True))
            close()
            inner = self._sequence(function, place, sharing)
            step(self.ir, steps, f"{name}.step.{len(steps.blocks)}", function, (inner,), sharing)
            steps.scratch = max(steps.scratch, aligned(scratch_bytes(self.machine, placed, groups[place])))
            said[place] = self.report[function.name][-1]
        close()
        return steps

    def parts(self, function: Function) -> list[ir.Function]:
        """A function for each group of nests of a function, and each copy of a result."""
        report = list(self.report[function.name])
        found = [self._sequence(function, place) for place in range(len(report))]
        self.report[function.name] = report
        return found

    def _sequence(
        self, function: Function, only: int | None = None, sharing: Sharing | None = None, is_padding: bool = False
    ) -> ir.Function:
        """The function that runs all groups, or one of them, or a part of one, or the work before its parts."""
        plan = self.plans[function.name]
        placed, memory = plan.placed, plan.memory
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
            if place.kind == "data":
                array: Any = plan.data[place.at].attributes["value"]
                pointers[value] = self.constant(in_rows(array, row_length(self.machine, placed, value)))
            elif place.kind == "arena":
                pointers[value] = moved(builder, arena, place.at, "u8")
            else:
                pointers[value] = (made.args if place.kind == "parameter" else results)[place.at]
        todo = list(zip(plan.groups, memory.scratch, strict=True))
        for value, result in memory.copies:
            target = Value(f"result.{result}", value.type)
            pointers[target] = results[result]
            todo.append((Group([copied(value, target)]), 0))
        said = self.report.setdefault(function.name, [])
        caller = Site(builder, self.machine, placed, pointers)
        for group, offset in todo if only is None else todo[only : only + 1]:
            room = moved(builder, arena, offset, "u8")
            if group.nests[0].kind in CALLS:
                self._emit_call(caller, group.nests[0], room)
                said.append(_called(group.nests[0]))
            else:
                part = Part(sharing, (own[1], own[2]), own[0]) if sharing else None
                said.append(self._emit_group(caller, group, room, part, is_padding))
        builder.ret_void()
        return made

    def _emit_group(
        self, caller: Site, group: Group, room: ir.Value, part: Part | None = None, is_padding: bool = False
    ) -> str:
        """A function for a group of nests, or the one of an equal group, and the call; return its description."""
        placed, pointers = caller.placed, caller.pointers
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
        caller.builder.call(made, [*(pointers[value] for value in values), room, *own])
        return said

    def _emit_call(self, caller: Site, nest: Nest, room: ir.Value) -> None:
        """The calls of `call`, `cond` and `while`."""
        builder, maker = caller.builder, nest.maker
        assert maker is not None
        given = [caller.pointers[caller.placed.base(operand)] for operand in maker.operands]
        results = [caller.pointers[result] for result in maker.results]
        if nest.kind == "call":
            builder.call(self.function(str(maker.attributes["function"])), [*given, *results, room])
        elif nest.kind == "cond":
            with builder.if_else(load(builder, given[0], "bool")) as (then, otherwise):
                for branch, name in ((then, "true"), (otherwise, "false")):
                    with branch:
                        builder.call(self.function(str(maker.attributes[name])), [*given[1:], *results, room])
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
        scratch = loop_scratch(maker)
        rooms = [[moved(builder, room, at, "u8") for at in offsets] for offsets in scratch.states]
        flag, arena = moved(builder, room, scratch.condition, "u8"), moved(builder, room, scratch.arena, "u8")
        test, body = (self.function(str(maker.attributes[name])) for name in ("condition", "body"))
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


def _called(nest: Nest) -> str:
    assert nest.maker is not None
    names = [f"@{value}" for value in nest.maker.attributes.values() if isinstance(value, str)]
    return f"{nest.kind} {', '.join(names)}"


_ESCAPES = [f"\\{byte:02X}" for byte in range(256)]


def _escaped(data: bytes) -> str:
    return "".join(map(_ESCAPES.__getitem__, data))
