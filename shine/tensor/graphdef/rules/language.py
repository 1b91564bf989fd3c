"""TensorFlow's operations that apply a function of the language to each element.

They compute what TensorFlow's kernels for the CPU compute. Two operations are refused, because a graph cannot rely on
them: Round of integers, for which the kernel returns 0, and RealDiv of integers, which has no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import Operand
from shine.tensor.graphdef.constants import broadcast
from shine.tensor.graphdef.node import Operation, check_count, check_types

Extra = Callable[[Operation, str], Sequence[float]]
"""Takes a node and its element type; returns arguments of the function that are not inputs."""


@dataclass(frozen=True)
class Elementwise:
    """An operation that applies one function to its inputs, which broadcast.

    Parameters
    ----------
    arity : int
    floats, integers, bools : str, optional
        The primitive for each kind of element; None if TensorFlow has no such kernel.
    result : str, optional
        Element type of the result, if it differs from the inputs'.
    extra : callable, optional
        Further arguments of the primitive.
    """

    arity: int
    floats: str | None = None
    integers: str | None = None
    bools: str | None = None
    result: str | None = None
    extra: Extra | None = None

    def __call__(self, n: Operation) -> Operand:
        check_count(n.inputs, self.arity)
        dtype = "bool" if self.floats is None and self.integers is None else n.dtype("T")
        check_types(n.inputs, dtype)
        kind = "bools" if dtype == "bool" else "floats" if dtype.startswith("float") else "integers"
        function: str | None = getattr(self, kind)
        if function is None:
            raise GraphImportError(f"there is no {n.op} of {dtype}; supported are {_kinds(self)}")
        extra = () if self.extra is None else self.extra(n, dtype)
        shape = broadcast([value.shape for value in n.inputs])
        return n.b.apply(function, n.inputs, shape, self.result or dtype, extra)


def _kinds(operation: Elementwise) -> str:
    kinds = {"floats": "float32, float64", "integers": "int32, int64", "bools": "bool"}
    return ", ".join(text for kind, text in kinds.items() if getattr(operation, kind))


def _number(key: str, default: float) -> Extra:
    """An attribute, in single precision as all of them are."""

    def extra(n: Operation, dtype: str) -> Sequence[float]:
        given = n.optional(key, "f")
        return (float(np.float32(default)) if given is None else given,)

    return extra


def _softplus_threshold(n: Operation, dtype: str) -> Sequence[float]:
    """Threshold of Softplus, as TensorFlow's kernel has it."""
    return (math.log(np.finfo(dtype).eps) + 2,)


def _arithmetic(*names: str) -> dict[str, Elementwise]:
    """Rows of operations whose primitive has their name in lower case, for floats and integers."""
    return {name: Elementwise(2, name.lower(), name.lower()) for name in names}


def _unary(**functions: str) -> dict[str, Elementwise]:
    return {name: Elementwise(1, function) for name, function in functions.items()}


def _comparison(function: str, bools: bool = False) -> Elementwise:
    return Elementwise(2, function, function, function if bools else None, result="bool")


FUNCTIONS: dict[str, Elementwise] = {
    # Arithmetic.
    **_arithmetic("Add", "Sub", "Mul"),
    "AddV2": Elementwise(2, "add", "add"),
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
    "Pow": Elementwise(2, "pow", "pow"),
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
    "LeakyRelu": Elementwise(1, "leaky_relu", extra=_number("alpha", 0.2)),
    "Softplus": Elementwise(1, "softplus", extra=_softplus_threshold),
    # Truth.
    "Less": _comparison("lt"),
    "LessEqual": _comparison("le"),
    "Greater": _comparison("gt"),
    "GreaterEqual": _comparison("ge"),
    "Equal": _comparison("eq", bools=True),
    "NotEqual": _comparison("ne", bools=True),
    "ApproximateEqual": Elementwise(2, "approximate_equal", result="bool", extra=_number("tolerance", 1e-5)),
    "LogicalAnd": Elementwise(2, bools="logical_and"),
    "LogicalOr": Elementwise(2, bools="logical_or"),
    "LogicalNot": Elementwise(1, bools="logical_not"),
}  # fmt: skip
"""Operations that apply a function of the language."""

ELEMENTWISE = frozenset(FUNCTIONS) | {
    "Const", "Placeholder", "PlaceholderWithDefault", "Identity", "IdentityN", "StopGradient", "Snapshot",
    "PreventGradient", "CheckNumerics", "NoOp", "AddN", "Select", "SelectV2", "Cast",
}  # fmt: skip
"""The operations that a formula may have."""

_VARIABLE = "variables are not part of a graph; freeze it first, so that they become constants"
_LOOP = "only straight-line graphs are supported; write conditions with SelectV2"

ADVICE: dict[str, str] = {
    **dict.fromkeys(("Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "VarIsInitializedOp"), _VARIABLE),
    **dict.fromkeys(("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase"), _LOOP),
    **dict.fromkeys(("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"), _LOOP),
}
"""Advice for common operations that are not supported."""


def check_elementwise(op: str) -> None:
    """Raise GraphImportError unless a formula may have an operation; the message lists those that it may have."""
    if op not in ELEMENTWISE:
        advice = ADVICE.get(op, "only elementwise operations and calls of the graph's own functions are supported")
        raise GraphImportError(f"this op is not supported: {advice} ({', '.join(sorted(ELEMENTWISE))})")
