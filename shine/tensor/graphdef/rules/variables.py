"""Variables: their values come from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import check_count
from shine.tensor.imported.building import Building, Operand, Output, Variable

WRITES = frozenset(
    {"Assign", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ApplyGradientDescent"}
    | {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyGradientDescent"}
    | {"ResourceScatterUpdate", "ResourceScatterAdd"}
)
"""Operations that change variables, which a frozen graph cannot do."""


def value(b: Building, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """Variable and VariableV2: the value itself."""
    check_count(inputs, 0)
    return (_typed(b, node, Variable(_name(node))),)


def handle(b: Building, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """VarHandleOp: the variable, which others read."""
    check_count(inputs, 0)
    return (Variable(_name(node)),)


def _name(node: Node) -> str:
    shared = node.optional("shared_name", "s")
    return shared.decode(errors="replace") if shared else node.name


def read(b: Building, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """ReadVariableOp."""
    check_count(inputs, 1)
    return (_typed(b, node, _variable(inputs[0])),)


def gather(b: Building, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """ResourceGather: slices of a variable."""
    check_count(inputs, 2)
    if node.optional("batch_dims", "i") or not isinstance(inputs[1], Operand):
        raise GraphImportError("only indices without batch dimensions are supported")
    return b.emit("gather", [_typed(b, node, _variable(inputs[0])), inputs[1]], axis=0)


def _variable(found: Output) -> Variable:
    if not isinstance(found, Variable):
        raise GraphImportError(f"its input is {found.dtype}, but must be a variable")
    return found


def _typed(b: Building, node: Node, variable: Variable) -> Operand:
    operand = b.variable(variable)
    if operand.dtype != node.dtype("dtype"):
        raise GraphImportError(f"attr 'dtype' is {node.dtype('dtype')}, but the variable's value is {operand.dtype}")
    return operand
