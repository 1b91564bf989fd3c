"""Expressions of torch's elementwise functions, in the language."""

from __future__ import annotations

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
"""Functions of real numbers; torch converts whole numbers to floats first."""

SAME_TYPE: dict[str, str] = {
    "neg": "-x",
    "abs": "abs(x)",
    "relu": "max(x, 0)",
    "relu6": "min(max(x, 0), 6)",
    # Not sign(x): torch's sign of NaN is 0.
    "sign": "(x > 0) - (x < 0)",
}
"""Functions of numbers of any type."""

ROUNDED: dict[str, str] = {
    "floor": "floor(x)",
    "ceil": "ceil(x)",
    "trunc": "ceil(x) if x < 0 else floor(x)",
    # To the nearest; halves to even.
    "round": (
        "floor(x) if x - floor(x) < 0.5 else floor(x) + 1 if x - floor(x) > 0.5 "
        "else floor(x) if floor(x) == 2*floor(floor(x)*0.5) else floor(x) + 1"
    ),
}
"""Functions that do not change whole numbers."""

COMPARED: dict[str, str] = {
    "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y", "eq": "x == y", "ne": "x != y",
    "isnan": "x != x", "isfinite": "x - x == 0", "isinf": "x == x and x - x != 0",
}  # fmt: skip

CONNECTED: dict[str, str] = {"and": "x and y", "or": "x or y", "xor": "x != y"}
"""Expressions of two truth values."""
