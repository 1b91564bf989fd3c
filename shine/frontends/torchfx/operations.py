"""What each of torch's elementwise operations computes: a table from its name to a rule.

A rule takes the `Values` it adds to and the operation's arguments by torch's names for them, and returns a value.
Functions, methods, modules and ATen operators of the same name share a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shine.frontends.torchfx.values import Value, Values, refuse

Rule = Callable[..., Value]

FLOAT_FUNCTIONS: dict[str, str] = {
    **{
        name: f"{name}(x)"
        for name in (
            "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid",
            "expm1", "log1p", "log2", "log10",
        )
    },
    "rsqrt": "1/sqrt(x)",
    "reciprocal": "1/x",
    "exp2": "2**x",
    "silu": "x/(1 + exp(-x))",
    "mish": "x*tanh(log1p(exp(x)))",
    "softsign": "x/(1 + abs(x))",
    "tanhshrink": "x - tanh(x)",
    "log_sigmoid": "min(x, 0) - log1p(exp(-abs(x)))",
    "hardsigmoid": "min(max(x + 3, 0), 6)/6",
    "hardswish": "x*min(max(x + 3, 0), 6)/6",
    "deg2rad": "x*0.017453292519943295",
    "rad2deg": "x*57.29577951308232",
}  # fmt: skip
"""Functions of real numbers; torch makes whole numbers floats first."""

SAME_TYPE: dict[str, str] = {
    "neg": "-x",
    "abs": "abs(x)",
    "relu": "max(x, 0)",
    "relu6": "min(max(x, 0), 6)",
    # Not sign(x): in torch that of NaN is 0.
    "sign": "(x > 0) - (x < 0)",
}
"""Functions that any number has."""

ROUNDED: dict[str, str] = {
    "floor": "floor(x)",
    "ceil": "ceil(x)",
    "trunc": "ceil(x) if x < 0 else floor(x)",
    # To the nearest, halves to the even one.
    "round": (
        "floor(x) if x - floor(x) < 0.5 else floor(x) + 1 if x - floor(x) > 0.5 "
        "else floor(x) if floor(x) == 2*floor(floor(x)*0.5) else floor(x) + 1"
    ),
}
"""Functions that leave whole numbers as they are."""

COMPARED: dict[str, str] = {
    "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y", "eq": "x == y", "ne": "x != y",
    "isnan": "x != x", "isfinite": "x - x == 0", "isinf": "x == x and x - x != 0",
}  # fmt: skip

CONNECTED: dict[str, str] = {"and": "x and y", "or": "x or y", "xor": "x != y"}
"""Expressions of two truth values."""


def _floating(template: str) -> Rule:
    def rule(values: Values, input: Any) -> Value:
        return values.compute(values.floating(values.result_type(input)), template, x=input)

    return rule


def _same_type(template: str) -> Rule:
    def rule(values: Values, input: Any) -> Value:
        dtype = values.result_type(input)
        if dtype == "bool":
            refuse("torch has no such operation of truth values")
        return values.compute(dtype, template, x=input)

    return rule


def _rounded(template: str) -> Rule:
    def rule(values: Values, input: Any, decimals: int = 0) -> Value:
        dtype = values.result_type(input)
        if decimals != 0:
            refuse("rounding to decimals is not supported")
        return values.compute(dtype, template, x=input) if dtype.startswith("float") else values.of(input)

    return rule


def _test(template: str) -> Rule:
    def rule(values: Values, input: Any) -> Value:
        return values.test(values.result_type(input), template, x=input)

    return rule


def _comparison(template: str) -> Rule:
    def rule(values: Values, input: Any, other: Any) -> Value:
        return values.test(values.result_type(input, other), template, x=input, y=other)

    return rule


def _logical(template: str) -> Rule:
    def rule(values: Values, input: Any, other: Any) -> Value:
        x, y = values.truth(values.of(input)), values.truth(values.of(other))
        return values.compute("bool", template, x=x, y=y)

    return rule


def _bitwise(template: str) -> Rule:
    def rule(values: Values, input: Any, other: Any) -> Value:
        if values.result_type(input, other) != "bool":
            refuse("bitwise operations are supported for truth values only")
        return _logical(template)(values, input, other)

    return rule


def _logical_not(values: Values, input: Any) -> Value:
    return values.compute("bool", "not x", x=values.truth(values.of(input)))


def _bitwise_not(values: Values, input: Any) -> Value:
    dtype = values.result_type(input)
    return _logical_not(values, input) if dtype == "bool" else values.compute(dtype, "-1 - x", x=input)


def _add(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    dtype = values.result_type(input, other)
    if dtype == "bool":
        return _logical("x or y")(values, input, other)
    template = "x + y" if alpha == 1 else "x + alpha*y"
    return values.compute(dtype, template, x=input, y=other, **({} if alpha == 1 else {"alpha": alpha}))


def _sub(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    dtype = values.result_type(input, other)
    if dtype == "bool":
        refuse("torch has no difference of truth values")
    template = "x - y" if alpha == 1 else "x - alpha*y"
    return values.compute(dtype, template, x=input, y=other, **({} if alpha == 1 else {"alpha": alpha}))


def _rsub(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    return _sub(values, other, input, alpha)


def _mul(values: Values, input: Any, other: Any) -> Value:
    return values.compute(values.result_type(input, other), "x*y", x=input, y=other)


def _div(values: Values, input: Any, other: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return _floor_divide(values, input, other)
    dtype = values.result_type(input, other)
    if rounding_mode is None:
        return values.compute(values.floating(dtype), "x/y", x=input, y=other)
    quotient = values.compute(_numeric(dtype), "x/y", x=input, y=other)
    return _rounded(ROUNDED["trunc"])(values, quotient)


def _floor_divide(values: Values, input: Any, other: Any) -> Value:
    return values.compute(_numeric(values.result_type(input, other)), "x//y", x=input, y=other)


def _remainder(values: Values, input: Any, other: Any) -> Value:
    return values.compute(_numeric(values.result_type(input, other)), "x % y", x=input, y=other)


def _fmod(values: Values, input: Any, other: Any) -> Value:
    dtype = _numeric(values.result_type(input, other))
    # The remainder of the sizes is exact; among whole numbers the quotient truncates.
    floats = "-(abs(x) % abs(y)) if x < 0 else abs(x) % abs(y)"
    return values.compute(dtype, floats if dtype.startswith("float") else "x - x/y*y", x=input, y=other)


def _numeric(dtype: str) -> str:
    if dtype == "bool":
        refuse("torch has no division of truth values")
    return dtype


POWERS: dict[float, str] = {
    0.5: "sqrt(x)", 1: "x", 2: "x*x", 3: "x*x*x", -0.5: "1/sqrt(x)", -1: "1/x", -2: "1/(x*x)"
}  # fmt: skip
"""Powers with a number that torch computes in another way, of floats."""


def _pow(values: Values, input: Any, exponent: Any) -> Value:
    dtype = values.result_type(input, exponent)
    power = values.of(exponent)
    if dtype == "bool":
        refuse("powers of truth values are not supported")
    if power.constant is not None and dtype.startswith("float") and power.constant in POWERS:
        return values.compute(dtype, POWERS[power.constant], x=input)
    if power.constant is not None and power.constant < 0 and not dtype.startswith("float"):
        refuse("torch has no negative powers of whole numbers")
    if not dtype.startswith("float") and power.constant is None:
        # A negative power of zero is 0, and no error.
        base = values.chosen(dtype, values.test(dtype, "y < 0 and x == 0", x=input, y=exponent), 2, input)
        return values.compute(dtype, "x**y", x=base, y=exponent)
    return values.compute(dtype, "x**y", x=input, y=exponent)


def _extreme(name: str) -> Rule:
    def rule(values: Values, input: Any, other: Any) -> Value:
        return values.compute(values.result_type(input, other), f"{name}(x, y)", x=input, y=other)

    return rule


def _extreme_of_tensors(name: str) -> Rule:
    def rule(values: Values, input: Any, other: Any = None) -> Value:
        if not isinstance(other, Value):
            refuse(f"only {name} of two tensors is elementwise")
        return _extreme(name)(values, input, other)

    return rule


def _extreme_number(name: str) -> Rule:
    """The extreme of those that are numbers."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        template = f"y if x != x else x if y != y else {name}(x, y)"
        return values.compute(values.result_type(input, other), template, x=input, y=other)

    return rule


def _clamp(values: Values, input: Any, min: Any = None, max: Any = None) -> Value:
    if min is None and max is None:
        refuse("clamp needs at least one bound")
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = values.result_type(input, *bounds)
    if min is None:
        return values.compute(dtype, "min(x, high)", x=input, high=max)
    if max is None:
        return values.compute(dtype, "max(x, low)", x=input, low=min)
    return values.compute(dtype, "min(max(x, low), high)", x=input, low=min, high=max)


def _clamp_min(values: Values, input: Any, min: Any) -> Value:
    return _clamp(values, input, min=min)


def _clamp_max(values: Values, input: Any, max: Any) -> Value:
    return _clamp(values, input, max=max)


def _hardtanh(values: Values, input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    dtype = values.result_type(input)
    return values.compute(dtype, "min(max(x, low), high)", x=input, low=min_val, high=max_val)


def _activation(template: str, **defaults: float) -> Rule:
    """A function of a float tensor with parameters that are numbers."""

    def rule(values: Values, input: Any, *given: Any, **named: Any) -> Value:
        parameters = {**defaults, **dict(zip(defaults, given, strict=False)), **named}
        if len(given) > len(defaults) or set(named) - set(defaults):
            refuse(f"it takes {', '.join(defaults)} only")
        dtype = values.result_type(input)
        if not dtype.startswith("float"):
            refuse(f"torch has it for floats only, not for {dtype}")
        return values.compute(dtype, template, x=input, **parameters)

    return rule


def _gelu(values: Values, input: Any, approximate: str = "none") -> Value:
    if approximate != "tanh":
        refuse("gelu needs the error function, which the language lacks; approximate='tanh' is supported")
    inner, factor = "x + 0.044715*(x*x*x)", math.sqrt(2 / math.pi)
    return values.compute(values.result_type(input), f"0.5*x*(1 + tanh(factor*({inner})))", x=input, factor=factor)


def _where(values: Values, condition: Any, input: Any, other: Any) -> Value:
    return values.chosen(values.result_type(input, other), condition, input, other)


def _where_method(values: Values, input: Any, condition: Any, other: Any) -> Value:
    return _where(values, condition, input, other)


def _masked_fill(values: Values, input: Any, mask: Any, value: Any) -> Value:
    return values.chosen(values.result_type(input), mask, value, input)


def _lerp(values: Values, input: Any, end: Any, weight: Any) -> Value:
    template = "x + w*(y - x) if abs(w) < 0.5 else y - (y - x)*(1 - w)"
    return values.compute(values.result_type(input, end, weight), template, x=input, y=end, w=weight)


def _addcmul(values: Values, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Value:
    dtype = values.result_type(input, tensor1, tensor2)
    return values.compute(dtype, "x + value*a*b", x=input, a=tensor1, b=tensor2, value=value)


def _addcdiv(values: Values, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Value:
    dtype = values.result_type(input, tensor1, tensor2)
    if not dtype.startswith("float"):
        refuse("torch has it for floats only")
    return values.compute(dtype, "x + value*a/b", x=input, a=tensor1, b=tensor2, value=value)


def _hypot(values: Values, input: Any, other: Any) -> Value:
    return values.compute(values.floating(values.result_type(input, other)), "hypot(x, y)", x=input, y=other)


def _xlogy(values: Values, input: Any, other: Any) -> Value:
    template = "y if y != y else 0 if x == 0 else x*log(y)"
    return values.compute(values.floating(values.result_type(input, other)), template, x=input, y=other)


def _threshold(values: Values, input: Any, threshold: Any, value: Any) -> Value:
    dtype = values.result_type(input)
    return values.compute(dtype, "value if x <= threshold else x", x=input, threshold=threshold, value=value)


def _same(values: Values, input: Any, **options: Any) -> Value:
    """Copies, and whatever else changes no number."""
    return values.of(input)


def _dropout(values: Values, input: Any, p: float = 0.5, training: bool = True) -> Value:
    if training and p:
        refuse("dropout is random while training; call eval() on the module first")
    return values.of(input)


def _to(values: Values, input: Any, *targets: Any, **options: Any) -> Value:
    value = values.of(input)
    for target in (*targets, options.get("dtype"), options.get("other")):
        if isinstance(target, Value):
            value = values.converted(value, target.dtype)
        elif isinstance(target, values.torch.dtype):
            value = values.converted(value, values.storage_type(target))
        elif isinstance(target, str) and target != "cpu":
            refuse(f"{target!r} is neither a number type nor the CPU")
    return value


def _type_as(values: Values, input: Any, other: Any) -> Value:
    return values.converted(values.of(input), values.of(other).dtype)


def _to_type(dtype: str) -> Rule:
    def rule(values: Values, input: Any) -> Value:
        return values.converted(values.of(input), dtype)

    return rule


def _filled(constant: float) -> Rule:
    def rule(values: Values, input: Any, dtype: Any = None, **options: Any) -> Value:
        return _full_like(values, input, constant, dtype=dtype)

    return rule


def _full_like(values: Values, input: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Value:
    like = values.of(input)
    kind = like.dtype if dtype is None else values.storage_type(dtype)
    if not isinstance(fill_value, bool | int | float):
        refuse("only a number can fill a tensor")
    number = values.converted(values.of(fill_value), kind).constant
    # The tensor has the dimensions of the other, wherever the two meet.
    return Value(kind, constant=number, scalar=like.scalar)


def _scalar_tensor(values: Values, s: Any, dtype: Any = None, **options: Any) -> Value:
    kind = values.of(s).dtype if dtype is None else values.storage_type(dtype)
    return Value(kind, constant=values.converted(values.of(s), kind).constant, scalar=True)


def _full(values: Values, size: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Value:
    if len(size):
        refuse("it makes an array of its own; only full_like and numbers are supported")
    return _scalar_tensor(values, fill_value, dtype)


OPERATIONS: dict[str, Rule] = {
    **{name: _floating(template) for name, template in FLOAT_FUNCTIONS.items()},
    **{name: _same_type(template) for name, template in SAME_TYPE.items()},
    **{name: _rounded(template) for name, template in ROUNDED.items()},
    **{name: _comparison(template) for name, template in COMPARED.items() if "y" in template},
    **{name: _test(template) for name, template in COMPARED.items() if "y" not in template},
    **{f"logical_{name}": _logical(template) for name, template in CONNECTED.items()},
    **{f"bitwise_{name}": _bitwise(template) for name, template in CONNECTED.items()},
    "logical_not": _logical_not,
    "bitwise_not": _bitwise_not,
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "div": _div,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "pow": _pow,
    "square": lambda values, input: _pow(values, input, 2),
    "maximum": _extreme("max"),
    "minimum": _extreme("min"),
    "max": _extreme_of_tensors("max"),
    "min": _extreme_of_tensors("min"),
    "fmax": _extreme_number("max"),
    "fmin": _extreme_number("min"),
    "clamp": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "hardtanh": _hardtanh,
    "leaky_relu": _activation("x if x > 0 else x*negative_slope", negative_slope=0.01),
    "elu": _activation(
        "x*scale if x > 0 else expm1(x*input_scale)*(alpha*scale)", alpha=1.0, scale=1.0, input_scale=1.0
    ),
    "celu": _activation("x if x > 0 else alpha*expm1(x/alpha)", alpha=1.0),
    "selu": _activation("x*scale if x > 0 else expm1(x)*product", scale=1.0507009873554805, product=1.7580993408473766),
    "softplus": _activation("x if x*beta > threshold else log1p(exp(x*beta))/beta", beta=1.0, threshold=20.0),
    "hardshrink": _activation("0 if x >= -lambd and x <= lambd else x", lambd=0.5),
    "softshrink": _activation("x - lambd if x > lambd else x + lambd if x < -lambd else x*0", lambd=0.5),
    "gelu": _gelu,
    "threshold": _threshold,
    "where": _where,
    "masked_fill": _masked_fill,
    "lerp": _lerp,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "hypot": _hypot,
    "xlogy": _xlogy,
    "to": _to,
    "type_as": _type_as,
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "full_like": _full_like,
    "scalar_tensor": _scalar_tensor,
    "full": _full,
    "positive": _same,
    "clone": _same,
    "dropout": _dropout,
}
"""Rule of each operation."""

ALIASES: dict[str, str] = {
    "truediv": "div", "true_divide": "div", "divide": "div", "floordiv": "floor_divide", "mod": "remainder",
    "multiply": "mul", "subtract": "sub", "negative": "neg", "absolute": "abs", "fix": "trunc", "sgn": "sign",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "expit": "sigmoid", "special_expit": "sigmoid",
    "special_expm1": "expm1", "special_log1p": "log1p", "special_exp2": "exp2", "special_xlogy": "xlogy",
    "logsigmoid": "log_sigmoid", "clip": "clamp", "swish": "silu",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "not_equal": "ne",
    "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not", "inv": "bitwise_not",
    "pos": "positive", "contiguous": "clone", "detach": "clone", "alias": "clone", "identity": "clone",
    "lift_fresh_copy": "clone", "lift_fresh": "clone", "_to_copy": "to", "cpu": "clone",
    "_threshold": "threshold", "alpha_dropout": "dropout", "feature_alpha_dropout": "dropout",
}  # fmt: skip
"""Operations that go by several names."""

METHODS: dict[str, Rule] = {
    "float": _to_type("float32"),
    "double": _to_type("float64"),
    "int": _to_type("int32"),
    "long": _to_type("int64"),
    "bool": _to_type("bool"),
    "where": _where_method,
}
"""Methods whose name as a function means something else, or nothing."""

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{
        module: (operation, ())
        for module, operation in {
            "ReLU": "relu", "ReLU6": "relu6", "Tanh": "tanh", "Sigmoid": "sigmoid", "SiLU": "silu", "Mish": "mish",
            "SELU": "selu", "Softsign": "softsign", "Tanhshrink": "tanhshrink", "LogSigmoid": "log_sigmoid",
            "Hardsigmoid": "hardsigmoid", "Hardswish": "hardswish", "Identity": "clone",
        }.items()
    },
    "Dropout": ("dropout", ("p", "training")),
    "AlphaDropout": ("dropout", ("p", "training")),
    "GELU": ("gelu", ("approximate",)),
    "Hardtanh": ("hardtanh", ("min_val", "max_val")),
    "LeakyReLU": ("leaky_relu", ("negative_slope",)),
    "ELU": ("elu", ("alpha",)),
    "CELU": ("celu", ("alpha",)),
    "Softplus": ("softplus", ("beta", "threshold")),
    "Hardshrink": ("hardshrink", ("lambd",)),
    "Softshrink": ("softshrink", ("lambd",)),
    "Threshold": ("threshold", ("threshold", "value")),
}  # fmt: skip
"""Operation of each module, and those of its attributes that are arguments."""
