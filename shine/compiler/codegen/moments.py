"""The epilogue of linear scaling: it adds a chunk of predictions to the moments of the best line.

Sums are float64 in a fixed number of lanes, added in the order of the rows, so they have the same bits whatever the
vector width of the host and however rows are divided among calls. The mean of a chunk is subtracted before anything is
squared, and chunks are merged by the update formula of Chan, Golub and LeVeque (1983): nothing cancels, and the
predictions are read from memory once.

`CHUNK_FIELDS` depend on target and weights alone: they are computed once a data set, not once an individual.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    FunctionPointer,
    broadcast,
    counted,
    declare,
    horizontal_sum,
    load,
    store,
)
from shine.compiler.codegen.numbers import Numbers, splat

CHUNK = 256
"""Rows of a chunk: their predictions fill 2 KiB in float64."""

TILE_BYTES = 2048
"""Bytes of a tile, for whose rows errors are added up in one call, in every tier: logarithms in them are those of
products of rows, so the tile decides the last bit. Large enough to hide the jump to the next instruction, small enough
for many in a 32 KiB cache."""

LANES = 8
"""Accumulators of each sum."""


CHUNK_FIELDS = ("inverse_weight", "target_mean", "share", "between", "target_shift", "target_square", "weight")
"""Facts of a chunk of rows that are computed beforehand. With W and m its weight and its mean of the target, and W0 and
m0 those of all chunks before it: 1 / W; m; W / (W0 + W); W0 * W / (W0 + W); m - m0; then the sum of the target's
squared deviations, and the weight, of all rows up to the chunk's end. The first five are 0 if W is 0."""

PRODUCT_FIELDS = ("mean", "square", "product")
"""State of `products_function`: weighted mean of the predictions; sum of their squared deviations; sum of the
products of their deviations and the target's."""

ERRORS_LABELS = ("predictions", "target", "weights", "rows", "line", "loss_columns", "first", "state")
ERRORS_KINDS = [I64 if label in ("rows", "first") else POINTER for label in ERRORS_LABELS]

ERRORS = FunctionPointer(ir.FunctionType(ir.VoidType(), ERRORS_KINDS))
"""A function that adds up errors (see `shine.evaluate.losses.row_errors`)."""

FIT = FunctionPointer(ir.FunctionType(ir.VoidType(), [POINTER] * 3))
"""A function that fits lines: ``fit(predictions, data, found)`` (see `shine.evaluate.gradient.line_fitting`)."""

LINE_FORMS = ("none", "intercept", "slope", "both")
"""Forms of lines, the simplest first, by the fitted ones of slope and intercept; the others are 1 and 0."""

LINE_FIELDS = ("slope", "intercept", "error")
"""Numbers of a fitted line; the error is the weighted sum over the rows so far, above the least one: not finite if the
line needs no measuring."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)


def products_function(module: ir.Module, numbers: Numbers, *, weighted: bool = True) -> ir.Function:
    """Internal function that adds a chunk to the state of `PRODUCT_FIELDS`.

    ``products(predictions, target, weights, rows, known, state)``, with `known` the chunk's `CHUNK_FIELDS`.
    """
    name = f"shine.products.{'weighted' if weighted else 'plain'}.{numbers.dtype}"
    labels = ("predictions", "target", "weights", "rows", "known", "state")
    if name in module.globals:
        return module.globals[name]
    kinds = [I64 if label == "rows" else POINTER for label in labels]
    function = declare(module, name, ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    predictions, target, weights, rows, known, state = function.args
    zero = splat(_VECTOR, 0.0)
    weigh: Callable[[ir.Value, ir.Value], ir.Value] = lambda value, row: (  # noqa: E731
        build.fmul(lanes(build, weights, row), value) if weighted else value
    )
    with counted(build, _ZERO, rows, LANES, [zero]) as loop:
        value = prediction_lanes(build, predictions, loop.index, numbers)
        loop.results = [build.fadd(loop.values[0], weigh(value, loop.index))]
    chunk = {name: _double(build, known, i) for i, name in enumerate(CHUNK_FIELDS)}
    mean = build.fmul(horizontal_sum(build, loop.values[0]), chunk["inverse_weight"])
    centres = broadcast(build, mean, _VECTOR), broadcast(build, chunk["target_mean"], _VECTOR)
    with counted(build, _ZERO, rows, LANES, [zero, zero]) as loop:
        deviation = build.fsub(prediction_lanes(build, predictions, loop.index, numbers), centres[0])
        weighed = weigh(deviation, loop.index)
        other = build.fsub(lanes(build, target, loop.index), centres[1])
        terms = build.fmul(weighed, deviation), build.fmul(weighed, other)
        loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
    square, product = (horizontal_sum(build, total) for total in loop.values)
    _merge(build, chunk, mean, square, product, state)
    build.ret_void()
    return function


def scale_rows(build: ir.IRBuilder, predictions: ir.Value, rows: ir.Value, factor: ir.Value) -> None:
    """Multiply float64 predictions in place; `rows` is a multiple of `LANES`."""
    factors = broadcast(build, factor, _VECTOR)
    with counted(build, _ZERO, rows, LANES) as loop:
        scaled = build.fmul(lanes(build, predictions, loop.index), factors)
        store(build, scaled, predictions, loop.index, _DOUBLE)


def _merge(
    build: ir.IRBuilder,
    chunk: dict[str, ir.Value],
    mean: ir.Value,
    square: ir.Value,
    product: ir.Value,
    state: ir.Value,
) -> None:
    """Add the moments of a chunk to those of the chunks before it."""
    old_mean, old_square, old_product = (_double(build, state, i) for i in range(len(PRODUCT_FIELDS)))
    shift = build.fsub(mean, old_mean)
    across = build.fmul(shift, chunk["between"])
    new = (
        build.fadd(old_mean, build.fmul(shift, chunk["share"])),
        build.fadd(build.fadd(old_square, square), build.fmul(shift, across)),
        build.fadd(build.fadd(old_product, product), build.fmul(chunk["target_shift"], across)),
    )
    for i, value in enumerate(new):
        store(build, value, state, ir.Constant(I64, i), _DOUBLE)


def _double(build: ir.IRBuilder, pointer: ir.Value, index: int) -> ir.Value:
    return load(build, pointer, ir.Constant(I64, index), _DOUBLE, _DOUBLE)


def lanes(build: ir.IRBuilder, pointer: ir.Value, index: ir.Value, count: int = LANES) -> ir.Value:
    """The next float64 of an array, one in each of `count` lanes."""
    return load(build, pointer, index, _DOUBLE, ir.VectorType(_DOUBLE, count))


def prediction_lanes(
    build: ir.IRBuilder, predictions: ir.Value, index: ir.Value, numbers: Numbers, count: int = LANES
) -> ir.Value:
    """The next predictions, as float64, one in each of `count` lanes."""
    value = load(build, predictions, index, numbers.element, ir.VectorType(numbers.element, count))
    doubles = ir.VectorType(_DOUBLE, count)
    if numbers.is_integer:
        return build.sitofp(value, doubles)
    return build.fpext(value, doubles) if numbers.dtype == "float32" else value
