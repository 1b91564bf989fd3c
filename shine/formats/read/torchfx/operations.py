"""The tables of torch's elementwise operations: functions, methods and modules."""

from __future__ import annotations

from shine.formats.read.torchfx import arithmetic, copies
from shine.formats.read.torchfx.rules import (
    Rule,
    activation,
    bitwise,
    bitwise_not,
    comparison,
    floating,
    logical,
    logical_not,
    rounded,
    same_type,
    tested,
)
from shine.formats.read.torchfx.templates import COMPARED, CONNECTED, FLOAT_FUNCTIONS, ROUNDED, SAME_TYPE

OPERATIONS: dict[str, Rule] = {
    **{name: floating(template) for name, template in FLOAT_FUNCTIONS.items()},
    **{name: same_type(template) for name, template in SAME_TYPE.items()},
    **{name: rounded(template) for name, template in ROUNDED.items()},
    **{name: comparison(template) for name, template in COMPARED.items() if "y" in template},
    **{name: tested(template) for name, template in COMPARED.items() if "y" not in template},
    **{f"logical_{name}": logical(template) for name, template in CONNECTED.items()},
    **{f"bitwise_{name}": bitwise(template) for name, template in CONNECTED.items()},
    "logical_not": logical_not,
    "bitwise_not": bitwise_not,
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "rsub": arithmetic.rsub,
    "mul": arithmetic.mul,
    "div": arithmetic.div,
    "floor_divide": arithmetic.floor_divide,
    "remainder": arithmetic.remainder,
    "fmod": arithmetic.fmod,
    "pow": arithmetic.power,
    "square": lambda values, input: arithmetic.power(values, input, 2),
    "maximum": arithmetic.extreme("max"),
    "minimum": arithmetic.extreme("min"),
    "max": arithmetic.extreme_of_tensors("max"),
    "min": arithmetic.extreme_of_tensors("min"),
    "fmax": arithmetic.extreme_number("max"),
    "fmin": arithmetic.extreme_number("min"),
    "clamp": arithmetic.clamp,
    "clamp_min": arithmetic.clamp_min,
    "clamp_max": arithmetic.clamp_max,
    "hardtanh": arithmetic.hardtanh,
    "leaky_relu": activation("x if x > 0 else x*negative_slope", negative_slope=0.01),
    "elu": activation(
        "x*scale if x > 0 else expm1(x*input_scale)*(alpha*scale)", alpha=1.0, scale=1.0, input_scale=1.0
    ),
    "celu": activation("x if x > 0 else alpha*expm1(x/alpha)", alpha=1.0),
    "selu": activation("x*scale if x > 0 else expm1(x)*product", scale=1.0507009873554805, product=1.7580993408473766),
    "softplus": activation("x if x*beta > threshold else log1p(exp(x*beta))/beta", beta=1.0, threshold=20.0),
    "hardshrink": activation("0 if x >= -lambd and x <= lambd else x", lambd=0.5),
    "softshrink": activation("x - lambd if x > lambd else x + lambd if x < -lambd else x*0", lambd=0.5),
    "gelu": arithmetic.gelu,
    "threshold": arithmetic.threshold,
    "where": arithmetic.where,
    "masked_fill": arithmetic.masked_fill,
    "lerp": arithmetic.lerp,
    "addcmul": arithmetic.addcmul,
    "addcdiv": arithmetic.addcdiv,
    "hypot": arithmetic.hypot,
    "xlogy": arithmetic.xlogy,
    "to": copies.to,
    "type_as": copies.type_as,
    "zeros_like": copies.filled(0),
    "ones_like": copies.filled(1),
    "full_like": copies.full_like,
    "scalar_tensor": copies.scalar_tensor,
    "full": copies.full,
    "positive": copies.unchanged,
    "clone": copies.unchanged,
    "dropout": copies.dropout,
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
"""Other names of operations."""

METHODS: dict[str, Rule] = {
    "float": copies.to_type("float32"),
    "double": copies.to_type("float64"),
    "int": copies.to_type("int32"),
    "long": copies.to_type("int64"),
    "bool": copies.to_type("bool"),
    "where": arithmetic.where_method,
}
"""Methods without a function of the same name and meaning."""

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
"""Operation of each module, and its attributes that become arguments."""
