"""The elements of Python's lists of floats, copied into a matrix by native code of this process.

The code reads objects at the offsets that CPython promises to extension modules.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, element_pointer, load, store

_HEAD, _WORD = object.__basicsize__, 8
_TYPE, _SIZE, _ITEMS, _NUMBER = _HEAD - _WORD, _HEAD, _HEAD + _WORD, _HEAD
"""Offsets of an object's type, of the length and the items of a list, and of the number of a float, in bytes."""

_BYTE, _I32, _DOUBLE = ir.IntType(8), ir.IntType(32), ir.DoubleType()
_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


def lists_ir(name: str) -> str:
    """LLVM IR of ``i64 name(lists, type, float, matrix, rows, length)``: the rows read before one that does not fit.

    A row with a wrong type or length has no elements that are read; a wrong element ends the call after its row.
    """
    module = ir.Module(name=name)
    labels = ("lists", "type", "float", "matrix", "rows", "length")
    function = declare(module, name, I64, [POINTER, I64, I64, POINTER, I64, I64], labels)
    lists, kind, number, matrix, rows, length = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    individuals = _field(builder, lists, _ITEMS, POINTER)
    # Read, keep in all caches, data: the floats of a population lie all over the memory.
    prefetch = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, _I32, _I32, _I32]), "llvm.prefetch.p0")
    flags = [ir.Constant(_I32, flag) for flag in (0, 3, 1)]
    # The caller's list has as many items as the matrix has rows.
    with counted(builder, _ZERO, rows, carried=[_ZERO]) as loop:
        individual = load(builder, individuals, loop.index, POINTER, POINTER, _WORD)
        fits = builder.icmp_signed("==", _field(builder, individual, _TYPE, I64), kind)
        # Other objects are not read; the list of the individuals takes their place.
        individual = builder.select(fits, individual, lists)
        fits = builder.and_(fits, builder.icmp_signed("==", _field(builder, individual, _SIZE, I64), length))
        fits = builder.and_(fits, builder.icmp_signed("==", loop.values[0], loop.index))
        items = _field(builder, individual, _ITEMS, POINTER)
        following = _items_of_next(builder, function, individuals, loop.index, items)
        row = element_pointer(builder, matrix, builder.mul(loop.index, length), _DOUBLE)
        count = builder.select(fits, length, _ZERO)
        with counted(builder, _ZERO, count, carried=[fits]) as element:
            ahead = load(builder, following, element.index, POINTER, POINTER, _WORD)
            builder.call(prefetch, [ahead, *flags])
            item = load(builder, items, element.index, POINTER, POINTER, _WORD)
            is_float = builder.icmp_signed("==", _field(builder, item, _TYPE, I64), number)
            with builder.if_then(is_float):
                store(builder, _field(builder, item, _NUMBER, _DOUBLE), row, element.index, _DOUBLE)
            element.results = [builder.and_(element.values[0], is_float)]
        done = builder.select(element.values[0], _ONE, _ZERO)
        loop.results = [builder.add(loop.values[0], done)]
    builder.ret(loop.values[0])
    return str(module)


def _items_of_next(
    builder: ir.IRBuilder, function: ir.Function, individuals: ir.Value, index: ir.Value, items: ir.Value
) -> ir.Value:
    """The items of the next individual, if there is one that fits; else `items`."""
    lists, kind, _, _, rows, length = function.args
    place = builder.add(index, _ONE)
    place = builder.select(builder.icmp_signed("<", place, rows), place, index)
    following = load(builder, individuals, place, POINTER, POINTER, _WORD)
    fits = builder.icmp_signed("==", _field(builder, following, _TYPE, I64), kind)
    following = builder.select(fits, following, lists)
    fits = builder.and_(fits, builder.icmp_signed("==", _field(builder, following, _SIZE, I64), length))
    return builder.select(fits, _field(builder, following, _ITEMS, POINTER), items)


def _field(builder: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    place = element_pointer(builder, address, ir.Constant(I64, offset), _BYTE)
    return load(builder, place, _ZERO, kind, kind, _WORD)
