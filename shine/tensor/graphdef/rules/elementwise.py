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
from shine.tensor.graphdef.node import Operation, Rule, check_count, check_types, takes
from shine.tensor.graphdef.rules.language import FUNCTIONS

SAME = takes(1, lambda n: n.inputs, -1)
"""The rule of operations that return their inputs."""


def _merge(n: Operation) -> Operand:
    """It reads the predicate, too: see `shine.tensor.graphdef.control.with_choices`."""
    if len(n.inputs) != 3:
        raise GraphImportError(
            "it is no condition of two branches; make the graph with tf.compat.v1.enable_control_flow_v2()"
        )
    predicate, if_true, if_false = n.inputs
    if predicate.shape != () or if_true.shape != if_false.shape:
        raise GraphImportError(
            f"its branches have shapes {list(if_true.shape)} and {list(if_false.shape)}; only equal ones are supported"
        )
    return n.b.select(predicate, if_true, if_false)


def _power(n: Operation) -> Operand:
    """Integers wrap."""
    found = FUNCTIONS["Pow"](n)
    exponent = n[1].known
    if exponent is not None and exponent.dtype.kind in "iu" and (exponent < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    if exponent is None and n[1].dtype.startswith("int"):
        # A formula refuses negative exponents when it is computed, as TensorFlow does.
        values = tuple(each.value for each in n.inputs)
        n.b.builder.composites[found.value.name] = (DEFINED["integer_pow"], values)
    return found


def _cast(n: Operation) -> Operand:
    check_types(n.inputs, n.dtype("SrcT"))
    return n.b.cast_to(n[0], n.dtype("DstT"))


def _select(n: Operation) -> Operand:
    """The condition of Select may choose whole rows."""
    condition, *branches = n.inputs
    if condition.dtype != "bool":
        raise GraphImportError(f"its condition is {condition.dtype}, but must be bool")
    check_types(branches, n.dtype("T"))
    if n.op == "Select":
        _check_same(n.b, branches)
        rank = branches[0].rank
        if condition.rank == 1 and rank > 1:
            condition = n.b.reshape(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    broadcast([each.shape for each in (condition, *branches)])
    return n.b.select(condition, *branches)


def _error_function(n: Operation) -> Operand:
    """Erfc is the complement of Erf, to the rounding of numbers near 1."""
    found = Operand(activation(n.b.builder, "erf", n[0].value))
    return n.b.sub(n.b.like(found, 1), found) if n.op == "Erfc" else found


def _total(n: Operation) -> Operand:
    expected = n.attribute("N", "i")
    if expected < 1:
        raise GraphImportError(f"attr 'N' must be at least 1, is {expected}")
    check_count(n.inputs, expected)
    check_types(n.inputs, n.dtype("T"))
    _check_same(n.b, n.inputs)
    return reduce(n.b.add, n.inputs)


def _check_same(b: GraphBuilder, inputs: Sequence[Operand]) -> None:
    """Refuse inputs of different shapes, unless lengths are open: then the program's call decides."""
    check = broadcast if b.has_open_shapes else same_shape
    check([each.shape for each in inputs])


def _bias(n: Operation) -> Operand:
    """A number added to each channel."""
    operand, added = n.inputs
    channels_first = n.op == "BiasAdd" and (n.optional("data_format", "s") or b"NHWC") == b"NCHW"
    axis = 1 if channels_first else operand.rank - 1
    if operand.rank < 2 or added.shape != (operand.shape[axis],):
        raise GraphImportError(f"a bias of shape {list(added.shape)} does not fit {list(operand.shape)}")
    return n.b.add(operand, n.b.reshape(added, shape=(*added.shape, *(1,) * (operand.rank - 1 - axis))))


ELEMENTWISE: dict[str, Rule] = {
    **FUNCTIONS,
    "NoOp": takes(0, lambda n: ()),
    "Pow": _power,
    "AddN": _total,
    "Cast": takes(1, _cast),
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), takes(2, _bias)),
    **dict.fromkeys(("Erf", "Erfc"), takes(1, _error_function)),
    "IsNan": takes(1, lambda n: n.b.ne(n[0], n[0])),
    "IsInf": takes(1, lambda n: n.b.eq(n.b.abs(n[0]), n.b.like(n[0], math.inf))),
    "IsFinite": takes(1, lambda n: n.b.lt(n.b.abs(n[0]), n.b.like(n[0], math.inf))),
    **dict.fromkeys(("Select", "SelectV2"), takes(3, _select)),
    **dict.fromkeys(("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"), SAME),
    **dict.fromkeys(("CheckNumerics", "EnsureShape", "PlaceholderWithDefault"), SAME),
    "Switch": takes(2, lambda n: (n[0], n[0])),
    "Merge": _merge,
}
