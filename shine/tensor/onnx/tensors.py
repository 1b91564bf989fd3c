"""Constants of a model -> arrays: bytes in the model, lists of numbers, or bytes in a file beside it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.lang.forms.names import cut
from shine.tensor.form.types import widened

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
    22: "int4", 23: "float4e2m1",
}  # fmt: skip

_EXTERNAL = 1
MOST_ELEMENTS = 1 << 31


def dtype_name(number: int) -> str:
    """NumPy's name of an element type; half precision is read as float32.

    Raises
    ------
    GraphImportError
        If Shine has no such elements.
    """
    if number in _HALVES:
        return "float32"
    if number not in ELEMENTS:
        allowed = ", ".join(name for name, _ in ELEMENTS.values())
        raise GraphImportError(f"elements {_OTHERS.get(number, number)} are not supported; allowed are {allowed}")
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
    if tensor.data_location == _EXTERNAL:
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
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
        if offset < 0 or length != size:
            raise GraphImportError(f"the constant {tensor.name!r} needs {size} bytes, and its file entry has {length}")
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    except (OSError, ValueError, OverflowError) as error:
        raise GraphImportError(f"the constant {tensor.name!r} cannot be read from {told}: {error}") from None
    if len(data) != size:
        raise GraphImportError(f"the constant {tensor.name!r} needs {size} bytes of {told}, which has {len(data)}")
    return data
