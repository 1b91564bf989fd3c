"""Variables and lists: values that are no tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import MOST_FOLDED, Operand, Variable
from shine.tensor.graphdef.node import Operation, Rule, takes
from shine.tensor.graphdef.rules.mathematics import SAME

WRITES = frozenset(
    {"Assign", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ApplyGradientDescent"}
    | {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyGradientDescent"}
    | {"ResourceScatterUpdate", "ResourceScatterAdd"}
)
"""Operations that change variables, which a frozen graph cannot do."""


def _own(n: Operation) -> Variable:
    """The variable that a node is."""
    shared = n.optional("shared_name", "s")
    return Variable(shared.decode(errors="replace") if shared else n.name)


def _gather(n: Operation) -> Operand:
    """Slices of a variable."""
    if n.optional("batch_dims", "i") or not isinstance(n[1], Operand):
        raise GraphImportError("only indices without batch dimensions are supported")
    return n.b.gather(_value(n, _read(n)), n[1], axis=0)


def _read(n: Operation) -> Variable:
    """The variable that a node reads."""
    found: object = n[0]
    if not isinstance(found, Variable):
        raise GraphImportError(f"its input is {n[0].dtype}, but must be a variable")
    return found


def _value(n: Operation, variable: Variable) -> Operand:
    operand = n.b.variable(variable)
    if operand.dtype != n.dtype("dtype"):
        raise GraphImportError(f"attr 'dtype' is {n.dtype('dtype')}, but the variable's value is {operand.dtype}")
    return operand


VARIABLES: dict[str, Rule] = {
    **dict.fromkeys(("Variable", "VariableV2"), takes(0, lambda n: _value(n, _own(n)))),
    "VarHandleOp": takes(0, _own),
    "ReadVariableOp": takes(1, lambda n: _value(n, _read(n))),
    "ResourceGather": takes(2, _gather),
    # A variable stays one on its way.
    "Identity": SAME,
}
"""The rules of operations on variables themselves."""

VARIANT = "variant"
"""Name of the element type of lists."""


@dataclass(frozen=True, eq=False)
class TensorList(Operand):
    """A list of tensors of one type, as one tensor whose first axis has the elements."""

    @property
    def dtype(self) -> str:
        """TensorFlow's name of the type of lists."""
        return VARIANT


def _as_list(operand: Operand) -> TensorList:
    return TensorList(operand.value, operand.known)


def _reserve(n: Operation) -> TensorList:
    """A number of elements, zeros at first."""
    shape, count = n.numbers(0, "element shape"), n.number(1, "number of elements")
    if min((count, *shape)) < 0 or not n[0].rank:
        raise GraphImportError(f"its {count} elements of shape {list(shape)} must have a static shape")
    return _as_list(n.b.broadcast(n.b.constant(0, n.dtype("element_dtype")), shape=(count, *shape)))


def _from_tensor(n: Operation) -> TensorList:
    """The slices of the first axis."""
    if not n[0].rank:
        raise GraphImportError("it needs an axis, but its input is a scalar")
    return _as_list(n[0])


def _with_item(n: Operation) -> TensorList:
    """A list with one element replaced."""
    elements, index, new = _listed(n), n[1], n[2]
    count, rank = elements.shape[0], elements.rank
    if new.shape != elements.shape[1:] or count > MOST_FOLDED or prod(index.shape) != 1:
        raise GraphImportError(f"an element of shape {list(new.shape)} does not fit a list of {list(elements.shape)}")
    places = n.b.constant(np.arange(count).reshape(-1, *(1,) * (rank - 1)), index.dtype)
    is_there = n.b.eq(places, n.b.reshape(index, shape=()))
    return _as_list(n.b.select(is_there, new, elements))


def _listed(n: Operation) -> TensorList:
    found = n[0]
    if not isinstance(found, TensorList):
        raise GraphImportError(f"its input is {found.dtype}, but must be a list of tensors")
    return found


LISTS: dict[str, Rule] = {
    "TensorListReserve": takes(2, _reserve),
    "TensorListFromTensor": takes(2, _from_tensor),
    "TensorListStack": takes(2, lambda n: Operand(_listed(n).value, n[0].known)),
    "TensorListLength": takes(1, lambda n: n.b.constant(_listed(n).shape[0], "int32")),
    "TensorListGetItem": takes(3, lambda n: n.b.gather(_listed(n), n[1], axis=0)),
    "TensorListSetItem": takes(3, _with_item),
}
"""The rule of each operation on lists."""
