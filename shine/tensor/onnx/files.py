"""ONNX files: their messages, and reading them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import MAX_MEMORY, Schema, message_classes, parsed_size

_MESSAGES = {
    "ModelProto": (
        "1 ir_version int64, 7 graph GraphProto, 8 opset_import OperatorSetIdProto*, 25 functions FunctionProto*"
    ),
    "OperatorSetIdProto": "1 domain string, 2 version int64",
    "GraphProto": (
        "1 node NodeProto*, 2 name string, 5 initializer TensorProto*, 11 input ValueInfoProto*, "
        "12 output ValueInfoProto*, 15 sparse_initializer SparseTensorProto*"
    ),
    "SparseTensorProto": "1 values TensorProto",
    "NodeProto": (
        "1 input string*, 2 output string*, 3 name string, 4 op_type string, 5 attribute AttributeProto*, "
        "7 domain string"
    ),
    "AttributeProto": (
        "1 name string, 2 f float, 3 i int64, 4 s bytes, 5 t TensorProto, 6 g GraphProto, 7 floats float*, "
        "8 ints int64*, 9 strings bytes*, 20 type int32, 21 ref_attr_name string"
    ),
    "TensorProto": (
        "1 dims int64*, 2 data_type int32, 4 float_data float*, 5 int32_data int32*, 7 int64_data int64*, "
        "8 name string, 9 raw_data bytes, 10 double_data double*, 11 uint64_data uint64*, 13 external_data Entry*, "
        "14 data_location int32"
    ),
    "Entry": "1 key string, 2 value string",
    "ValueInfoProto": "1 name string, 2 type TypeProto",
    "TypeProto": "1 tensor_type TensorTypeProto",
    "TensorTypeProto": "1 elem_type int32, 2 shape TensorShapeProto",
    "TensorShapeProto": "1 dim Dimension*",
    "Dimension": "1 dim_value int64, 2 dim_param string",
    "FunctionProto": (
        "1 name string, 4 input string*, 5 output string*, 6 attribute string*, 7 node NodeProto*, "
        "9 opset_import OperatorSetIdProto*, 10 domain string, 11 attribute_proto AttributeProto*"
    ),
}


@cache
def messages() -> dict[str, Any]:
    """The message classes by name."""
    return message_classes(Schema("shine.onnx", _MESSAGES), "an ONNX model", "tensor")


MOST_BYTES = 2 << 30
"""Largest model, which is protobuf's own limit."""


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[Any, Path | None]:
    """The model in a file, and the folder that its external data lie in.

    Raises
    ------
    GraphImportError
        If it cannot be read, or is no ONNX model.
    """
    content, folder = (source, None) if isinstance(source, bytes) else (_content(source), Path(source).parent)
    kind = messages()["ModelProto"]
    if parsed_size(content, kind.DESCRIPTOR) > max(MAX_MEMORY, 3 * len(content)):
        raise GraphImportError("the model has so many small fields that it would take too much memory to parse")
    try:
        model = kind.FromString(content)
    except Exception as error:
        # Protobuf has an error of its own, which is not imported here.
        raise GraphImportError(f"it is no ONNX model: {str(error)[:100]}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise GraphImportError("it is no ONNX model: it has no graph, or names no operator set")
    return model, folder


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        if not os.path.isfile(path):
            raise GraphImportError("it is no file" if os.path.exists(path) else "there is no such file")
        if os.path.getsize(path) > MOST_BYTES:
            raise GraphImportError(f"it has {os.path.getsize(path)} bytes; at most {MOST_BYTES} are read")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise GraphImportError(f"it cannot be read: {error}") from None
