"""The epilogue of fitness: moments of predictions against the target, a chunk of rows at a time.

Within a chunk the mean is subtracted before anything is squared; chunks are merged by the update formula of Chan,
Golub and LeVeque (1983). So nothing cancels, the predictions are read once from memory, and the order of additions
depends on the row number alone.
"""

from __future__ import annotations

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, counted, declare, element_pointer, horizontal_sum, intrinsic, load, store
from shine.codegen.numbers import Numbers, splat

CHUNK = 512
"""Rows whose predictions are kept between the two steps; float64 predictions of a chunk fill 4 KiB."""

LANES = 8
"""Accumulators of each sum, whatever the vector width of the host."""

FIELDS = ("weight", "mean", "target", "square", "product", "squared_error", "absolute_error")
"""What the state of an individual holds, float64 each: sum of weights; weighted means of the predictions and of the
centred target; sums of centred squares and products; sums of squared and absolute errors."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


def accumulate_function(module: ir.Module, numbers: Numbers) -> ir.Function:
    """Internal function that adds a chunk to the moments of an individual.

    ``accumulate(predictions, target, weights, rows, parameters, state)``: `rows` is a multiple of `LANES` (a chunk
    is filled up with rows of weight 0); `parameters` are the slope, the intercept and the target's mean, and the
    errors are those of ``intercept + slope * prediction``.
    """
    name = f"shine.accumulate.{numbers.dtype}"
    if name in module.globals:
        return module.globals[name]
    kinds = [POINTER, POINTER, POINTER, I64, POINTER, POINTER]
    labels = ("predictions", "target", "weights", "rows", "parameters", "state")
    function = declare(module, name, ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    chunk = _Chunk(builder, numbers, *function.args)
    sums = chunk.errors()
    centred = chunk.centred(*(chunk.mean(sums, name) for name in ("mean", "target")))
    chunk.merge(sums, centred)
    builder.ret_void()
    return function


class _Chunk:
    """The instructions of `accumulate_function`."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        numbers: Numbers,
        predictions: ir.Value,
        target: ir.Value,
        weights: ir.Value,
        rows: ir.Value,
        parameters: ir.Value,
        state: ir.Value,
    ) -> None:
        self.builder, self.numbers, self.rows, self.state = builder, numbers, rows, state
        self.pointers = predictions, target, weights
        self.slope, self.intercept, self.target_mean = (
            load(builder, parameters, ir.Constant(I64, i), _DOUBLE, _DOUBLE) for i in range(3)
        )

    def _rows(self, index: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Predictions, targets and weights of the next lanes, as float64."""
        build, (predictions, target, weights) = self.builder, self.pointers
        element = self.numbers.element
        prediction = load(build, predictions, index, element, ir.VectorType(element, LANES))
        if self.numbers.is_integer:
            prediction = build.sitofp(prediction, _VECTOR)
        elif self.numbers.dtype == "float32":
            prediction = build.fpext(prediction, _VECTOR)
        return prediction, load(build, target, index, _DOUBLE, _VECTOR), load(build, weights, index, _DOUBLE, _VECTOR)

    def _broadcast(self, value: ir.Value) -> ir.Value:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, undefined, mask)

    def errors(self) -> dict[str, ir.Value]:
        """First step: weights, weighted sums of prediction and centred target, and errors."""
        build, zero = self.builder, splat(_VECTOR, 0.0)
        names = ("weight", "mean", "target", "squared_error", "absolute_error")
        slope, intercept, mean = (self._broadcast(v) for v in (self.slope, self.intercept, self.target_mean))
        fabs = intrinsic(build.module, "llvm.fabs", _VECTOR, 1)
        with counted(build, ir.Constant(I64, 0), self.rows, LANES, [zero] * len(names)) as loop:
            prediction, target, weight = self._rows(loop.index)
            residual = build.fsub(target, build.fadd(intercept, build.fmul(slope, prediction)))
            terms = (
                weight,
                build.fmul(weight, prediction),
                build.fmul(weight, build.fsub(target, mean)),
                build.fmul(weight, build.fmul(residual, residual)),
                build.fmul(weight, build.call(fabs, [residual])),
            )
            loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
        return {name: horizontal_sum(build, total) for name, total in zip(names, loop.values, strict=True)}

    def mean(self, sums: dict[str, ir.Value], name: str) -> ir.Value:
        """Weighted mean of the chunk; 0 where all weights are 0."""
        build, zero = self.builder, ir.Constant(_DOUBLE, 0.0)
        empty = build.fcmp_ordered("==", sums["weight"], zero)
        return build.select(empty, zero, build.fdiv(sums[name], sums["weight"]))

    def centred(self, mean: ir.Value, target: ir.Value) -> dict[str, ir.Value]:
        """Second step: squares and products about the means of the chunk."""
        build, zero = self.builder, splat(_VECTOR, 0.0)
        means = self._broadcast(mean), self._broadcast(build.fadd(self.target_mean, target))
        with counted(build, ir.Constant(I64, 0), self.rows, LANES, [zero, zero]) as loop:
            prediction, target_row, weight = self._rows(loop.index)
            deviation = build.fsub(prediction, means[0])
            weighted = build.fmul(weight, deviation)
            product = build.fmul(weighted, build.fsub(target_row, means[1]))
            terms = build.fmul(weighted, deviation), product
            loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
        square, product = (horizontal_sum(build, total) for total in loop.values)
        return {"mean": mean, "target": target, "square": square, "product": product}

    def merge(self, sums: dict[str, ir.Value], centred: dict[str, ir.Value]) -> None:
        """Third step: combine the chunk with what came before it."""
        build = self.builder
        index = {name: ir.Constant(I64, i) for i, name in enumerate(FIELDS)}
        old = {name: load(build, self.state, index[name], _DOUBLE, _DOUBLE) for name in FIELDS}
        new = {name: build.fadd(old[name], sums[name]) for name in ("weight", "squared_error", "absolute_error")}
        empty = build.fcmp_ordered("==", new["weight"], ir.Constant(_DOUBLE, 0.0))
        share = build.select(empty, ir.Constant(_DOUBLE, 0.0), build.fdiv(sums["weight"], new["weight"]))
        between = build.fmul(old["weight"], share)
        shift = {name: build.fsub(centred[name], old[name]) for name in ("mean", "target")}
        for name in ("mean", "target"):
            new[name] = build.fadd(old[name], build.fmul(shift[name], share))
        for name, other in (("square", "mean"), ("product", "target")):
            moved = build.fmul(build.fmul(shift["mean"], shift[other]), between)
            new[name] = build.fadd(build.fadd(old[name], centred[name]), moved)
        for name in FIELDS:
            store(build, new[name], self.state, index[name], _DOUBLE)


def state_pointer(builder: ir.IRBuilder, states: ir.Value, individual: ir.Value) -> ir.Value:
    """State of one individual in an array of states."""
    offset = builder.mul(individual, ir.Constant(I64, len(FIELDS)))
    return element_pointer(builder, states, offset, _DOUBLE)
