"""Tables of constants in a module; each lane reads an entry of its own."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.vecmath.lanes import Lanes, like


def table(module: ir.Module, name: str, element: ir.Type, entries: Sequence[float]) -> ir.GlobalVariable:
    """The module's constant array `name`, defined on first use."""
    known = module.globals.get(name)
    if known is not None:
        return known
    kind = ir.ArrayType(element, len(entries))
    variable = ir.GlobalVariable(module, kind, name)
    variable.initializer = ir.Constant(kind, list(entries))
    variable.linkage, variable.global_constant, variable.unnamed_addr = "private", True, True
    return variable


def entries_at(source: ir.GlobalVariable, index: Lanes, count: int) -> list[Lanes]:
    """Each lane's `count` entries of a table from `index` on, an integer that must be inside it.

    One load and one insertion per lane: most targets have no gather instruction.
    """
    builder = index.builder
    element = source.value_type.element
    vector = isinstance(index.type, ir.VectorType)
    kind = like(index.type, element)
    collected: list[ir.Value] = [ir.Constant(kind, ir.Undefined)] * count
    for lane in range(index.type.count if vector else 1):
        place = ir.Constant(ir.IntType(32), lane)
        first = builder.extract_element(index.value, place) if vector else index.value
        row = builder.gep(source, [ir.IntType(32)(0), first], inbounds=True)
        for i in range(count):
            pointer = builder.gep(row, [ir.IntType(32)(i)], inbounds=True, source_etype=element)
            entry = builder.load(pointer, typ=element)
            collected[i] = builder.insert_element(collected[i], entry, place) if vector else entry
    return [Lanes(builder, value) for value in collected]
