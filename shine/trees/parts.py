"""Shared parts of the code of an ensemble: types, lanes, and the tables as arguments."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, element_pointer, load, store
from shine.compiler.codegen.numbers import splat
from shine.trees.layout import TREE_FIELDS, Shape

I1, I32, DOUBLE, FLOAT = ir.IntType(1), ir.IntType(32), ir.DoubleType(), ir.FloatType()

REALS: dict[str, ir.Type] = {"float64": DOUBLE, "float32": FLOAT}

AT_ONCE = 4
"""Vectors of rows that a node is applied to at once: enough to hide how long an instruction takes."""

TABLES = ("features", "trees", "thresholds", "words", "places", "nodes", "leaves", "values", "sets", "base")
"""Arguments that are arrays of `shine.trees.layout.Tables`."""

COUNTS = ("n_features", "n_numeric", "n_trees", "n_outputs")
"""Arguments that are sizes."""


@dataclass(frozen=True)
class Plan:
    """An ensemble's shape on a processor.

    Parameters
    ----------
    shape : Shape
    lanes : int
        Rows of a vector.
    """

    shape: Shape
    lanes: int

    @property
    def block(self) -> int:
        """Rows that are computed together."""
        return self.lanes * AT_ONCE

    @property
    def real(self) -> ir.Type:
        """Type in which features are compared."""
        return REALS[self.shape.real]

    @property
    def word(self) -> ir.IntType:
        """Type of a word of leaves."""
        return ir.IntType(self.shape.word)

    def vector(self, element: ir.Type) -> ir.VectorType:
        """A vector with an element for each row."""
        return ir.VectorType(element, self.lanes)


def number(value: int) -> ir.Constant:
    """An i64."""
    return ir.Constant(I64, value)


def tree_fields(build: ir.IRBuilder, row: ir.Value) -> dict[str, ir.Value]:
    """Fields of a tree's row."""
    return {name: load(build, row, number(place), I64, I64) for place, name in enumerate(TREE_FIELDS)}


def every(kind: ir.VectorType, value: int | float) -> ir.Constant:
    """A vector with one value."""
    return splat(kind, value)


def gather(
    build: ir.IRBuilder, base: ir.Value, indices: ir.Value, element: ir.Type, mask: ir.Value | None = None
) -> ir.Value:
    """``base[index]`` for each lane; 0 where a mask is not set."""
    lanes = indices.type.count
    kind, flags = ir.VectorType(element, lanes), ir.VectorType(I1, lanes)
    pointers = ir.VectorType(POINTER, lanes)
    code = {DOUBLE: "f64", FLOAT: "f32"}.get(element) or f"i{element.width}"
    name = f"llvm.masked.gather.v{lanes}{code}.v{lanes}p0"
    function = build.module.globals.get(name) or ir.Function(
        build.module, ir.FunctionType(kind, [pointers, I32, flags, kind]), name
    )
    places = build.gep(base, [indices], source_etype=element)
    places.type = pointers
    size = 8 if element == DOUBLE else 4 if element == FLOAT else element.width // 8
    chosen = every(flags, 1) if mask is None else mask
    return build.call(function, [places, ir.Constant(I32, size), chosen, ir.Constant(kind, None)])


def has_bit(
    build: ir.IRBuilder, sets: ir.Value, first: ir.Value, codes: ir.Value, mask: ir.Value | None = None
) -> ir.Value:
    """Whether the sets that begin at the words `first` have codes; lanes of integers of one type."""
    kind = codes.type
    place = build.add(first, build.lshr(codes, every(kind, 5)))
    words = gather(build, sets, place, I32, mask)
    narrow = words.type
    shift = build.and_(codes, every(kind, 31))
    if kind != narrow:
        shift = build.trunc(shift, narrow)
    return build.trunc(build.lshr(words, shift), ir.VectorType(I1, kind.count))


def add_values(
    build: ir.IRBuilder, plan: Plan, tree: dict[str, ir.Value], values: ir.Value, places: list[ir.Value], acc: ir.Value
) -> None:
    """Add the values of leaves to the outputs of a tree; `places` are integers, from the tree's first value on."""
    kind = plan.vector(DOUBLE)
    own = element_pointer(build, values, tree["value"], DOUBLE)
    with counted(build, number(0), tree["width"]) as column:
        out = build.mul(build.add(tree["output"], column.index), number(plan.block))
        base = element_pointer(build, own, column.index, DOUBLE)
        for vector, place in enumerate(places):
            at = build.add(out, number(vector * plan.lanes))
            total = build.fadd(load(build, acc, at, DOUBLE, kind), gather(build, base, place, DOUBLE))
            store(build, total, acc, at, DOUBLE)
