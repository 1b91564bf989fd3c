"""One rule for each operator of ONNX: a node -> its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shine.tensor.frontend.graph_builder import Operand
from shine.tensor.onnx.node import Node
from shine.tensor.onnx.rules.elementwise import ELEMENTWISE
from shine.tensor.onnx.rules.movement import MOVEMENT
from shine.tensor.onnx.rules.recurrence import RECURRENCE
from shine.tensor.onnx.rules.reductions import REDUCTIONS
from shine.tensor.onnx.rules.windows import PRODUCTS, RESIZING, WINDOWS

RULES: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    **ELEMENTWISE,
    **MOVEMENT,
    **PRODUCTS,
    **RECURRENCE,
    **REDUCTIONS,
    **RESIZING,
    **WINDOWS,
}
"""Rules by operator; `If` and `Loop` are the reader's, because they contain graphs."""
