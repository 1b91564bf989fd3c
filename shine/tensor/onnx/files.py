"""A file or bytes -> the message of a model; other files and too large ones are refused before they are parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import MAX_MEMORY, parsed_size
from shine.tensor.onnx.messages import messages

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
