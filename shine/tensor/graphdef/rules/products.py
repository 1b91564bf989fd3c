"""Products of matrices and sums over indices."""

from __future__ import annotations

from collections.abc import Sequence

from shine.base.errors import GraphImportError
from shine.tensor.compositions import contraction
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import check_count, flag, word
from shine.tensor.imported.building import Building, Operand


def matmul(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """MatMul of two matrices, each transposed or not."""
    check_count(inputs, 2)
    left, right = inputs
    if left.rank != 2 or right.rank != 2:
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    return (b.dot(_turned(b, left, flag(node, "transpose_a")), _turned(b, right, flag(node, "transpose_b"))),)


def batch_matmul(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """BatchMatMul and its versions: stacks of matrices."""
    check_count(inputs, 2)
    left, right = inputs
    if left.rank < 2 or right.rank < 2:
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    if node.op == "BatchMatMul" and left.shape[:-2] != right.shape[:-2]:
        raise GraphImportError(f"stacks {list(left.shape)} and {list(right.shape)} differ; BatchMatMulV2 broadcasts")
    return (b.dot(_turned(b, left, flag(node, "adj_x")), _turned(b, right, flag(node, "adj_y"))),)


def _turned(b: Building, operand: Operand, is_turned: bool) -> Operand:
    if not is_turned:
        return operand
    axes = tuple(range(operand.rank - 2))
    turned: Operand = b.transpose(operand, permutation=(*axes, operand.rank - 1, operand.rank - 2))
    return turned


def einsum(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Einsum of any number of inputs."""
    check_count(inputs, 1, -1)
    return (Operand(contraction.einsum(b.builder, word(node, "equation"), *(each.value for each in inputs))),)
