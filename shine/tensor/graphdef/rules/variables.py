"""Variables and lists: values that are no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import MOST_FOLDED, GraphBuilder, Operand, Output, Variable, numbers
from shine.tensor.graphdef.node import Node, check_count, one_number

WRITES = frozenset(
    {"Assign", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ApplyGradientDescent"}
    | {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyGradientDescent"}
    | {"ResourceScatterUpdate", "ResourceScatterAdd"}
)
"""Operations that change variables, which a frozen graph cannot do."""


def value(b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """Variable and VariableV2: the value itself."""
    check_count(inputs, 0)
    return (_typed(b, node, Variable(_name(node))),)


def handle(b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """VarHandleOp: the variable, which others read."""
    check_count(inputs, 0)
    return (Variable(_name(node)),)


def _name(node: Node) -> str:
    shared = node.optional("shared_name", "s")
    return shared.decode(errors="replace") if shared else node.name


def read(b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """ReadVariableOp."""
    check_count(inputs, 1)
    return (_typed(b, node, _variable(inputs[0])),)


def gather(b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """ResourceGather: slices of a variable."""
    check_count(inputs, 2)
    if node.optional("batch_dims", "i") or not isinstance(inputs[1], Operand):
        raise GraphImportError("only indices without batch dimensions are supported")
    return b.emit("gather", [_typed(b, node, _variable(inputs[0])), inputs[1]], axis=0)


def _variable(found: Output) -> Variable:
    if not isinstance(found, Variable):
        raise GraphImportError(f"its input is {found.dtype}, but must be a variable")
    return found


def _typed(b: GraphBuilder, node: Node, variable: Variable) -> Operand:
    operand = b.variable(variable)
    if operand.dtype != node.dtype("dtype"):
        raise GraphImportError(f"attr 'dtype' is {node.dtype('dtype')}, but the variable's value is {operand.dtype}")
    return operand


VARIANT = "variant"
"""Name of the element type of lists."""


@dataclass(frozen=True, eq=False)
class TensorList(Operand):
    """A list of tensors of one type, as one tensor whose first axis has the elements."""

    @property
    def dtype(self) -> str:
        """TensorFlow's name of the type of lists."""
        return VARIANT


def reserve(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListReserve: a number of elements, zeros at first."""
    check_count(inputs, 2)
    shape, count = numbers(inputs[0], "element shape"), one_number(inputs[1], "number of elements")
    if min((count, *shape)) < 0 or not inputs[0].rank:
        raise GraphImportError(f"its {count} elements of shape {list(shape)} must have a static shape")
    made = b.broadcast(b.constant(0, node.dtype("element_dtype")), shape=(count, *shape))
    return (TensorList(made.value, made.known),)


def from_tensor(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListFromTensor: the slices of the first axis."""
    check_count(inputs, 2)
    if not inputs[0].rank:
        raise GraphImportError("it needs an axis, but its input is a scalar")
    return (TensorList(inputs[0].value, inputs[0].known),)


def stack(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListStack: the elements as one tensor."""
    check_count(inputs, 2)
    return (Operand(_listed(inputs[0]).value, inputs[0].known),)


def length(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListLength."""
    check_count(inputs, 1)
    return (b.constant(_listed(inputs[0]).shape[0], "int32"),)


def item(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListGetItem."""
    check_count(inputs, 3)
    return b.emit("gather", [_listed(inputs[0]), inputs[1]], axis=0)


def with_item(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TensorListSetItem: a list with one element replaced."""
    check_count(inputs, 3)
    elements, index, new = _listed(inputs[0]), inputs[1], inputs[2]
    count, rank = elements.shape[0], elements.rank
    if new.shape != elements.shape[1:] or count > MOST_FOLDED or prod(index.shape) != 1:
        raise GraphImportError(f"an element of shape {list(new.shape)} does not fit a list of {list(elements.shape)}")
    places = b.constant(np.arange(count).reshape(-1, *(1,) * (rank - 1)), index.dtype)
    is_there = b.eq(places, b.reshape(index, shape=()))
    found = b.select(is_there, new, elements)
    return (TensorList(found.value, found.known),)


def _listed(operand: Operand) -> TensorList:
    if not isinstance(operand, TensorList):
        raise GraphImportError(f"its input is {operand.dtype}, but must be a list of tensors")
    return operand


LISTS = {
    "TensorListReserve": reserve,
    "TensorListFromTensor": from_tensor,
    "TensorListStack": stack,
    "TensorListLength": length,
    "TensorListGetItem": item,
    "TensorListSetItem": with_item,
}
"""The rule of each operation on lists."""
