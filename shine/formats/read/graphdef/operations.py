"""The table of TensorFlow's elementwise operations.

They compute what TensorFlow's kernels for the CPU compute. Two operations are refused, because a graph cannot rely on
them: Round of integers, for which the kernel returns 0, and RealDiv of integers, which has no kernel.
"""

from __future__ import annotations

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.rules import (
    Elementwise,
    Rule,
    alpha,
    cast,
    constant,
    identities,
    identity,
    nothing,
    placeholder,
    placeholder_with_default,
    power,
    select,
    softplus_threshold,
    tolerance,
    total,
)


def _arithmetic(*names: str) -> dict[str, Elementwise]:
    """Rows of operations whose primitive has their name in lower case, for floats and integers."""
    return {name: Elementwise(2, name.lower(), name.lower()) for name in names}


def _unary(**functions: str) -> dict[str, Elementwise]:
    return {name: Elementwise(1, function) for name, function in functions.items()}


def _comparison(function: str, bools: bool = False) -> Elementwise:
    return Elementwise(2, function, function, function if bools else None, result="bool")


OPERATIONS: dict[str, Rule] = {
    "Const": constant,
    "Placeholder": placeholder,
    "PlaceholderWithDefault": placeholder_with_default,
    **dict.fromkeys(("Identity", "StopGradient", "Snapshot", "PreventGradient", "CheckNumerics"), identity),
    "IdentityN": identities,
    "NoOp": nothing,
    # Arithmetic.
    **_arithmetic("Add", "Sub", "Mul"),
    "AddV2": Elementwise(2, "add", "add"),
    "AddN": total,
    "Div": Elementwise(2, "div", "div"),
    "RealDiv": Elementwise(2, "div"),
    "TruncateDiv": Elementwise(2, None, "div"),
    "FloorDiv": Elementwise(2, "floor_div", "floordiv"),
    "FloorMod": Elementwise(2, "floor_mod", "mod"),
    "Mod": Elementwise(2, "truncate_mod", "integer_truncate_mod"),
    "TruncateMod": Elementwise(2, "truncate_mod", "integer_truncate_mod"),
    "DivNoNan": Elementwise(2, "div_no_nan"),
    "MulNoNan": Elementwise(2, "mul_no_nan"),
    "Xdivy": Elementwise(2, "xdivy"),
    "Xlogy": Elementwise(2, "xlogy"),
    "Xlog1py": Elementwise(2, "xlog1py"),
    "Pow": power,
    "SquaredDifference": Elementwise(2, "squared_difference", "squared_difference"),
    "Maximum": Elementwise(2, "max", "max"),
    "Minimum": Elementwise(2, "min", "min"),
    "ClipByValue": Elementwise(3, "clip", "clip"),
    "Atan2": Elementwise(2, "atan2"),
    "Neg": Elementwise(1, "neg", "neg"),
    "Abs": Elementwise(1, "abs", "abs"),
    "Sign": Elementwise(1, "sign", "sign"),
    "Square": Elementwise(1, "square", "square"),
    "ZerosLike": Elementwise(1, "zeros_like", "zeros_like"),
    "OnesLike": Elementwise(1, "ones_like", "ones_like"),
    # Functions of one real number.
    **_unary(
        Sqrt="sqrt", Rsqrt="rsqrt", Reciprocal="inv", Inv="inv", Exp="exp", Expm1="expm1", Log="log", Log1p="log1p",
        Sin="sin", Cos="cos", Tan="tan", Asin="asin", Acos="acos", Atan="atan",
        Sinh="sinh", Cosh="cosh", Tanh="tanh", Asinh="asinh", Acosh="acosh", Atanh="atanh",
        Floor="floor", Ceil="ceil", Round="round_even", Rint="round_even",
        Sigmoid="sigmoid", Elu="elu", Selu="selu", Softsign="softsign",
    ),
    "Relu": Elementwise(1, "relu", "relu"),
    "Relu6": Elementwise(1, "relu6", "relu6"),
    "LeakyRelu": Elementwise(1, "leaky_relu", extra=alpha),
    "Softplus": Elementwise(1, "softplus", extra=softplus_threshold),
    # Truth.
    "Less": _comparison("lt"),
    "LessEqual": _comparison("le"),
    "Greater": _comparison("gt"),
    "GreaterEqual": _comparison("ge"),
    "Equal": _comparison("eq", bools=True),
    "NotEqual": _comparison("ne", bools=True),
    "ApproximateEqual": Elementwise(2, "approximate_equal", result="bool", extra=tolerance),
    "LogicalAnd": Elementwise(2, bools="logical_and"),
    "LogicalOr": Elementwise(2, bools="logical_or"),
    "LogicalNot": Elementwise(1, bools="logical_not"),
    "Select": select,
    "SelectV2": select,
    "Cast": cast,
}  # fmt: skip
"""The rule of each operation, except calls of functions."""

_VARIABLE = "variables are not part of a graph; freeze it first, so that they become constants"
_LOOP = "only straight-line graphs are supported; write conditions with SelectV2"

ADVICE: dict[str, str] = {
    **dict.fromkeys(("Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "VarIsInitializedOp"), _VARIABLE),
    **dict.fromkeys(("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase"), _LOOP),
    **dict.fromkeys(("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"), _LOOP),
}
"""Advice for common operations that are not supported."""


def rule(op: str) -> Rule:
    """The rule of an operation.

    Raises
    ------
    GraphImportError
        If it is not supported; the message lists the supported ones.
    """
    if op not in OPERATIONS:
        advice = ADVICE.get(op, "only elementwise operations and calls of the graph's own functions are supported")
        raise GraphImportError(f"this op is not supported: {advice} ({', '.join(sorted(OPERATIONS))})")
    return OPERATIONS[op]
