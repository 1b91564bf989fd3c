"""Elementwise operations. torch mixes types of elements; operands are converted by the result's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.activations import activation
from shine.tensor.form.types import FLOATS
from shine.tensor.frontend.graph_builder import Operand
from shine.tensor.torch.call import Call

Rule = Callable[[Call], "Operand | Sequence[Operand]"]


_OF_TRUTH = {"add": "or", "mul": "and", "max": "or", "min": "and"}
"""Arithmetic of truth; torch refuses the rest."""


def _unary(operation: str) -> Rule:
    """An operation whose result has the elements that it computes with."""
    return lambda call: call.b.emit(operation, [call.b.cast_to(call.first, call.dtype)])


def _rounding(operation: str) -> Rule:
    """Whole numbers are rounded already."""

    def rule(call: Call) -> Operand:
        x, decimals = call.first, call.get("decimals", 0)
        if x.value.type.dtype not in FLOATS:
            if decimals < 0:
                raise GraphImportError(f"it rounds integers to {decimals} decimals; only floats are supported")
            return x
        if not decimals:
            return call.b.emit(operation, [x])[0]
        # As torch does it: the power is a whole number, and so exact.
        power = call.b.like(x, 10.0 ** abs(decimals))
        there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
        rounded = call.b.emit(operation, call.b.emit(there, [x, power]))
        return call.b.emit(back, [*rounded, power])[0]

    return rule


def _binary(operation: str) -> Rule:
    """`alpha` multiplies the second operand. The sum of truth is "or", its product "and"."""

    def rule(call: Call) -> Operand:
        if call.dtype == "bool":
            return call.b.emit(_OF_TRUTH[operation], [_truth(call, "self"), _truth(call, "other")])[0]
        x, y = call.operand("self", call.dtype), call.operand("other", call.dtype)
        alpha = call.get("alpha", 1)
        if alpha != 1:
            y = call.b.mul(y, call.b.constant(alpha, call.dtype))
        return call.b.emit(operation, [x, y])[0]

    return rule


def _reversed_sub(call: Call) -> Operand:
    subtracted, alpha = call.operand("self", call.dtype), call.get("alpha", 1)
    if alpha != 1:
        subtracted = call.b.mul(subtracted, call.b.constant(alpha, call.dtype))
    return call.b.sub(call.operand("other", call.dtype), subtracted)


def _div(call: Call) -> Operand:
    b, mode = call.b, call.get("rounding_mode")
    x, y = call.operand("self", call.dtype), call.operand("other", call.dtype)
    found = b.floordiv(x, y) if mode == "floor" else b.div(x, y)
    if mode == "trunc" and x.value.type.dtype in FLOATS:
        found = _truncated(call, found)
    return found


def _truncated(call: Call, x: Operand) -> Operand:
    found = call.b.select(call.b.lt(x, call.b.like(x, 0)), call.b.ceil(x), call.b.floor(x))
    return found


def _fmod(call: Call) -> Operand:
    """The remainder with the sign of the dividend."""
    x, y = call.operand("self", call.dtype), call.operand("other", call.dtype)
    name = "truncate_mod" if x.value.type.dtype in FLOATS else "integer_truncate_mod"
    return call.b.apply(name, [x, y], call.shape, call.dtype)


_POWERS = (0.5, 1, 2, 3, -0.5, -1, -2)
"""Powers of floats that torch computes as roots, products and quotients."""


def _pow(call: Call) -> Operand:
    b, x, exponent = call.b, call.operand("self", call.dtype), call.get("exponent")
    found: Operand
    if x.value.type.dtype in FLOATS and exponent in _POWERS:
        factor = b.sqrt(x) if abs(exponent) == 0.5 else x
        found = reduce(b.mul, [factor] * max(int(abs(exponent)), 1))
        return found if exponent > 0 else call.b.div(b.like(x, 1), found)
    found = b.pow(x, call.operand("exponent", call.dtype))
    return found


def _without_nan(operation: str) -> Rule:
    """The smaller or larger of two numbers, or the one that is not NaN."""

    def rule(call: Call) -> Operand:
        b, x, y = call.b, call.operand("self", call.dtype), call.operand("other", call.dtype)
        found = b.select(b.ne(x, x), y, b.select(b.ne(y, y), x, b.emit(operation, [x, y])[0]))
        return found

    return rule


def _compared(operation: str) -> Rule:
    """Numbers of Python have the elements of the tensor, unless they are fractions beside integers."""

    def rule(call: Call) -> Operand:
        x, y = call.arguments["self"], call.arguments["other"]
        dtype = str(_common(x, y))
        return call.b.emit(operation, [call.operand("self", dtype), call.operand("other", dtype)])[0]

    return rule


def _common(x: object, y: object) -> np.dtype:
    if isinstance(x, Operand) and isinstance(y, Operand):
        floats = [each for each in (x, y) if each.value.type.dtype in FLOATS]
        # torch converts integers to the type of floats, however many bits they have.
        return np.dtype(floats[0].dtype) if len(floats) == 1 else np.promote_types(x.dtype, y.dtype)
    tensor, number = (x, y) if isinstance(x, Operand) else (y, x)
    if not isinstance(tensor, Operand):
        raise GraphImportError("it compares two numbers")
    if isinstance(number, float) and tensor.value.type.dtype not in FLOATS:
        return np.dtype(np.float32)
    return np.dtype(np.int64 if tensor.dtype == "bool" and not isinstance(number, bool) else tensor.dtype)


def _truth(call: Call, name: str) -> Operand:
    return call.operand(name, "bool")


def _logic(operation: str) -> Rule:
    return lambda call: call.b.emit(operation, [_truth(call, "self"), _truth(call, "other")])[0]


def _bitwise_not(call: Call) -> Operand:
    """Bitwise not: of integers -1 - x."""
    return _not(call) if call.dtype == "bool" else call.b.sub(call.b.like(call.first, -1), call.first)


def _not(call: Call) -> Operand:
    return call.b.not_(_truth(call, "self"))


def _bitwise(rule: Rule) -> Rule:
    """Bits of truth only."""

    def checked(call: Call) -> Operand | Sequence[Operand]:
        if call.dtype != "bool":
            raise GraphImportError(f"bits of {call.dtype} are not supported; only those of bool are")
        return rule(call)

    return checked


def _where(call: Call) -> Operand:
    return call.b.select(
        call.operand("condition", "bool"), call.operand("self", call.dtype), call.operand("other", call.dtype)
    )


def _masked_fill(call: Call) -> Operand:
    return call.b.select(
        call.operand("mask", "bool"), call.operand("value", call.dtype), call.operand("self", call.dtype)
    )


def _clamp(call: Call) -> Operand:
    x = call.operand("self", call.dtype)
    for name, operation in (("min", "max"), ("max", "min"), ("min_val", "max"), ("max_val", "min")):
        if call.get(name) is not None:
            x = call.b.emit(operation, [call.operand(name, call.dtype), x])[0]
    return x


def _activation(name: str, **others: float) -> Rule:
    """A function of floats; its other arguments have torch's names and defaults."""

    def rule(call: Call) -> Operand:
        x = call.b.cast_to(call.first, call.dtype)
        numbers = [float(call.get(key, default)) for key, default in others.items()]
        return Operand(activation(call.builder, name, x.value, *numbers))

    return rule


def _composite(name: str) -> Rule:
    """A function that graphs of all frontends have, of one tensor or two."""

    def rule(call: Call) -> Operand:
        operands = [call.operand(each, call.dtype) for each in ("self", "other") if each in call.arguments]
        return call.b.apply(name, operands, call.shape, call.dtype)

    return rule


def _hypot(call: Call) -> Operand:
    x, y = (call.operand(name, call.dtype).value for name in ("self", "other"))
    return Operand(activation(call.builder, "hypot", x, y))


def _gelu(call: Call) -> Operand:
    name = "gelu_tanh" if call.get("approximate", "none") == "tanh" else "gelu"
    return Operand(activation(call.builder, name, call.first.value))


def _elu(call: Call) -> Operand:
    b, x = call.b, call.first
    alpha, scale, inner = (b.like(x, float(call.get(name, 1.0))) for name in ("alpha", "scale", "input_scale"))
    below = Operand(activation(call.builder, "elu", b.mul(x, inner).value, alpha.value))
    return b.mul(scale, b.select(b.gt(x, b.like(x, 0)), x, below))


def _softplus(call: Call) -> Operand:
    """Beyond the threshold, torch returns the argument itself."""
    b, x = call.b, call.first
    beta, threshold = float(call.get("beta", 1.0)), float(call.get("threshold", 20.0))
    scaled = b.mul(x, b.like(x, beta))
    soft = b.div(Operand(activation(call.builder, "softplus", scaled.value)), b.like(x, beta))
    return b.select(b.gt(scaled, b.like(x, threshold)), x, soft)


def _prelu(call: Call) -> Operand:
    b, x, weight = call.b, call.first, call.operand("weight")
    if x.rank > 1 and weight.rank == 1:
        weight = b.reshape(weight, shape=(*weight.shape, *[1] * (x.rank - 2)))
    return b.select(b.gt(x, b.like(x, 0)), x, b.mul(x, weight))


def _sign(call: Call) -> Operand:
    """torch's sign of NaN is 0."""
    b, x = call.b, call.first
    above, below = (b.cast_to(b.emit(name, [x, b.like(x, 0)])[0], call.dtype) for name in ("gt", "lt"))
    return b.sub(above, below)


def _is_inf(call: Call) -> Operand:
    b, x = call.b, call.first
    return b.eq(b.abs(x), b.like(x, np.inf))


def _relu(call: Call) -> Operand:
    """NaN stays NaN, and the derivative at 0 is 0."""
    zero = call.b.like(call.first, 0)
    return call.b.select(call.b.le(call.first, zero), zero, call.first)


def _converted(call: Call) -> Operand:
    return call.b.cast_to(call.first, call.dtype)


ELEMENTWISE: dict[str, Rule] = {
    **{
        name: _unary(operation)
        for name, operation in {
            "neg": "neg", "abs": "abs", "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos",
            "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh",
            "tanh": "tanh",
        }.items()
    },
    **{name: _rounding(name) for name in ("floor", "ceil", "round")},
    **{
        name: _activation(own)
        for name, own in {
            "sigmoid": "sigmoid", "reciprocal": "inv", "rsqrt": "rsqrt", "erf": "erf", "log1p": "log1p",
            "expm1": "expm1", "log2": "log2", "log10": "log10", "silu": "silu", "mish": "mish",
            "hardswish": "hard_swish", "selu": "selu", "relu6": "relu6",
            "square": "square",
        }.items()
    },
    **{name: _composite(name) for name in ("asinh", "acosh", "atanh", "atan2")},
    "hypot": _hypot,
    "log_sigmoid_forward": lambda call: [Operand(activation(call.builder, "log_sigmoid", call.first.value))],
    "exp2": lambda call: call.b.pow(call.b.constant(2, call.dtype), call.b.cast_to(call.first, call.dtype)),
    "hardsigmoid": lambda call: Operand(activation(call.builder, "hard_sigmoid", call.first.value, 1 / 6, 0.5)),
    "add": _binary("add"),
    "sub": _binary("sub"),
    "rsub": _reversed_sub,
    "mul": _binary("mul"),
    "div": _div,
    "floor_divide": lambda call: call.b.floordiv(call.operand("self", call.dtype), call.operand("other", call.dtype)),
    "remainder": _binary("mod"),
    "fmod": _fmod,
    "pow": _pow,
    "maximum": _binary("max"),
    "minimum": _binary("min"),
    "fmax": _without_nan("max"),
    "fmin": _without_nan("min"),
    "clamp": _clamp,
    "hardtanh": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "trunc": lambda c: c.first if c.first.value.type.dtype not in FLOATS else _truncated(c, c.first),
    "sign": _sign,
    "relu": _relu,
    "gelu": _gelu,
    "elu": _elu,
    "celu": _activation("celu", alpha=1.0),
    "leaky_relu": _activation("leaky_relu", negative_slope=0.01),
    "softplus": _softplus,
    "prelu": _prelu,
    "_prelu_kernel": _prelu,
    **{name: _compared(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "logical_and": _logic("and"),
    "logical_or": _logic("or"),
    "logical_xor": _logic("ne"),
    "logical_not": _not,
    "bitwise_and": _bitwise(_logic("and")),
    "bitwise_or": _bitwise(_logic("or")),
    "bitwise_xor": _bitwise(_logic("ne")),
    "bitwise_not": _bitwise_not,
    "where": _where,
    "masked_fill": _masked_fill,
    "isnan": lambda c: c.b.ne(c.first, c.first),
    "isinf": _is_inf,
    "_to_copy": _converted,
    "convert_element_type": _converted,
}  # fmt: skip
