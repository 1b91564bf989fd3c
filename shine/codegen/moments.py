"""The epilogue of fitness: it adds a chunk of predictions to the sums from which losses follow.

Sums are float64 in a fixed number of lanes, added in the order of the rows, so they have the same bits whatever the
vector width of the host and however rows are divided among calls. For linear scaling, the mean of a chunk is
subtracted before anything is squared, and chunks are merged by the update formula of Chan, Golub and LeVeque (1983):
nothing cancels, and the predictions are read from memory once.

`CHUNK_FIELDS` depend on target and weights alone: they are computed once a data set, not once an individual.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, broadcast, counted, declare, horizontal_sum, intrinsic, load, store
from shine.codegen.numbers import Numbers, splat

CHUNK = 256
"""Rows of a chunk: their predictions fill 2 KiB in float64."""

LANES = 8
"""Accumulators of each sum."""


def _squared(build: ir.IRBuilder, residual: ir.Value) -> ir.Value:
    return build.fmul(residual, residual)


def _absolute(build: ir.IRBuilder, residual: ir.Value) -> ir.Value:
    return build.call(intrinsic(build.module, "llvm.fabs", residual.type, 1), [residual])


ERRORS: dict[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]] = {"squared": _squared, "absolute": _absolute}
"""Function that emits the error of a residual, for each kind of errors."""

PRODUCTS = "products"
"""Name of the sum of the moments that linear scaling needs."""

SUMS = (*ERRORS, PRODUCTS)
"""Sums that a pass over the rows can add up: errors of a kind, or the moments of linear scaling."""

CHUNK_FIELDS = ("inverse_weight", "target_mean", "share", "between", "target_shift", "target_square", "weight")
"""Facts of a chunk of rows that are computed beforehand. With W and m its weight and its mean of the target, and W0 and
m0 those of all chunks before it: 1 / W; m; W / (W0 + W); W0 * W / (W0 + W); m - m0; then the sum of the target's
squared deviations, and the weight, of all rows up to the chunk's end. The first five are 0 if W is 0."""

PRODUCT_FIELDS = ("mean", "square", "product")
"""State of `products_function`: weighted mean of the predictions; sum of their squared deviations; sum of the
products of their deviations and the target's."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)


def error_rule(kind: str) -> Callable[[ir.IRBuilder, ir.Value], ir.Value]:
    """The function that emits the error of a residual; a `ValueError` if there is no such kind of errors."""
    return ERRORS[checked_kind(kind)]


def checked_sum(name: str) -> str:
    """`name`, if it is one of `SUMS`; else a `ValueError`."""
    return name if name == PRODUCTS else checked_kind(name)


def checked_kind(kind: str, known: Collection[str] = tuple(ERRORS), task: str = "adds up") -> str:
    """`kind`, if there is code for such errors; else a `ValueError`."""
    if kind not in known:
        raise ValueError(f"no code {task} {kind!r} errors; there is code for {', '.join(known)}")
    return kind


def errors_function(
    module: ir.Module, numbers: Numbers, kind: str, *, weighted: bool = True, scaled: bool = True
) -> ir.Function:
    """Internal function that adds the errors of a chunk: ``errors(predictions, target, weights, rows, line, state)``.

    Parameters
    ----------
    module : ir.Module
    numbers : Numbers
        Type of the predictions.
    kind : str
        One of `ERRORS`.
    weighted, scaled : bool
        Whether `weights` are read, and whether `line` is: slope and intercept of the model ``intercept + slope *
        prediction``. Weights of 1, or slope 1 and intercept 0, give the same bits as none.

    Notes
    -----
    `rows` is a multiple of `LANES`; padding rows have weight 0. The state is `LANES` sums.
    """
    emit_error = error_rule(kind)
    name = f"shine.{kind}.{'weighted' if weighted else 'plain'}.{'scaled' if scaled else 'raw'}.{numbers.dtype}"
    labels = ("predictions", "target", "weights", "rows", "line", "state")
    if name in module.globals:
        return module.globals[name]
    function, build = _define(module, name, labels)
    predictions, target, weights, rows, line, state = function.args
    slope, intercept = (broadcast(build, _double(build, line, i), _VECTOR) for i in (0, 1)) if scaled else (None, None)
    with counted(build, _ZERO, rows, LANES, [_lanes(build, state, _ZERO)]) as loop:
        value = _prediction(build, predictions, loop.index, numbers)
        if scaled:
            value = build.fadd(intercept, build.fmul(slope, value))
        residual = build.fsub(_lanes(build, target, loop.index), value)
        error = emit_error(build, residual)
        if weighted:
            error = build.fmul(_lanes(build, weights, loop.index), error)
        loop.results = [build.fadd(loop.values[0], error)]
    store(build, loop.values[0], state, _ZERO, _DOUBLE)
    build.ret_void()
    return function


def products_function(module: ir.Module, numbers: Numbers, *, weighted: bool = True) -> ir.Function:
    """Internal function that adds a chunk to the state of `PRODUCT_FIELDS`.

    ``products(predictions, target, weights, rows, known, state)``, with `known` the chunk's `CHUNK_FIELDS`.
    """
    name = f"shine.products.{'weighted' if weighted else 'plain'}.{numbers.dtype}"
    labels = ("predictions", "target", "weights", "rows", "known", "state")
    if name in module.globals:
        return module.globals[name]
    function, build = _define(module, name, labels)
    predictions, target, weights, rows, known, state = function.args
    zero = splat(_VECTOR, 0.0)
    weigh: Callable[[ir.Value, ir.Value], ir.Value] = lambda value, row: (  # noqa: E731
        build.fmul(_lanes(build, weights, row), value) if weighted else value
    )
    with counted(build, _ZERO, rows, LANES, [zero]) as loop:
        value = _prediction(build, predictions, loop.index, numbers)
        loop.results = [build.fadd(loop.values[0], weigh(value, loop.index))]
    chunk = {name: _double(build, known, i) for i, name in enumerate(CHUNK_FIELDS)}
    mean = build.fmul(horizontal_sum(build, loop.values[0]), chunk["inverse_weight"])
    centres = broadcast(build, mean, _VECTOR), broadcast(build, chunk["target_mean"], _VECTOR)
    with counted(build, _ZERO, rows, LANES, [zero, zero]) as loop:
        deviation = build.fsub(_prediction(build, predictions, loop.index, numbers), centres[0])
        weighed = weigh(deviation, loop.index)
        other = build.fsub(_lanes(build, target, loop.index), centres[1])
        terms = build.fmul(weighed, deviation), build.fmul(weighed, other)
        loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
    square, product = (horizontal_sum(build, total) for total in loop.values)
    _merge(build, chunk, mean, square, product, state)
    build.ret_void()
    return function


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


def _define(module: ir.Module, name: str, labels: tuple[str, ...]) -> tuple[ir.Function, ir.IRBuilder]:
    """A new internal function that stays a call."""
    kinds = [I64 if label == "rows" else POINTER for label in labels]
    function = declare(module, name, ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _double(build: ir.IRBuilder, pointer: ir.Value, index: int) -> ir.Value:
    return load(build, pointer, ir.Constant(I64, index), _DOUBLE, _DOUBLE)


def _lanes(build: ir.IRBuilder, pointer: ir.Value, index: ir.Value) -> ir.Value:
    return load(build, pointer, index, _DOUBLE, _VECTOR)


def _prediction(build: ir.IRBuilder, predictions: ir.Value, index: ir.Value, numbers: Numbers) -> ir.Value:
    """Predictions of the next lanes, as float64."""
    value = load(build, predictions, index, numbers.element, ir.VectorType(numbers.element, LANES))
    if numbers.is_integer:
        return build.sitofp(value, _VECTOR)
    return build.fpext(value, _VECTOR) if numbers.dtype == "float32" else value
