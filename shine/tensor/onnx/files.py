"""ONNX files: their messages and tensors, and reading them."""

from __future__ import annotations

import math
import os
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError, placed
from shine.base.typing import AnyArray
from shine.formats.read.protobuf import MAX_MEMORY, Schema, message_classes, parsed_size
from shine.lang.forms.names import cut
from shine.tensor.form.types import widened

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
    return message_classes(Schema("shine.onnx", _MESSAGES), "an ONNX model")


MOST_BYTES = 2 << 30
"""Largest model, which is protobuf's own limit."""


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[Any, Path | None]:
    """The model in a file, and the folder that its external data lie in.

    A `GraphImportError` if it cannot be read, or is no ONNX model.
    """
    content, folder = (source, None) if isinstance(source, bytes) else (_content(source), Path(source).parent)
    kind = messages()["ModelProto"]
    if parsed_size(content, kind.DESCRIPTOR) > max(MAX_MEMORY, 3 * len(content)):
        raise GraphImportError("the model has so many small fields that it would take too much memory to parse")
    with damaged("it is no ONNX model", Exception):  # protobuf has an error of its own, which is not imported here
        model = kind.FromString(content)
    if not model.HasField("graph") or not model.opset_import:
        raise GraphImportError("it is no ONNX model: it has no graph, or names no operator set")
    return model, folder


def damaged(what: str, *errors: type[Exception]) -> AbstractContextManager[None]:
    """Raise a `GraphImportError` that says what is wrong, for errors that only a damaged file leads to."""
    return placed(what, *errors, kind=GraphImportError, told=lambda error: str(error)[:100])


def _content(path: str | os.PathLike[str]) -> bytes:
    with placed("it cannot be read", OSError, ValueError, kind=GraphImportError):
        if not os.path.isfile(path):
            raise GraphImportError("it is no file" if os.path.exists(path) else "there is no such file")
        if os.path.getsize(path) > MOST_BYTES:
            raise GraphImportError(f"it has {os.path.getsize(path)} bytes; at most {MOST_BYTES} are read")
        return Path(path).read_bytes()


ELEMENTS: dict[int, tuple[str, str]] = {
    1: ("float32", "float_data"),
    2: ("uint8", "int32_data"),
    3: ("int8", "int32_data"),
    5: ("int16", "int32_data"),
    6: ("int32", "int32_data"),
    7: ("int64", "int64_data"),
    9: ("bool", "int32_data"),
    11: ("float64", "double_data"),
}
"""NumPy's name of each element type that Shine has, by its number in onnx.proto, and where its numbers stand."""

_HALVES = {10: "float16", 16: "bfloat16"}
_OTHERS = {
    0: "undefined", 4: "uint16", 8: "string", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4",
    22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip

MOST_ELEMENTS = 1 << 31


def dtype_name(number: int) -> str:
    """NumPy's name of an element type; half precision is read as float32.

    A `GraphImportError` if Shine has no such elements.
    """
    if number in _HALVES:
        return "float32"
    if number not in ELEMENTS:
        allowed = ", ".join(name for name, _ in ELEMENTS.values())
        raise GraphImportError(
            f"elements {_OTHERS.get(number, f'of type {number}')} are not supported; allowed are {allowed}"
        )
    return ELEMENTS[number][0]


def array_of(tensor: Any, folder: Path | None) -> AnyArray:
    """The elements of a constant.

    Parameters
    ----------
    tensor : TensorProto
    folder : Path, optional
        Folder of the files of external data.

    Raises
    ------
    GraphImportError
        If it has other elements, or not as many as its shape says, or its file cannot be read.
    """
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise GraphImportError(f"the shape {list(shape)} of the constant {tensor.name!r} is negative or too large")
    name = dtype_name(tensor.data_type)
    half = _HALVES.get(tensor.data_type)
    stored = np.dtype(name if half is None else np.uint16)
    if tensor.data_location == 1:  # in another file
        data = _external(tensor, folder, math.prod(shape) * stored.itemsize)
        found = _from_bytes(data, stored)
    elif tensor.HasField("raw_data"):
        found = _from_bytes(tensor.raw_data, stored)
    else:
        field = "int32_data" if half else ELEMENTS[tensor.data_type][1]
        numbers = np.array(getattr(tensor, field), np.float64 if "float" in field or "double" in field else np.int64)
        found = numbers.astype(stored)
    if found.size != math.prod(shape):
        raise GraphImportError(
            f"the constant {tensor.name!r} has {found.size} elements, and its shape {list(shape)} needs "
            f"{math.prod(shape)}"
        )
    if half:
        found = widened(found.astype(np.uint16), half)
    return found.reshape(shape).astype(name)


def _from_bytes(data: bytes, dtype: np.dtype[Any]) -> AnyArray:
    if len(data) % dtype.itemsize:
        raise GraphImportError(f"a constant of {dtype} has {len(data)} bytes, and not whole elements")
    found = np.frombuffer(data, dtype.newbyteorder("<"))
    return found != 0 if dtype.kind == "b" else found


def _external(tensor: Any, folder: Path | None, size: int) -> bytes:
    """The bytes of a constant in a file of the model's folder; the folder must not be left."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name = entries.get("location", "")
    told = cut(repr(name))
    if folder is None:
        raise GraphImportError(f"the constant {tensor.name!r} lies in the file {told}; read the model from its path")
    try:
        path = (folder / name).resolve()
        is_inside = bool(name) and path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError, RuntimeError):  # NUL, too long a name, or links in a circle
        is_inside = False
    if not is_inside:
        raise GraphImportError(
            f"the constant {tensor.name!r} lies in {told}, and there is no such file beside the model"
        )
    with placed(
        f"the constant {tensor.name!r} cannot be read from {told}",
        OSError,
        ValueError,
        OverflowError,
        kind=GraphImportError,
    ):
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
        if offset < 0 or length != size:
            raise GraphImportError(f"the constant {tensor.name!r} needs {size} bytes, and its file entry has {length}")
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    if len(data) != size:
        raise GraphImportError(f"the constant {tensor.name!r} needs {size} bytes of {told}, which has {len(data)}")
    return data
