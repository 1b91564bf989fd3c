"""Code that looks up keys: a search tree in order of levels, descended without branches by several queries at once.

The tree is perfect: keys that are larger than all are added until every level is full. So the way from the root, a bit
a level, is the number of keys on the left of the query, and no node needs pointers (Khuong and Morin, Array layouts
for comparison-based searching, J. Exp. Algorithmics 22, 2017).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, load, store
from shine.compiler.codegen.numbers import source_digest, splat
from shine.compiler.llvm import Engine
from shine.compiler.processor import machine_of
from shine.trees.layout import AT_ONCE, DOUBLE, FLOAT, gather, number

TYPES: dict[str, ir.Type] = {
    "float64": DOUBLE,
    "float32": FLOAT,
    "int64": I64,
    "uint64": I64,
    "int32": ir.IntType(32),
    "uint32": ir.IntType(32),
}
"""Type of the keys in LLVM."""

LEFT, RIGHT, FIND = "left", "right", "find"
"""Result of a look-up: the number of keys below a query, of keys not above it, or the key's position, -1 if none."""


def level_order(keys: AnyArray) -> AnyArray:
    """Sorted keys as a perfect tree: the root at 1, children of k at 2 k and 2 k + 1."""
    depth = len(keys).bit_length()
    largest = np.inf if keys.dtype.kind == "f" else np.iinfo(keys.dtype).max
    padded = np.full((1 << depth) - 1, largest, keys.dtype)
    padded[: len(keys)] = keys
    rows = [padded[(1 << (depth - level - 1)) - 1 :: 1 << (depth - level)] for level in range(depth)]
    return np.concatenate([np.zeros(1, keys.dtype), *rows])


@cache
def lookup(dtype: str, what: str) -> Callable[..., None]:
    """The function ``(tree, depth, keys, n_keys, queries, n_queries, out)``; results are int64."""
    lanes = max(2, machine_of().vector_bytes // 8)
    meaning = ("keys", dtype, what, str(lanes), source_digest("trees"))
    engine = Engine.kept(["lookup"], meaning, lambda: _text(dtype, what, lanes))
    kinds = [ctypes.c_void_p, ctypes.c_int64] * 3 + [ctypes.c_void_p]
    function: Callable[..., None] = engine.function("lookup", None, *kinds)
    return function


def text_of_one(dtype: str) -> str:
    """LLVM IR of ``i64 find(ptr table, key)``; a table has the first four arguments of `lookup`."""
    module = ir.Module(name="key")
    function = declare(module, "find", I64, [POINTER, TYPES[dtype]], ("table", "key"))
    build = ir.IRBuilder(function.append_basic_block("entry"))
    table, key = function.args
    read = [load(build, table, number(place), I64, kind, 8) for place, kind in enumerate((POINTER, I64) * 2)]
    build.ret(_found(build, dtype, FIND, read, [key])[0])
    return str(module)


def _text(dtype: str, what: str, lanes: int) -> str:
    module = ir.Module(name="keys")
    labels = ("tree", "depth", "keys", "n_keys", "queries", "n_queries", "out")
    function = declare(module, "lookup", ir.VoidType(), [POINTER, I64] * 3 + [POINTER], labels)
    build = ir.IRBuilder(function.append_basic_block("entry"))
    queries, n_queries, out = function.args[4:]
    out.add_attribute("noalias")
    block = lanes * AT_ONCE
    whole = build.sub(n_queries, build.urem(n_queries, number(block)))
    for start, stop, width, vectors in ((number(0), whole, lanes, AT_ONCE), (whole, n_queries, 1, 1)):
        with counted(build, start, stop, width * vectors) as group:
            element = TYPES[dtype]
            kind = element if width == 1 else ir.VectorType(element, width)
            places = [build.add(group.index, number(vector * width)) for vector in range(vectors)]
            wanted = [load(build, queries, place, element, kind) for place in places]
            for place, found in zip(places, _found(build, dtype, what, function.args[:4], wanted), strict=True):
                store(build, found, out, place, I64)
    build.ret_void()
    return str(module)


def _found(
    build: ir.IRBuilder, dtype: str, what: str, table: Sequence[ir.Value], wanted: list[ir.Value]
) -> list[ir.Value]:
    """Results for vectors of queries, or for single ones."""
    tree, depth, keys, n_keys = table
    element = TYPES[dtype]
    is_vector = isinstance(wanted[0].type, ir.VectorType)
    kind = ir.VectorType(I64, wanted[0].type.count) if is_vector else I64

    def element_at(base: ir.Value, index: ir.Value) -> ir.Value:
        return gather(build, base, index, element) if is_vector else load(build, base, index, element, element)

    def compare(operator: str, left: ir.Value, right: ir.Value) -> ir.Value:
        if dtype.startswith("float"):
            # NaN is above all keys.
            return (build.fcmp_ordered if operator == "==" else build.fcmp_unordered)(operator, left, right)
        return (build.icmp_unsigned if dtype.startswith("u") else build.icmp_signed)(operator, left, right)

    below = "<=" if what == RIGHT else "<"
    with counted(build, number(0), depth, carried=[splat(kind, 1)] * len(wanted)) as level:
        for place, query in zip(level.values, wanted, strict=True):
            goes_right = build.zext(compare(below, element_at(tree, place), query), kind)
            level.results.append(build.or_(build.shl(place, splat(kind, 1)), goes_right))
    first = build.shl(number(1), depth)
    results = []
    for place, query in zip(level.values, wanted, strict=True):
        start, count = (_spread(build, value, kind) for value in (first, n_keys))
        rank = build.sub(place, start)
        rank = build.select(build.icmp_signed("<", rank, count), rank, count)
        if what == FIND:
            last = build.sub(count, splat(kind, 1))
            inside = build.select(build.icmp_signed("<", rank, last), rank, last)
            rank = build.select(compare("==", element_at(keys, inside), query), inside, splat(kind, -1))
        results.append(rank)
    return results


def _spread(build: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    return broadcast(build, value, kind) if isinstance(kind, ir.VectorType) else value
