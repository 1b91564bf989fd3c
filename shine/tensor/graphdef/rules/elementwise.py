"""Operations that work element by element, beyond those that are one function of the language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from shine.base.errors import GraphImportError
from shine.tensor.compositions.activations import activation
from shine.tensor.frontend.definitions import FUNCTIONS as DEFINED
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand
from shine.tensor.graphdef.constants import broadcast
from shine.tensor.graphdef.constants import same as same_shape
from shine.tensor.graphdef.node import Node, check_count, check_types
from shine.tensor.graphdef.rules.language import FUNCTIONS


def same(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Operations that return their inputs."""
    check_count(inputs, 1, -1)
    return inputs


def nothing(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """NoOp: no inputs and no outputs."""
    check_count(inputs, 0)
    return ()


def switch(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Switch: the value for either branch."""
    check_count(inputs, 2)
    return (inputs[0], inputs[0])


def merge(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Merge, which reads the predicate, too: see `conditions`."""
    if len(inputs) != 3:
        raise GraphImportError(
            "it is no condition of two branches; make the graph with tf.compat.v1.enable_control_flow_v2()"
        )
    predicate, if_true, if_false = inputs
    if predicate.shape != () or if_true.shape != if_false.shape:
        raise GraphImportError(
            f"its branches have shapes {list(if_true.shape)} and {list(if_false.shape)}; only equal ones are supported"
        )
    return b.emit("select", inputs)


def power(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Pow; integers wrap."""
    found = FUNCTIONS["Pow"](b, node, inputs)
    exponent = inputs[1].known
    if exponent is not None and exponent.dtype.kind in "iu" and (exponent < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    if exponent is None and inputs[1].dtype.startswith("int"):
        # A formula refuses negative exponents when it is computed, as TensorFlow does.
        values = tuple(each.value for each in inputs)
        b.builder.composites[found[0].value.name] = (DEFINED["integer_pow"], values)
    return found


def cast(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Cast to another element type."""
    check_count(inputs, 1)
    check_types(inputs, node.dtype("SrcT"))
    return (b.cast_to(inputs[0], node.dtype("DstT")),)


def select(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Select and SelectV2: a choice by a condition; that of Select may choose whole rows."""
    check_count(inputs, 3)
    condition, *branches = inputs
    if condition.dtype != "bool":
        raise GraphImportError(f"its condition is {condition.dtype}, but must be bool")
    check_types(branches, node.dtype("T"))
    if node.op == "Select":
        _check_same(b, branches)
        rank = branches[0].rank
        if condition.rank == 1 and rank > 1:
            condition = b.reshape(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    broadcast([each.shape for each in (condition, *branches)])
    return b.emit("select", [condition, *branches])


def is_nan(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsNan."""
    check_count(inputs, 1)
    return b.emit("ne", [inputs[0], inputs[0]])


def is_infinite(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsInf."""
    check_count(inputs, 1)
    return (b.eq(b.abs(inputs[0]), b.like(inputs[0], math.inf)),)


def is_finite(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsFinite."""
    check_count(inputs, 1)
    return (b.lt(b.abs(inputs[0]), b.like(inputs[0], math.inf)),)


def error_function(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Erf, and Erfc as its complement, to the rounding of numbers near 1."""
    check_count(inputs, 1)
    found = Operand(activation(b.builder, "erf", inputs[0].value))
    return (b.sub(b.like(found, 1), found) if node.op == "Erfc" else found,)


def total(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """AddN: the sum of the inputs."""
    expected = node.attribute("N", "i")
    if expected < 1:
        raise GraphImportError(f"attr 'N' must be at least 1, is {expected}")
    check_count(inputs, expected)
    check_types(inputs, node.dtype("T"))
    _check_same(b, inputs)
    return (reduce(b.add, inputs),)


def _check_same(b: GraphBuilder, inputs: Sequence[Operand]) -> None:
    """Refuse inputs of different shapes, unless lengths are open: then the program's call decides."""
    check = broadcast if b.has_open_shapes else same_shape
    check([each.shape for each in inputs])


def bias(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """BiasAdd: a number added to each channel."""
    check_count(inputs, 2)
    operand, added = inputs
    channels_first = node.op == "BiasAdd" and (node.optional("data_format", "s") or b"NHWC") == b"NCHW"
    axis = 1 if channels_first else operand.rank - 1
    if operand.rank < 2 or added.shape != (operand.shape[axis],):
        raise GraphImportError(f"a bias of shape {list(added.shape)} does not fit {list(operand.shape)}")
    return (b.add(operand, b.reshape(added, shape=(*added.shape, *(1,) * (operand.rank - 1 - axis)))),)
