"""The table of operations: the rule of each, and the names of the outputs of those that have several."""

from __future__ import annotations

from typing import Any

from shine.base.errors import GraphImportError
from shine.lang.forms.names import choices
from shine.tensor.graphdef.node import Rule
from shine.tensor.graphdef.rules import elementwise, language, pieces, reductions, shaping, variables, windows

_SAME = ("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "EnsureShape")
"""Operations that return their inputs."""

OPERATIONS: dict[str, Rule] = {
    **language.FUNCTIONS,
    "NoOp": elementwise.nothing,
    "Pow": elementwise.power,
    "AddN": elementwise.total,
    "Cast": elementwise.cast,
    "BiasAdd": elementwise.bias,
    "BiasAddV1": elementwise.bias,
    **dict.fromkeys(("Erf", "Erfc"), elementwise.error_function),
    "IsNan": elementwise.is_nan,
    "IsInf": elementwise.is_infinite,
    "IsFinite": elementwise.is_finite,
    **dict.fromkeys(("Select", "SelectV2"), elementwise.select),
    **dict.fromkeys((*_SAME, "PlaceholderWithDefault"), elementwise.same),
    "Switch": elementwise.switch,
    "Merge": elementwise.merge,
    # Products.
    "MatMul": reductions.matmul,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), reductions.batch_matmul),
    "Einsum": reductions.einsum,
    # Windows.
    "Conv2D": windows.conv2d,
    "DepthwiseConv2dNative": windows.depthwise,
    "Conv2DBackpropInput": windows.transposed_conv2d,
    "ResizeNearestNeighbor": windows.nearest,
    "ResizeBilinear": windows.bilinear,
    **dict.fromkeys(("MaxPool", "MaxPoolV2"), windows.max_pool),
    "AvgPool": windows.avg_pool,
    # Normalization.
    "Softmax": reductions.softmax,
    "LogSoftmax": reductions.log_softmax,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), reductions.batch_norm),
    # Reductions.
    "Sum": reductions.reduction("reduce_sum"),
    "Prod": reductions.reduction("reduce_prod"),
    "Max": reductions.reduction("reduce_max"),
    "Min": reductions.reduction("reduce_min"),
    "Mean": reductions.mean,
    "All": reductions.every,
    "Any": reductions.some,
    "ArgMax": reductions.arg_reduction("argmax"),
    "ArgMin": reductions.arg_reduction("argmin"),
    **dict.fromkeys(("TopK", "TopKV2"), reductions.top_k),
    # Shapes.
    "Const": shaping.constant,
    "Placeholder": shaping.placeholder,
    **dict.fromkeys(("Shape", "ShapeN"), shaping.shape),
    "Size": shaping.size,
    "Rank": shaping.rank,
    "Reshape": shaping.reshape,
    "Squeeze": shaping.squeeze,
    "ExpandDims": shaping.expand,
    "Transpose": shaping.transpose,
    "Tile": shaping.tile,
    "BroadcastTo": shaping.broadcast_to,
    "Fill": shaping.fill,
    "Range": shaping.number_range,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), pieces.depth_to_space),
    **dict.fromkeys(("SpaceToBatchND", "BatchToSpaceND"), pieces.between_space_and_batch),
    # Pieces.
    **dict.fromkeys(("Concat", "ConcatV2"), pieces.concatenate),
    "Pack": pieces.pack,
    "Unpack": pieces.unpack,
    "Split": pieces.split,
    "SplitV": pieces.split_v,
    "Slice": pieces.slice_,
    "StridedSlice": pieces.strided_slice,
    "ReverseV2": pieces.reverse,
    **dict.fromkeys(("Pad", "PadV2"), pieces.pad),
    "MirrorPad": pieces.mirror_pad,
    **dict.fromkeys(("Gather", "GatherV2"), pieces.gather),
    "GatherNd": pieces.gather_nd,
    "OneHot": pieces.one_hot,
    **variables.LISTS,
}
"""The rule of each operation on tensors."""

VARIABLES: dict[str, Any] = {
    **dict.fromkeys(("Variable", "VariableV2"), variables.value),
    "VarHandleOp": variables.handle,
    "ReadVariableOp": variables.read,
    "ResourceGather": variables.gather,
    # A variable stays one on its way.
    "Identity": elementwise.same,
}
"""The rules of operations on variables themselves."""

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
    **dict.fromkeys(variables.WRITES, "it changes a variable; variables are frozen"),
}


def rule(op: str) -> Rule:
    """The rule of an operation on tensors.

    A `GraphImportError` if it is not supported; the message names some that are.
    """
    if op not in OPERATIONS:
        known = f"this op is not supported: {choices(op, OPERATIONS)}"
        raise GraphImportError(_ADVICE.get(op, known))
    return OPERATIONS[op]
