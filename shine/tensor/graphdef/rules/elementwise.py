"""Operations that work element by element, beyond those that are one function of the language."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.node import Node
from shine.tensor.compositions.activations import activation
from shine.tensor.graphdef.rules.attributes import check_count
from shine.tensor.imported.building import Building, Operand


def same(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Operations that return their inputs."""
    check_count(inputs, 1, -1)
    return inputs


def switch(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Switch: the value for either branch."""
    check_count(inputs, 2)
    return (inputs[0], inputs[0])


def merge(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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


def power(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Pow; integers wrap."""
    check_count(inputs, 2)
    exponent = inputs[1].known
    if exponent is not None and exponent.dtype.kind in "iu" and (exponent < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    return b.emit("pow", inputs)


def cast(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Cast to another element type."""
    check_count(inputs, 1)
    if inputs[0].dtype != node.dtype("SrcT"):
        raise GraphImportError(f"its input is {inputs[0].dtype}, but attr 'SrcT' is {node.dtype('SrcT')}")
    return (b.cast_to(inputs[0], node.dtype("DstT")),)


def select(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Select and SelectV2: a choice by a condition; that of Select may choose whole rows."""
    check_count(inputs, 3)
    condition, *branches = inputs
    if node.op == "Select":
        if branches[0].shape != branches[1].shape:
            raise GraphImportError(f"its values have shapes {list(branches[0].shape)} and {list(branches[1].shape)}")
        rank = branches[0].rank
        if condition.rank == 1 and rank > 1:
            condition = b.reshape(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    return b.emit("select", [condition, *branches])


def is_nan(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsNan."""
    check_count(inputs, 1)
    return b.emit("ne", [inputs[0], inputs[0]])


def is_infinite(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsInf."""
    check_count(inputs, 1)
    return (b.eq(b.abs(inputs[0]), b.like(inputs[0], math.inf)),)


def is_finite(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """IsFinite."""
    check_count(inputs, 1)
    return (b.lt(b.abs(inputs[0]), b.like(inputs[0], math.inf)),)


def error_function(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Erf, and Erfc as its complement, to the rounding of numbers near 1."""
    check_count(inputs, 1)
    found = Operand(activation(b.builder, "erf", inputs[0].value))
    return (b.sub(b.like(found, 1), found) if node.op == "Erfc" else found,)


def total(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """AddN: the sum of the inputs."""
    check_count(inputs, 1, -1)
    added = inputs[0]
    for operand in inputs[1:]:
        if operand.shape != added.shape:
            raise GraphImportError(f"its inputs have shapes {list(added.shape)} and {list(operand.shape)}")
        added = b.add(added, operand)
    return (added,)


def bias(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """BiasAdd: a number added to each channel."""
    check_count(inputs, 2)
    operand, added = inputs
    channels_first = node.op == "BiasAdd" and (node.optional("data_format", "s") or b"NHWC") == b"NCHW"
    axis = 1 if channels_first else operand.rank - 1
    if operand.rank < 2 or added.shape != (operand.shape[axis],):
        raise GraphImportError(f"a bias of shape {list(added.shape)} does not fit {list(operand.shape)}")
    return (b.add(operand, b.reshape(added, shape=(*added.shape, *(1,) * (operand.rank - 1 - axis)))),)
