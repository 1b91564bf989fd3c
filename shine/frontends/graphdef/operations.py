"""The operations of TensorFlow that are computed element by element: one row each.

Meanings are those of TensorFlow's kernels for the CPU. Two that a graph cannot rely on are refused: Round of integers,
for which the kernel gives 0, and RealDiv of them, which has no kernel.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shine.errors import GraphImportError
from shine.frontends.graphdef.nodes import Node
from shine.frontends.graphdef.shapes import Shape, broadcast, same
from shine.frontends.graphdef.tensors import dtype_name
from shine.frontends.graphdef.values import Building, Value

Rule = Callable[[Building, Node, Sequence[Value]], Sequence[Value]]
"""Of a node and what it reads: its outputs."""

Extra = Callable[[Node, str], Sequence[float]]
"""Arguments of a function that are no inputs: of a node and its element type."""


@dataclass(frozen=True)
class Elementwise:
    """An operation that is one function of its inputs, which broadcast.

    Parameters
    ----------
    arity : int
    floats, integers, bools : str, optional
        The primitive for each kind of element; none if TensorFlow has no such kernel.
    result : str, optional
        Element type of the result, if not that of the inputs.
    extra : callable, optional
        What else the primitive is given.
    """

    arity: int
    floats: str | None = None
    integers: str | None = None
    bools: str | None = None
    result: str | None = None
    extra: Extra | None = None

    def __call__(self, building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        _check_count(inputs, self.arity)
        dtype = "bool" if self.floats is None and self.integers is None else node.dtype("T")
        _check_types(inputs, dtype)
        kind = "bools" if dtype == "bool" else "floats" if dtype.startswith("float") else "integers"
        function: str | None = getattr(self, kind)
        if function is None:
            raise GraphImportError(f"there is no {node.op} of {dtype}; supported are {_kinds(self)}")
        extra = () if self.extra is None else self.extra(node, dtype)
        shape = broadcast([value.shape for value in inputs])
        return (building.apply(function, inputs, shape, self.result or dtype, extra),)


def _kinds(operation: Elementwise) -> str:
    kinds = {"floats": "float32, float64", "integers": "int32, int64", "bools": "bool"}
    return ", ".join(text for kind, text in kinds.items() if getattr(operation, kind))


def _check_count(inputs: Sequence[Value], expected: int) -> None:
    if len(inputs) != expected:
        raise GraphImportError(f"reads {len(inputs)} values, but takes {expected}")


def _check_types(inputs: Sequence[Value], dtype: str) -> None:
    for position, value in enumerate(inputs):
        if value.dtype != dtype:
            raise GraphImportError(f"input {position} is {value.dtype}, but must be {dtype}")


def _alpha(node: Node, dtype: str) -> Sequence[float]:
    given = node.optional("alpha", "f")
    return (float(np.float32(0.2)) if given is None else given,)


def _tolerance(node: Node, dtype: str) -> Sequence[float]:
    given = node.optional("tolerance", "f")
    return (float(np.float32(1e-5)) if given is None else given,)


def _softplus_threshold(node: Node, dtype: str) -> Sequence[float]:
    return (math.log(np.finfo(dtype).eps) + 2,)


def _constant(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 0)
    dtype, tensor = node.dtype("dtype"), node.tensor()
    if tensor.dtype != dtype:
        raise GraphImportError(f"attr 'dtype' is {dtype}, but its tensor is {tensor.dtype}")
    return (building.constant(tensor, node.name),)


def _placeholder(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 0)
    return (building.parameter(node.name, node.dtype("dtype"), node.shape(building.producer)),)


def _placeholder_with_default(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 1)
    dtype, shape, tensor = node.dtype("dtype"), node.shape(building.producer), inputs[0].tensor
    _check_types(inputs, dtype)
    if tensor is None:
        raise GraphImportError("its default is computed; only a Const is supported")
    same([shape, tensor.shape])
    return (building.parameter(node.name, dtype, shape, tensor),)


def _identity(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 1)
    _check_types(inputs, node.dtype("T"))
    return inputs


def _identities(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    dtypes = [dtype_name(number) for number in node.attribute("T", "list").type]
    _check_count(inputs, len(dtypes))
    for value, dtype in zip(inputs, dtypes, strict=True):
        _check_types([value], dtype)
    return inputs


def _nothing(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 0)
    return ()


def _sum(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    expected = node.attribute("N", "i")
    if expected < 1:
        raise GraphImportError(f"attr 'N' must be at least 1, is {expected}")
    _check_count(inputs, expected)
    dtype = node.dtype("T")
    _check_types(inputs, dtype)
    if dtype == "bool":
        raise GraphImportError("there is no AddN of bool; supported are float32, float64, int32, int64")
    same([value.shape for value in inputs])
    total = inputs[0]
    for value in inputs[1:]:
        total = building.apply("add", [total, value], same([total.shape, value.shape]), dtype)
    return (total,)


def _cast(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 1)
    source, target = node.dtype("SrcT"), node.dtype("DstT")
    _check_types(inputs, source)
    (value,) = inputs
    if source == target:
        return inputs
    if target == "bool":
        return (building.apply("ne", inputs, value.shape, "bool", extra=(0,)),)
    return (Value(target, value.shape, building.builder.convert(building.name(value), target)),)


def _power(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 2)
    exponent = inputs[1].tensor
    if exponent is None or exponent.dtype not in ("int32", "int64"):
        return _POWER(building, node, inputs)
    if (exponent.values < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    return _CHECKED_POWER(building, node, inputs)


def _select(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    _check_count(inputs, 3)
    condition, *branches = inputs
    dtype = node.dtype("T")
    if condition.dtype != "bool":
        raise GraphImportError(f"its condition is {condition.dtype}, but must be bool")
    _check_types(branches, dtype)
    if node.op == "Select":
        _check_select(condition.shape, [value.shape for value in branches])
    shape = broadcast([value.shape for value in inputs])
    number_type = building.number_type(branches if any(value.name for value in branches) else inputs)
    if dtype != "bool":
        number_type = dtype
    test, *values = building.operands(inputs, number_type)
    return (Value(dtype, shape, building.builder.assign(number_type, ast.IfExp(test, *values))),)


def _check_select(condition: Shape, branches: Sequence[Shape]) -> None:
    """The first Select does not broadcast; a condition with one axis chooses whole rows."""
    result = same(branches)
    if condition is None or result is None or condition == ():
        return
    if len(condition) == 1 and len(result) > 1:
        raise GraphImportError("its condition chooses rows, which is not supported; use SelectV2 with a column")
    same([condition, result])


_POWER = Elementwise(2, "pow", "integer_pow")
_CHECKED_POWER = Elementwise(2, "pow", "pow")


def _arithmetic(*names: str) -> dict[str, Elementwise]:
    """Rows of operations that are a primitive of the name, for floats and integers."""
    return {name: Elementwise(2, name.lower(), name.lower()) for name in names}


def _unary(**functions: str) -> dict[str, Elementwise]:
    return {name: Elementwise(1, function) for name, function in functions.items()}


def _comparison(function: str, bools: bool = False) -> Elementwise:
    return Elementwise(2, function, function, function if bools else None, result="bool")


OPERATIONS: dict[str, Rule] = {
    "Const": _constant,
    "Placeholder": _placeholder,
    "PlaceholderWithDefault": _placeholder_with_default,
    **dict.fromkeys(("Identity", "StopGradient", "Snapshot", "PreventGradient", "CheckNumerics"), _identity),
    "IdentityN": _identities,
    "NoOp": _nothing,
    # Arithmetic.
    **_arithmetic("Add", "Sub", "Mul"),
    "AddV2": Elementwise(2, "add", "add"),
    "AddN": _sum,
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
    "Pow": _power,
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
    "LeakyRelu": Elementwise(1, "leaky_relu", extra=_alpha),
    "Softplus": Elementwise(1, "softplus", extra=_softplus_threshold),
    # Truth.
    "Less": _comparison("lt"),
    "LessEqual": _comparison("le"),
    "Greater": _comparison("gt"),
    "GreaterEqual": _comparison("ge"),
    "Equal": _comparison("eq", bools=True),
    "NotEqual": _comparison("ne", bools=True),
    "ApproximateEqual": Elementwise(2, "approximate_equal", result="bool", extra=_tolerance),
    "LogicalAnd": Elementwise(2, bools="logical_and"),
    "LogicalOr": Elementwise(2, bools="logical_or"),
    "LogicalNot": Elementwise(1, bools="logical_not"),
    "Select": _select,
    "SelectV2": _select,
    "Cast": _cast,
}  # fmt: skip
"""The rule of each operation; calls of functions are not among them."""

_VARIABLE = "variables are not part of a graph; freeze it first, so that they become constants"
_LOOP = "only straight-line graphs are supported; write conditions with SelectV2"

ADVICE: dict[str, str] = {
    **dict.fromkeys(("Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "VarIsInitializedOp"), _VARIABLE),
    **dict.fromkeys(("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase"), _LOOP),
    **dict.fromkeys(("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"), _LOOP),
}
"""What to do about operations that are often met and not supported."""


def rule(op: str) -> Rule:
    """The rule of an operation.

    Raises
    ------
    GraphImportError
        If it is none that is supported; all that are stand in the message.
    """
    if op not in OPERATIONS:
        advice = ADVICE.get(op, "only elementwise operations and calls of the graph's own functions are supported")
        raise GraphImportError(f"this op is not supported: {advice} ({', '.join(sorted(OPERATIONS))})")
    return OPERATIONS[op]
