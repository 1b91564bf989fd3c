"""Random programs over all number types, arguments for them, and their meaning in plain Python; for several tests."""

from __future__ import annotations

import ast
import math
import struct
from typing import Any

import numpy as np
from helpers.equality import same_bits
from hypothesis import strategies as st
from numpy.typing import NDArray

from shine.lang.forms.tape import application
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.program import NUMBER_TYPES, STORAGE_TYPES, Program

SHAPES = ((), (1,), (5,), (3, 1), (3, 5), (2, 1, 1))
"""Shapes that fit each other."""

BOTH = ("add", "sub", "mul", "neg", "abs", "min", "max", "sign", "where", "logical_not", "logical_and", "logical_or")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
FLOATS = (*BOTH, *COMPARISONS, "div", "sqrt", "floor", "ceil", "relu", "inv")
INTEGERS = (*BOTH, *COMPARISONS, "div", "floordiv", "mod", "pow", "square", "floor")

_ARITY = dict.fromkeys(("neg", "abs", "sign", "logical_not", "sqrt", "floor", "ceil", "relu", "inv", "square"), 1)
_ARITY["where"] = 3

_FLOAT_VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e10, -1e19, 2.0**31, 2.0**31 - 1, -(2.0**31) - 0.5, 2.0**63]
_FLOAT_VALUES += [-(2.0**63), 2.0**63 - 1024, 1e300, 5e-324, 16777217.0, math.inf, -math.inf, math.nan]


def expression(text: str) -> ast.expr:
    """An expression in the form that a statement takes."""
    return ast.parse(text, mode="eval").body


@st.composite
def programs(draw: st.DrawFn, statements: int = 12, bound: bool = True) -> Program:
    """Programs whose statements have all number types, some of them with an array of their own."""
    build = ProgramBuilder()
    dtypes = draw(st.lists(st.sampled_from(sorted(STORAGE_TYPES)), min_size=1, max_size=4))
    names = [build.parameter(f"in/{i}", dtype) for i, dtype in enumerate(dtypes)]
    if bound and draw(st.booleans()):
        dtype = draw(st.sampled_from(sorted(STORAGE_TYPES)))
        names.append(build.parameter("table", dtype, value=draw(arrays(dtype, (5,)))))
    for _ in range(draw(st.integers(1, statements))):
        if draw(st.booleans()):
            names.append(build.convert(draw(st.sampled_from(names)), draw(st.sampled_from(NUMBER_TYPES))))
        else:
            dtype = build.dtype_of(draw(st.sampled_from(names)))
            names.append(
                build.assign(dtype, draw(_expressions(dtype, [n for n in names if build.dtype_of(n) == dtype])))
            )
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    kinds = [draw(st.sampled_from([build.dtype_of(name), "bool"])) for name in outputs]
    return build.finish([(f"out/{i}", *pair) for i, pair in enumerate(zip(outputs, kinds, strict=True))])


def _expressions(dtype: str, names: list[str]) -> st.SearchStrategy[ast.expr]:
    functions = INTEGERS if dtype.startswith("int") else FLOATS
    constants = st.integers(-3, 40) if dtype.startswith("int") else st.sampled_from([0.5, -1.0, 3.0, 0.1, 1e300])
    leaves = st.one_of(
        st.sampled_from(names).map(lambda name: ast.Name(name, ast.Load())),
        constants.map(lambda value: ast.Constant(value)),
    )

    def applied(children: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[ast.expr]:
        return st.sampled_from(functions).flatmap(
            lambda name: st.lists(children, min_size=_ARITY.get(name, 2), max_size=_ARITY.get(name, 2)).map(
                lambda operands: application(name, operands)
            )
        )

    return applied(st.one_of(leaves, applied(leaves)))


@st.composite
def arrays(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Arrays of ordinary and of extreme numbers."""
    count = math.prod(shape)
    if dtype == "bool":
        values: st.SearchStrategy[Any] = st.booleans()
    elif dtype.startswith("int"):
        limits = np.iinfo(dtype)
        values = st.one_of(st.integers(-5, 9), st.sampled_from([limits.min, limits.max, limits.max - 1]))
    else:
        values = st.one_of(st.sampled_from(_FLOAT_VALUES), st.floats(-100, 100))
    numbers = np.array(
        draw(st.lists(values, min_size=count, max_size=count)), "float64" if dtype == "float32" else dtype
    )
    with np.errstate(over="ignore"):
        return numbers.astype(dtype).reshape(shape)


@st.composite
def calls(
    draw: st.DrawFn, shapes: tuple[tuple[int, ...], ...] = SHAPES, **options: Any
) -> tuple[Program, list[NDArray[Any]]]:
    """Programs with arguments whose shapes fit each other."""
    program = draw(programs(**options))
    return program, [draw(arrays(p.dtype, draw(st.sampled_from(shapes)))) for p in program.arguments]


def same(first: Any, second: Any) -> bool:
    """Whether arrays have the same type, shape and bits; every NaN is the same."""
    first, second = np.asarray(first), np.asarray(second)
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    return bool((same_bits(first, second) if first.dtype.kind == "f" else first == second).all())


# The meaning of programs in numbers of Python: integers of any size that are wrapped, floats that are rounded.

Number = int | float


def in_python(program: Program, arguments: list[Number]) -> list[Number]:
    """The outputs of a program for one row; the values of all its parameters are numbers.

    Raises
    ------
    ZeroDivisionError
        If an integer is divided by zero.
    """
    values = dict(zip((parameter.name for parameter in program.parameters), arguments, strict=True))
    dtypes = {parameter.name: STORAGE_TYPES[parameter.dtype] for parameter in program.parameters}
    for statement in program.statements:
        dtypes[statement.name] = statement.dtype
        if statement.converts:
            assert isinstance(statement.value, ast.Name)
            values[statement.name] = _converted(values[statement.value.id], statement.dtype)
        else:
            values[statement.name] = _Python(statement.dtype, values).value(statement.value)
    return [values[o.name] != 0 if o.dtype == "bool" else values[o.name] for o in program.outputs]


def _converted(value: Number, dtype: str) -> Number:
    if dtype.startswith("float"):
        return _nearest(value, dtype)
    bits = int(dtype.removeprefix("int"))
    if isinstance(value, float):
        return (
            int(value)
            if math.isfinite(value) and -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)
            else -(2 ** (bits - 1))
        )
    return _wrapped(value, bits)


def _wrapped(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _nearest(value: Number, dtype: str) -> float:
    if isinstance(value, int) and dtype == "float32":
        # Rounded only once: 24 bits, half to even, fit into a float64.
        shift = max(abs(value).bit_length() - 24, 0)
        whole, rest = divmod(abs(value), 2**shift)
        whole += 2 * rest > 2**shift or (2 * rest == 2**shift and rest > 0 and whole % 2 == 1)
        value = math.copysign(float(whole * 2**shift), value)
    if dtype == "float64" or not math.isfinite(value):
        return float(value)
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


class _Python:
    """Expressions of one number type."""

    def __init__(self, dtype: str, values: dict[str, Number]) -> None:
        self.dtype, self.values = dtype, values
        self.integer = dtype.startswith("int")

    def value(self, node: ast.expr) -> Number:
        value = self._exact(node)
        if self.integer:
            assert isinstance(value, int)
            return _wrapped(value, int(self.dtype.removeprefix("int")))
        return _nearest(value, self.dtype)

    def _exact(self, node: ast.expr) -> Number:
        match node:
            case ast.Constant():
                return node.value if self.integer else float(node.value)
            case ast.Name():
                return self.values[node.id]
            case ast.UnaryOp(ast.Not()):
                return int(self.value(node.operand) == 0)
            case ast.UnaryOp():
                return -self.value(node.operand)
            case ast.BoolOp():
                first = self.value(node.values[0])
                stops = (first == 0) == isinstance(node.op, ast.And)
                return first if stops else self.value(node.values[1])
            case ast.IfExp():
                return self.value(node.body if self.value(node.test) != 0 else node.orelse)
            case ast.Compare():
                pair = self.value(node.left), self.value(node.comparators[0])
                return int(_COMPARE[type(node.ops[0])](*pair))
            case ast.Call():
                assert isinstance(node.func, ast.Name)
                return _CALLS[node.func.id](self, *(self.value(argument) for argument in node.args))
            case ast.BinOp():
                left, right = self.value(node.left), self.value(node.right)
                rules = _INTEGER_OPERATORS if self.integer else _FLOAT_OPERATORS
                return rules[type(node.op)](left, right)
        raise NotImplementedError(ast.dump(node))


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _power(a: int, b: int) -> int:
    # Only the last 64 bits count, and pow with a modulus finds them fast.
    return _truncated(1, a**-b if abs(a) < 2 else 2) if b < 0 else pow(a, b, 2**64)


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _rounded(function: Any) -> Any:
    def rule(python: _Python, a: Number) -> Number:
        return math.copysign(float(function(a)), a) if isinstance(a, float) and math.isfinite(a) else a

    return rule


def _chosen(holds: Any) -> Any:
    def rule(python: _Python, a: Number, b: Number) -> Number:
        return a if a != a or holds(a, b) else b

    return rule


_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
_SHARED: dict[type[ast.operator], Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
_INTEGER_OPERATORS = _SHARED | {
    ast.Div: _truncated,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
}
_FLOAT_OPERATORS = _SHARED | {ast.Div: _quotient}
_CALLS: dict[str, Any] = {
    "abs": lambda python, a: abs(a),
    "sign": lambda python, a: (a > 0) - (a < 0) if a == a else a,
    "min": _chosen(lambda a, b: a < b),
    "max": _chosen(lambda a, b: a > b),
    "relu": lambda python, a: _chosen(lambda x, y: x > y)(python, a, 0.0),
    "inv": lambda python, a: _quotient(1.0, a),
    "sqrt": lambda python, a: math.sqrt(a) if a >= 0 else a if a == 0 else math.nan,
    "square": lambda python, a: a * a,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
}
