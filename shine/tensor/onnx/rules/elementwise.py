"""Elementwise operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.activations import activation
from shine.tensor.form.types import FLOATS, INTEGERS
from shine.tensor.frontend.graph_builder import Operand
from shine.tensor.onnx.files import dtype_name
from shine.tensor.onnx.node import Node

Rule = Callable[[Node], "Operand | Sequence[Operand]"]


def _same(operation: str) -> Rule:
    """An operation of the form."""
    return lambda node: node.b.emit(operation, node.values)


def _folded(operation: str) -> Rule:
    """An operation of two operands for any number of them, from the left."""
    return lambda node: reduce(lambda x, y: node.b.emit(operation, [x, y])[0], node.values)


def _mean(node: Node) -> Operand:
    total = reduce(node.b.add, node.values)
    return node.b.div(total, node.b.like(total, len(node.values)))


def _activation(name: str, **attributes: float) -> Rule:
    """A function of floats; its other arguments are attributes with defaults."""

    def rule(node: Node) -> Operand:
        others = [node.get(key, default) for key, default in attributes.items()]
        return Operand(activation(node.builder, name, node.value(0), *others))

    return rule


def _gelu(node: Node) -> Operand:
    kind = node.get("approximate", "none")
    names = {"none": "gelu", "tanh": "gelu_tanh"}
    if kind not in names:
        raise GraphImportError(f"its attribute approximate = {kind!r} is neither none nor tanh")
    return Operand(activation(node.builder, names[kind], node.value(0)))


def _selu(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    alpha, gamma = node.get("alpha", 1.6732632423543772), node.get("gamma", 1.0507009873554805)
    return b.mul(Operand(activation(node.builder, "elu", x.value, alpha)), b.like(x, gamma))


def _prelu(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    return b.select(b.lt(x, b.like(x, 0)), b.mul(x, node.input(1)), x)


def _thresholded_relu(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    return b.select(b.gt(x, b.like(x, node.get("alpha", 1.0))), x, b.like(x, 0))


def _clip(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    for place, name, operation in ((1, "min", "max"), (2, "max", "min")):
        limit = node.optional(place)
        if limit is None and name in node.attributes:
            limit = b.like(x, node.get(name, 0.0))
        if limit is not None:
            x = b.emit(operation, [limit, x])[0]
    return x


def _cast(node: Node) -> Operand:
    if "to" not in node.attributes:
        raise GraphImportError("its attribute to is missing")
    return node.b.cast_to(node.input(0), dtype_name(node.get("to", 1)))


def _mod(node: Node) -> Operand:
    """With the divisor's sign, or with the dividend's as in C."""
    b, (x, y) = node.b, (node.input(0), node.input(1))
    if not node.get("fmod", 0):
        return b.mod(x, y)
    return b.apply("truncate_mod" if x.value.type.dtype in FLOATS else "integer_truncate_mod", [x, y], (), x.dtype)


def _pow(node: Node) -> Operand:
    """The exponent may have other elements."""
    x, y = node.input(0), node.input(1)
    if x.value.type.dtype in INTEGERS and y.value.type.dtype in FLOATS:
        return node.b.cast_to(node.b.pow(node.b.cast_to(x, y.dtype), y), x.dtype)
    return node.b.pow(x, node.b.cast_to(y, x.dtype))


def _is_inf(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    above, below = b.eq(x, b.like(x, np.inf)), b.eq(x, b.like(x, -np.inf))
    signs = bool(node.get("detect_positive", 1)), bool(node.get("detect_negative", 1))
    chosen = [mask for mask, wanted in zip((above, below), signs, strict=True) if wanted]
    if not chosen:
        return b.and_(above, below)
    return reduce(b.or_, chosen)


def _language(name: str) -> Rule:
    """A composite of the language."""
    return lambda node: Operand(activation(node.builder, name, node.value(0)))


def _composite(name: str) -> Rule:
    """A function that graphs of all frontends have."""
    return lambda node: node.b.apply(name, node.values, node.input(0).shape, node.input(0).dtype)


def _dropout(node: Node) -> Sequence[Operand]:
    """In inference, everything is kept, and the mask is true."""
    ratio, training = node.optional(1), node.optional(2)
    keeps_all = ratio is not None and ratio.known is not None and not ratio.known.any()
    if training is not None and not keeps_all and (training.known is None or training.known.any()):
        raise GraphImportError("it is in training mode; export the model for inference")
    return [node.input(0), node.b.constant(np.ones(node.input(0).shape, bool))][: max(node.outputs, 1)]


def _shrink(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    limit, bias = (b.like(x, node.get(name, default)) for name, default in (("lambd", 0.5), ("bias", 0.0)))
    zero = b.like(x, 0)
    inner = b.select(b.gt(x, limit), b.sub(x, bias), zero)
    return b.select(b.lt(x, b.neg(limit)), b.add(x, bias), inner)


ELEMENTWISE: dict[str, Rule] = {
    **{
        operator: _same(operation)
        for operator, operation in {
            "Add": "add", "Sub": "sub", "Mul": "mul", "Neg": "neg", "Abs": "abs", "Sqrt": "sqrt", "Exp": "exp",
            "Log": "log", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
            "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Floor": "floor", "Ceil": "ceil", "Round": "round",
            "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge", "And": "and",
            "Or": "or", "Not": "not", "Where": "select",
        }.items()
    },
    **{operator: _language(name) for operator, name in {"Sigmoid": "sigmoid", "Reciprocal": "inv"}.items()},
    **{name.capitalize(): _composite(name) for name in ("asinh", "acosh", "atanh")},
    "Div": lambda n: n.b.div(*n.values),
    "Pow": _pow,
    "Mod": _mod,
    "Sign": lambda n: n.b.sign(n.input(0)),
    "Sum": _folded("add"),
    "Mean": _mean,
    "Max": _folded("max"),
    "Min": _folded("min"),
    "Xor": lambda n: n.b.ne(*n.values),
    "IsNaN": lambda n: n.b.ne(n.input(0), n.input(0)),
    "IsInf": _is_inf,
    "Relu": lambda node: node.b.max(node.input(0), node.b.like(node.input(0), 0)),
    "LeakyRelu": _activation("leaky_relu", alpha=0.01),
    "Elu": _activation("elu", alpha=1.0),
    "Celu": _activation("celu", alpha=1.0),
    "Selu": _selu,
    "Softplus": _activation("softplus"),
    "Softsign": _activation("softsign"),
    "Mish": _activation("mish"),
    "HardSigmoid": _activation("hard_sigmoid", alpha=0.2, beta=0.5),
    "HardSwish": _activation("hard_swish"),
    "Erf": _activation("erf"),
    "Gelu": _gelu,
    "PRelu": _prelu,
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "Clip": _clip,
    "Cast": _cast,
    "CastLike": lambda n: n.b.cast_to(n.input(0), n.input(1).dtype),
    "Identity": lambda n: [n.input(0)],
    "Dropout": _dropout,
}  # fmt: skip
