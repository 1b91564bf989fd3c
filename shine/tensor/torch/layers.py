"""Products, convolutions, reductions, normalizations and pooling. torch has channels before space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions import networks as compositions
from shine.tensor.compositions import normalization
from shine.tensor.compositions.pooling import Windows, avg_pool, max_pool
from shine.tensor.frontend.channels import Convolution, convolution, transposed_convolution
from shine.tensor.frontend.graph_builder import Operand, cut
from shine.tensor.torch.call import Call, pair

Rule = Callable[[Call], "Operand | Sequence[Operand]"]


def _product(second: str) -> Rule:
    return lambda call: call.b.dot(call.first, call.operand(second))


def _added(first: str, second: str) -> Rule:
    """beta * self + alpha * a product."""

    def rule(call: Call) -> Operand:
        b, total = call.b, call.first
        product = b.dot(call.operand(first), call.operand(second))
        for name in ("alpha", "beta"):
            factor = call.get(name, 1)
            if not factor and name == "beta":
                # torch leaves it out, also where it is NaN.
                return b.broadcast(product, shape=call.shape)
            if factor != 1 and name == "alpha":
                product = b.mul(product, b.constant(factor, call.dtype))
            elif factor != 1:
                total = b.mul(total, b.constant(factor, call.dtype))
        return b.add(product, total)

    return rule


def _linear(call: Call) -> Operand:
    weight = call.operand("weight").value
    return Operand(compositions.linear(call.builder, call.first.value, weight, call.value("bias"), outputs_first=True))


def _attention(call: Call) -> Operand:
    query, key, value = (call.operand(name).value for name in ("query", "key", "value"))
    if call.get("dropout_p", 0):
        raise GraphImportError("it drops values out; export the model for inference")
    mask, causal, scale = call.value("attn_mask"), bool(call.get("is_causal", False)), call.get("scale")
    return Operand(compositions.attention(call.builder, query, key, value, mask, causal, scale))


def _convolution(call: Call) -> Operand:
    x = call.first
    space = x.rank - 2
    strides, low, dilation = (
        pair(call.get(name), space, default) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    options = Convolution(strides, low, low, dilation, int(call.get("groups", 1)))
    if call.get("transposed", False):
        extra = pair(call.get("output_padding"), space, 0)
        found = transposed_convolution(call.b, x, call.operand("weight"), options, extra)
    else:
        found = convolution(call.b, x, call.operand("weight"), options)
    if call.get("bias") is None:
        return found
    bias = call.b.reshape(call.operand("bias"), shape=(-1 if not space else found.shape[1], *[1] * space))
    return call.b.add(found, bias)


def _reduction(operation: str) -> Rule:
    def rule(call: Call) -> Operand:
        x = call.b.cast_to(call.first, call.dtype)
        return call.b.emit(operation, [x], axes=call.axes(), keep=bool(call.get("keepdim", False)))[0]

    return rule


def _mean(call: Call) -> Operand:
    x = call.b.cast_to(call.first, call.dtype)
    return Operand(normalization.mean(call.builder, x.value, call.axes(), bool(call.get("keepdim", False))))


def _correction(call: Call) -> float:
    if "unbiased" in call.arguments:
        return float(call.get("unbiased", True))
    return float(call.get("correction", 1))


def _var(call: Call) -> Operand:
    keep = bool(call.get("keepdim", False))
    return Operand(normalization.variance(call.builder, call.first.value, call.axes(), keep, _correction(call)))


def _with_place(operation: str, place: str) -> Rule:
    """An extremum along an axis and where it is; over all elements, the extremum only."""

    def rule(call: Call) -> Operand | list[Operand]:
        b, x = call.b, call.first
        if "dim" not in call.arguments:
            return b.emit(operation, [x], axes=tuple(range(x.rank)))[0]
        keep, axis = bool(call.get("keepdim", False)), call.axis()
        if not x.rank:
            return [x, b.constant(0, "int64")]
        where = b.emit(place, [x], axis=axis)[0]
        return [b.emit(operation, [x], axes=(axis,), keep=keep)[0], b.reshape(where, shape=call.shapes[1])]

    return rule


def _arg(operation: str) -> Rule:
    def rule(call: Call) -> Operand:
        b, x = call.b, call.first
        if call.get("dim") is None:
            x = b.reshape(x, shape=(math.prod(x.shape),))
            axis = 0
        else:
            axis = call.axis()
        return b.reshape(b.emit(operation, [x], axis=axis)[0], shape=call.shape)

    return rule


def _any(operation: str) -> Rule:
    def rule(call: Call) -> Operand:
        b = call.b
        truth = b.cast_to(b.cast_to(call.first, "bool"), "uint8")
        if not math.prod(truth.shape):
            # All of none is true, any of none is false.
            return b.constant(np.full(call.shape, operation == "reduce_min", call.dtype))
        found = b.emit(operation, [truth], axes=call.axes(), keep=bool(call.get("keepdim", False)))[0]
        return b.cast_to(found, call.dtype)

    return rule


def _soft(composition: Callable[..., object]) -> Rule:
    def rule(call: Call) -> Operand:
        x = call.b.cast_to(call.first, call.dtype)
        found = composition(call.builder, x.value, call.axis())
        return Operand(found)  # type: ignore[arg-type]

    return rule


def _logsumexp(call: Call) -> Operand:
    keep = bool(call.get("keepdim", False))
    return Operand(compositions.logsumexp(call.builder, call.first.value, call.axes(), keep))


def _vector_norm(call: Call) -> Operand:
    """The root of the sum of powers; for infinity the largest element, for 0 the number of those that are not 0."""
    b, order, axes, keep = call.b, float(call.get("ord", 2)), call.axes(), bool(call.get("keepdim", False))
    x = b.abs(b.cast_to(call.first, call.dtype))
    if math.isinf(order):
        return b.emit("reduce_max" if order > 0 else "reduce_min", [x], axes=axes, keep=keep)[0]
    if order == 0:
        powers = b.cast_to(b.ne(x, b.like(x, 0)), x.dtype)
    elif order == 2:
        powers = b.mul(x, x)
    else:
        powers = x if order == 1 else b.pow(x, b.like(x, order))
    found = b.reduce_sum(powers, axes=axes, keep=keep)
    if order in (0, 1):
        return found
    # The derivative of a root at 0 is infinite; the norm's is 0.
    zero = b.like(found, 0)
    is_zero = b.eq(found, zero)
    inside = b.select(is_zero, b.like(found, 1), found)
    root = b.sqrt(inside) if order == 2 else b.pow(inside, b.like(found, 1 / order))
    return b.select(is_zero, b.pow(zero, b.like(found, 1 / order)), root)


def _sorted(call: Call) -> list[Operand]:
    down = bool(call.get("descending", False))
    if not call.first.rank:
        return [call.first, call.b.constant(0, "int64")]
    return list(call.b.emit("sort", [call.first], axis=call.axis(default=-1), descending=down))


def _top_k(call: Call) -> list[Operand]:
    b, x = call.b, call.first
    axis = call.axis(default=-1)
    if not x.rank:
        return [x, b.constant(0, "int64")]
    found = b.emit("sort", [x], axis=axis, descending=bool(call.get("largest", True)))
    return [cut(b, part, axis, 0, call.shape[axis]) for part in found]


def _layer_norm(call: Call) -> list[Operand]:
    x, count = call.first.value, len(call.get("normalized_shape", ()))
    axes = tuple(range(x.type.rank - count, x.type.rank))
    epsilon = float(call.get("eps", 1e-5))
    return [Operand(normalization.layer_norm(call.builder, x, axes, call.value("weight"), call.value("bias"), epsilon))]


def _batch_norm(call: Call) -> list[Operand]:
    average, variance = call.operand("running_mean").value, call.operand("running_var").value
    return [Operand(normalization.batch_norm(call.builder, call.first.value, average, variance, _channels(call)))]


def _channels(call: Call) -> normalization.Channels:
    return normalization.Channels(call.value("weight"), call.value("bias"), float(call.get("eps", 1e-5)), axis=1)


def _own_norm(call: Call) -> list[Operand]:
    """Normalization by the averages of the input itself, which instance normalization becomes."""
    x, epsilon = call.first.value, float(call.get("eps", 1e-5))
    axes = tuple(i for i in range(x.type.rank) if i != 1)
    found = Operand(normalization.layer_norm(call.builder, x, axes, None, None, epsilon))
    for name, operation in (("weight", "mul"), ("bias", "add")):
        if call.get(name) is not None:
            along = call.b.reshape(call.operand(name), shape=(x.type.shape[1], *[1] * (x.type.rank - 2)))
            found = call.b.emit(operation, [found, along])[0]
    return [found]


def _group_norm(call: Call) -> list[Operand]:
    groups = int(call.get("group", call.get("num_groups", 1)))
    return [Operand(normalization.group_norm(call.builder, call.first.value, groups, _channels(call)))]


def _windows(call: Call, space: int) -> Windows:
    rank = call.first.rank
    sizes = pair(call.get("kernel_size"), space, 1)
    strides = pair(call.get("stride"), space, 0)
    low, dilation = pair(call.get("padding"), space, 0), pair(call.get("dilation"), space, 1)
    axes = tuple(range(rank - space, rank))
    strides = sizes if strides == (0,) * space else strides
    return Windows(axes, sizes, strides, low, low, dilation, bool(call.get("ceil_mode", False)))


def _max_pool(space: int) -> Rule:
    return lambda call: [Operand(max_pool(call.builder, call.first.value, _windows(call, space)))]


def _avg_pool(space: int) -> Rule:
    def rule(call: Call) -> Operand:
        if call.get("divisor_override") is not None:
            raise GraphImportError("its divisor_override is not supported")
        counted = bool(call.get("count_include_pad", True))
        return Operand(avg_pool(call.builder, call.first.value, _windows(call, space), counted))

    return rule


def _adaptive(call: Call) -> Operand:
    """Windows of almost equal size: products with the shares of each, one axis after the other."""
    b, x = call.b, call.first
    for axis, (old, new) in enumerate(zip(x.shape, call.shape, strict=True)):
        if old == new:
            continue
        shares = np.zeros((old, new))
        for i in range(new):
            first, last = i * old // new, -(-(i + 1) * old // new)
            shares[first:last, i] = 1 / (last - first)
        order = [*(i for i in range(x.rank) if i != axis), axis]
        turned = b.transpose(x, permutation=tuple(order))
        turned = b.dot(turned, b.constant(shares, x.dtype))
        x = b.transpose(turned, permutation=tuple(np.argsort(order).tolist()))
    return x


LAYERS: dict[str, Rule] = {
    "mm": _product("mat2"),
    "bmm": _product("mat2"),
    "matmul": _product("other"),
    "mv": _product("vec"),
    "dot": _product("tensor"),
    "addmm": _added("mat1", "mat2"),
    "baddbmm": _added("batch1", "batch2"),
    "addmv": _added("mat", "vec"),
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    "convolution": _convolution,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "sum": _reduction("reduce_sum"),
    "prod": _reduction("reduce_prod"),
    "amax": _reduction("reduce_max"),
    "amin": _reduction("reduce_min"),
    "mean": _mean,
    "var": _var,
    "var_mean": lambda c: [_var(c), _mean(c)],
    "max": _with_place("reduce_max", "argmax"),
    "min": _with_place("reduce_min", "argmin"),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "any": _any("reduce_max"),
    "all": _any("reduce_min"),
    **dict.fromkeys(("_softmax", "softmax"), _soft(compositions.softmax)),
    **dict.fromkeys(("_log_softmax", "log_softmax"), _soft(compositions.log_softmax)),
    "logsumexp": _logsumexp,
    "linalg_vector_norm": _vector_norm,
    "sort": _sorted,
    "topk": _top_k,
    "native_layer_norm": _layer_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_native_batch_norm_legit": _own_norm,
    "native_group_norm": _group_norm,
    "max_pool1d": _max_pool(1),
    "max_pool2d_with_indices": _max_pool(2),
    "avg_pool1d": _avg_pool(1),
    "avg_pool2d": _avg_pool(2),
    **dict.fromkeys(("_adaptive_avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d"), _adaptive),
}
