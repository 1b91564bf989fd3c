"""Operations that work element by element, and those that sum: products, reductions and normalizations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

from shine.base.errors import GraphImportError
from shine.tensor.compositions import contraction, normalization
from shine.tensor.compositions import networks as compositions
from shine.tensor.compositions.activations import activation
from shine.tensor.form.module import Value
from shine.tensor.frontend.definitions import FUNCTIONS as DEFINED
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand
from shine.tensor.graphdef.constants import broadcast
from shine.tensor.graphdef.constants import same as same_shape
from shine.tensor.graphdef.node import Operation, Rule, axis_of, check_count, check_types, takes
from shine.tensor.graphdef.rules.language import FUNCTIONS

SAME = takes(1, lambda n: n.inputs, -1)
"""The rule of operations that return their inputs."""


def _merge(n: Operation) -> Operand:
    """It reads the predicate, too: see `shine.tensor.graphdef.control.with_choices`."""
    if len(n.inputs) != 3:
        raise GraphImportError(
            "it is no condition of two branches; make the graph with tf.compat.v1.enable_control_flow_v2()"
        )
    predicate, if_true, if_false = n.inputs
    if predicate.shape != () or if_true.shape != if_false.shape:
        raise GraphImportError(
            f"its branches have shapes {list(if_true.shape)} and {list(if_false.shape)}; only equal ones are supported"
        )
    return n.b.select(predicate, if_true, if_false)


def _power(n: Operation) -> Operand:
    """Integers wrap."""
    found = FUNCTIONS["Pow"](n)
    exponent = n[1].known
    if exponent is not None and exponent.dtype.kind in "iu" and (exponent < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    if exponent is None and n[1].dtype.startswith("int"):
        # A formula refuses negative exponents when it is computed, as TensorFlow does.
        values = tuple(each.value for each in n.inputs)
        n.b.builder.composites[found.value.name] = (DEFINED["integer_pow"], values)
    return found


def _cast(n: Operation) -> Operand:
    check_types(n.inputs, n.dtype("SrcT"))
    return n.b.cast_to(n[0], n.dtype("DstT"))


def _select(n: Operation) -> Operand:
    """The condition of Select may choose whole rows."""
    condition, *branches = n.inputs
    if condition.dtype != "bool":
        raise GraphImportError(f"its condition is {condition.dtype}, but must be bool")
    check_types(branches, n.dtype("T"))
    if n.op == "Select":
        _check_same(n.b, branches)
        rank = branches[0].rank
        if condition.rank == 1 and rank > 1:
            condition = n.b.reshape(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    broadcast([each.shape for each in (condition, *branches)])
    return n.b.select(condition, *branches)


def _error_function(n: Operation) -> Operand:
    """Erfc is the complement of Erf, to the rounding of numbers near 1."""
    found = Operand(activation(n.b.builder, "erf", n[0].value))
    return n.b.sub(n.b.like(found, 1), found) if n.op == "Erfc" else found


def _total(n: Operation) -> Operand:
    expected = n.attribute("N", "i")
    if expected < 1:
        raise GraphImportError(f"attr 'N' must be at least 1, is {expected}")
    check_count(n.inputs, expected)
    check_types(n.inputs, n.dtype("T"))
    _check_same(n.b, n.inputs)
    return reduce(n.b.add, n.inputs)


def _check_same(b: GraphBuilder, inputs: Sequence[Operand]) -> None:
    """Refuse inputs of different shapes, unless lengths are open: then the program's call decides."""
    check = broadcast if b.has_open_shapes else same_shape
    check([each.shape for each in inputs])


def _bias(n: Operation) -> Operand:
    """A number added to each channel."""
    operand, added = n.inputs
    channels_first = n.op == "BiasAdd" and (n.optional("data_format", "s") or b"NHWC") == b"NCHW"
    axis = 1 if channels_first else operand.rank - 1
    if operand.rank < 2 or added.shape != (operand.shape[axis],):
        raise GraphImportError(f"a bias of shape {list(added.shape)} does not fit {list(operand.shape)}")
    return n.b.add(operand, n.b.reshape(added, shape=(*added.shape, *(1,) * (operand.rank - 1 - axis))))


ELEMENTWISE: dict[str, Rule] = {
    **FUNCTIONS,
    "NoOp": takes(0, lambda n: ()),
    "Pow": _power,
    "AddN": _total,
    "Cast": takes(1, _cast),
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), takes(2, _bias)),
    **dict.fromkeys(("Erf", "Erfc"), takes(1, _error_function)),
    "IsNan": takes(1, lambda n: n.b.ne(n[0], n[0])),
    "IsInf": takes(1, lambda n: n.b.eq(n.b.abs(n[0]), n.b.like(n[0], math.inf))),
    "IsFinite": takes(1, lambda n: n.b.lt(n.b.abs(n[0]), n.b.like(n[0], math.inf))),
    **dict.fromkeys(("Select", "SelectV2"), takes(3, _select)),
    **dict.fromkeys(("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"), SAME),
    **dict.fromkeys(("CheckNumerics", "EnsureShape", "PlaceholderWithDefault"), SAME),
    "Switch": takes(2, lambda n: (n[0], n[0])),
    "Merge": _merge,
}


def _reduced(n: Operation, operation: str, operand: Operand) -> Operand:
    """A reduction of an operand over the axes that the node names."""
    axes = sorted({axis_of(number, operand.rank) for number in n.numbers(1, "axes")})
    return n.b.emit(operation, [operand], axes=tuple(axes), keep=n.flag("keep_dims"))[0]


def _reduction(operation: str) -> Rule:
    return takes(2, lambda n: _reduced(n, operation, n[0]))


def _mean(n: Operation) -> Operand:
    """That of integers is truncated."""
    summed = _reduced(n, "reduce_sum", n[0])
    count = prod(n[0].shape[axis] for axis in {number % n[0].rank for number in n.numbers(1, "axes")})
    return n.b.div(summed, n.b.like(summed, count))


def _every(n: Operation, operand: Operand) -> Operand:
    """Whether all are true: a product of truth values."""
    return n.b.cast_to(_reduced(n, "reduce_prod", n.b.cast_to(operand, "uint8")), "bool")


def _arg_reduction(operation: str) -> Rule:
    def rule(n: Operation) -> Operand:
        found = n.b.emit(operation, [n[0]], axis=n.axis(1, n[0].rank))[0]
        return n.b.cast_to(found, n.dtype_or("int64", "output_type"))

    return takes(2, rule)


def _top_k(n: Operation) -> list[Operand]:
    """The largest elements of the last axis, and their places."""
    k = n.number(1, "number of elements") if n.op == "TopKV2" else n.attribute("k", "i")
    if not n[0].rank or not 0 <= k <= n[0].shape[-1]:
        raise GraphImportError(f"there are no {k} largest elements along the last axis of {list(n[0].shape)}")
    values, places = n.b.emit("top_k", [n[0]], k=k)
    return [values, n.b.cast_to(places, n.dtype_or("int32", "index_type"))]


def _matmul(n: Operation) -> Operand:
    """A product of two matrices, each transposed or not, or of stacks of them."""
    left, right = n.inputs
    is_one = n.op == "MatMul"
    if left.rank < 2 or right.rank < 2 or (is_one and (left.rank, right.rank) != (2, 2)):
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    if n.op == "BatchMatMul" and left.shape[:-2] != right.shape[:-2]:
        raise GraphImportError(f"stacks {list(left.shape)} and {list(right.shape)} differ; BatchMatMulV2 broadcasts")
    turns = ("transpose_a", "transpose_b") if is_one else ("adj_x", "adj_y")
    return n.b.dot(*(_turned(n, operand, key) for operand, key in zip((left, right), turns, strict=True)))


def _turned(n: Operation, operand: Operand, key: str) -> Operand:
    if not n.flag(key):
        return operand
    axes = tuple(range(operand.rank - 2))
    return n.b.transpose(operand, permutation=(*axes, operand.rank - 1, operand.rank - 2))


def _einsum(n: Operation) -> Operand:
    return Operand(contraction.einsum(n.b.builder, n.word("equation"), *(each.value for each in n.inputs)))


def _soft(composition: Callable[..., Value]) -> Rule:
    """A function of the numbers of the last axis."""
    return takes(1, lambda n: Operand(composition(n.b.builder, n[0].value)))


def _batch_norm(n: Operation) -> list[Operand]:
    """In a network that is used, and not trained: mean and variance are given."""
    if n.flag("is_training", default=True):
        raise GraphImportError("it trains (attr 'is_training'); export the network for inference")
    operand, scale, offset, mean, variance = n.inputs
    epsilon = n.optional("epsilon", "f")
    axis = 1 if n.one_of("data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW" else operand.rank - 1
    if any(not each.dtype.startswith("float") for each in n.inputs):
        raise GraphImportError(f"its inputs must be float32 or float64, but the first is {operand.dtype}")
    if operand.rank != 4 or any(each.shape != (operand.shape[axis],) for each in n.inputs[1:]):
        raise GraphImportError(f"its parameters do not fit an input of shape {list(operand.shape)}")
    # Added to variances by default.
    channels = normalization.Channels(scale.value, offset.value, 1e-4 if epsilon is None else epsilon, axis)
    made = normalization.batch_norm(n.b.builder, operand.value, mean.value, variance.value, channels)
    outputs = 6 if n.op == "FusedBatchNormV3" else 5
    return [Operand(made), *[mean, variance, mean, variance, mean][: outputs - 1]]


REDUCTIONS: dict[str, Rule] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), takes(2, _matmul)),
    "Einsum": takes(1, _einsum, -1),
    "Softmax": _soft(compositions.softmax),
    "LogSoftmax": _soft(compositions.log_softmax),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), takes(5, _batch_norm)),
    "Sum": _reduction("reduce_sum"),
    "Prod": _reduction("reduce_prod"),
    "Max": _reduction("reduce_max"),
    "Min": _reduction("reduce_min"),
    "Mean": takes(2, _mean),
    "All": takes(2, lambda n: _every(n, n[0])),
    "Any": takes(2, lambda n: n.b.not_(_every(n, n.b.not_(n[0])))),
    "ArgMax": _arg_reduction("argmax"),
    "ArgMin": _arg_reduction("argmin"),
    "TopK": takes(1, _top_k),
    "TopKV2": takes(2, _top_k),
}
