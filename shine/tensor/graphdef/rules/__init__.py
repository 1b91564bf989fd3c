"""Rules of TensorFlow's operations, the instructions that a node adds to a function; and names of several outputs."""

from __future__ import annotations

from shine.base.errors import GraphImportError
from shine.lang.forms.names import choices
from shine.tensor.graphdef.node import Rule
from shine.tensor.graphdef.rules.mathematics import ELEMENTWISE, REDUCTIONS
from shine.tensor.graphdef.rules.pieces import PIECES
from shine.tensor.graphdef.rules.shaping import SHAPING
from shine.tensor.graphdef.rules.variables import LISTS, WRITES
from shine.tensor.graphdef.rules.windows import WINDOWS

OPERATIONS: dict[str, Rule] = {**ELEMENTWISE, **REDUCTIONS, **WINDOWS, **SHAPING, **PIECES, **LISTS}
"""The rule of each operation on tensors."""

_BATCH_NORM = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3")

OUTPUT_NAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("TopK", "TopKV2"), ("values", "indices")),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _BATCH_NORM),
    "Switch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
}
"""Names of outputs, for functions that read them, of operations with several outputs and not one list of them."""

_LOOP = "loops of TensorFlow 1 are not supported; make the graph with tf.compat.v1.enable_control_flow_v2()"

_ADVICE: dict[str, str] = {
    **dict.fromkeys(("Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge"), _LOOP),
    **dict.fromkeys(WRITES, "it changes a variable; variables are frozen"),
}


def rule(op: str) -> Rule:
    """The rule of an operation on tensors.

    A `GraphImportError` if it is not supported; the message names some that are.
    """
    if op not in OPERATIONS:
        known = f"this op is not supported: {choices(op, OPERATIONS)}"
        raise GraphImportError(_ADVICE.get(op, known))
    return OPERATIONS[op]
