"""Formulas as ONNX models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shine.base.errors import needing
from shine.formats.write.onnx import graph as nodes
from shine.formats.write.onnx.graph import Graph, Value, unit
from shine.formats.write.sources import Headings, made_numbers, takes_models
from shine.formats.write.straightline import straight_line
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from onnx import ModelProto


def _number(condition: Value, like: Value) -> Value:
    return condition.where(like.number(1.0), 0.0)


def _sign(a: Value) -> Value:
    below = (a < 0.0).where(a.number(-1.0), a.equals(0.0).where(a.number(0.0), a))
    return (a > 0.0).where(a.number(1.0), below)


def _opposite(a: Value, b: Value) -> Value:
    return (a < 0.0).apply("Xor", b < 0.0)


def _modulo(a: Value, b: Value) -> Value:
    remainder = a.apply("Mod", b, fmod=1)
    moved = _opposite(b, remainder).where(remainder + b, remainder)
    zero = remainder.equals(0.0)
    return zero.where(a.number(0.0), moved) * zero.where(unit(b), 1.0)


def _floor_divide(a: Value, b: Value) -> Value:
    remainder = a.apply("Mod", b, fmod=1)
    quotient = (a - remainder) / b
    moves = _opposite(b, remainder) & remainder.differs(0.0)
    quotient = moves.where(quotient - 1.0, quotient)
    below = quotient.apply("Floor")
    below = (quotient - below > 0.5).where(below + 1.0, below)
    plain = a / b
    zero = quotient.equals(0.0)
    return b.equals(0.0).where(plain, zero.where(a.number(0.0), below)) * zero.where(unit(plain), 1.0)


def _node(operator: str) -> Callable[..., Value]:
    return lambda a, *others: a.apply(operator, *others)


def _comparison(operator: str) -> Callable[[Value, Value], Value]:
    return lambda a, b: _number(a.test(operator, b), a)


OPERATIONS: dict[str, Callable[..., Value]] = {
    **{
        name: _node(operator)
        for name, operator in {
            "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "sqrt": "Sqrt",
            "floor": "Floor", "ceil": "Ceil", "exp": "Exp", "log": "Log", "pow": "Pow",
        }.items()
    },
    **{
        name: _comparison(operator)
        for name, operator in {
            "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal",
        }.items()
    },
    "ne": lambda a, b: _number(a.differs(b), a),
    "floordiv": _floor_divide,
    "mod": _modulo,
    "min": lambda a, b: ((a < b) | a.is_nan()).choose(a, b),
    "max": lambda a, b: ((a > b) | a.is_nan()).choose(a, b),
    "sign": _sign,
    **{
        name: getattr(nodes, name)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
    "logical_and": lambda a, b: a.equals(0.0).choose(a, b),
    "logical_or": lambda a, b: a.equals(0.0).choose(b, a),
    "logical_not": lambda a: _number(a.equals(0.0), a),
    "where": lambda test, a, b: test.equals(0.0).choose(b, a),
}  # fmt: skip
"""Operation of each basic primitive in float64; also in float32, except for the next two tables."""

SINGLE_OPERATORS = {"sin": "Sin", "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh"}
"""Operators that are within 2 ulp in float32."""

SINGLE_THROUGH_DOUBLE = ("log", "asin", "acos", "atan", "tanh")
"""Primitives computed in float64 and rounded to float32."""


def operations(kind: int, double: int) -> dict[str, Callable[..., Value]]:
    """The operations in the element type `kind`; `double` is the number of float64."""
    if kind == double:
        return OPERATIONS

    def through_double(name: str) -> Callable[[Value], Value]:
        return lambda a: OPERATIONS[name](a.cast(double)).cast(kind)

    return {
        **OPERATIONS,
        **{name: _node(operator) for name, operator in SINGLE_OPERATORS.items()},
        **{name: through_double(name) for name in SINGLE_THROUGH_DOUBLE},
    }


_OPSET, _VERSION = 17, 8
"""Versions of the operators and of the format, both of 2022: old and new runtimes read them."""

_ELEMENTS = {"float64": "DOUBLE", "float32": "FLOAT"}


@takes_models
def onnx_model(
    tree: Tree,
    name: str = "f",
    dtype: str = "float64",
    *,
    headings: Headings | None = None,
    precision: Precision = None,
) -> ModelProto:
    """A formula as an ONNX model.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the graph.
    dtype : {"float64", "float32"}
        Type of the input and of the output.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature. The model's metadata have them as ``headings``, a list in JSON,
        and as ``columns`` what the numbers of texts and dates are, by feature.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Returns
    -------
    onnx.ModelProto
        From ``X`` of shape (n, n_features) to ``y`` of shape (n,). Checked with onnx.checker.

    Raises
    ------
    ExportError, MissingExtraError
        If the formula calls a function without a definition; if onnx is not installed.
    ValueError
        If the dtype is unknown.

    Notes
    -----
    Made for ONNX Runtime on the CPU, where every primitive is within 2 ulp; docs/exports.md has the exceptions.
    """
    if dtype not in _ELEMENTS:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(_ELEMENTS)}")
    with needing("the export to ONNX", "onnx", "onnx"):
        import onnx

    code = straight_line(rounded_tree(tree, precision, named=False), "ONNX")
    graph = Graph(onnx)
    kind = getattr(onnx.TensorProto, _ELEMENTS[dtype])
    used = {step.leaf for step in code.main.steps if isinstance(step.leaf, str)}
    columns = [
        _column(graph, position) if used and parameter in used else ""
        for position, parameter in enumerate(tree.parameters)
    ]
    result = code.run(
        operations(kind, onnx.TensorProto.DOUBLE),
        lambda number: Value(graph, graph.number(_representable(number, dtype), kind), kind),
        [Value(graph, column, kind) for column in columns],
    )
    if used:
        graph.nodes.append(onnx.helper.make_node("Identity", [result.name], ["y"]))
    else:
        rows = graph.node("Shape", "X", start=0, end=1)
        graph.nodes.append(onnx.helper.make_node("Expand", [result.name, rows], ["y"]))
    return _model(graph, name, kind, tree.parameters, headings or {})


def _model(graph: Graph, name: str, kind: int, features: Sequence[str], headings: Headings) -> ModelProto:
    """The checked model of a graph from X to y."""
    onnx, helper = graph.onnx, graph.onnx.helper
    model: ModelProto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            name,
            [helper.make_tensor_value_info("X", kind, ["n", len(features)])],
            [helper.make_tensor_value_info("y", kind, ["n"])],
            list(graph.initializers.values()),
        ),
        producer_name="shine",
        doc_string=", ".join(features),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_VERSION,
    )
    if headings:
        made = made_numbers(features, headings)
        told = {"headings": [headings.get(name, name) for name in features], **({"columns": made} if made else {})}
        texts = {key: json.dumps(value, ensure_ascii=False) for key, value in told.items()}
        helper.set_model_props(model, texts)
    onnx.checker.check_model(model)
    return model


@takes_models
def onnx_bytes(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> bytes:
    """A formula as the bytes of a float64 ONNX file; see `onnx_model`."""
    return onnx_model(tree, name, headings=headings, precision=precision).SerializeToString()


def _column(graph: Any, position: int) -> str:
    """The name of a column of X."""
    index = graph.number(position, graph.onnx.TensorProto.INT64)
    return str(graph.node("Gather", "X", index, axis=1))


def _representable(number: float, dtype: str) -> float:
    """A number in the dtype: too large numbers become infinite in float32."""
    if dtype == "float64":
        return number
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(number))
