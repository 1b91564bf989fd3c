"""Functions of C around those of a module's code: the program, and the steps of it that threads share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, declare
from shine.tensor.form.module import Function
from shine.tensor.loops.division import Sharing


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
