"""File or bytes -> message; refuses other files and too large ones before it parses them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import MAX_MEMORY, messages, parsed_size

MAX_BYTES = 128 << 20
"""Largest graph that is read, in bytes."""

MAX_TEXT = 32 << 20
"""Largest graph as text, in bytes: parsing text takes far more time and memory."""

MAX_NESTING = 60
"""Deepest nesting of messages in text: protobuf's parser recurses, and real graphs nest far less."""

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")

# Strings and comments, in which brackets do not count, and brackets.
_TOKENS = re.compile(rb"""\"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?|\#[^\n]*|[{}<>\[\]]""")

_OTHER_MODELS = re.compile(r"\s*(saved_model_schema_version|meta_graphs|meta_info_def|graph_def)\b")

_FREEZE = (
    "freeze it first, with convert_variables_to_constants_v2 of tensorflow.python.framework.convert_to_constants, "
    "and write its graph with tf.io.write_graph"
)

Source = str | os.PathLike[str] | bytes
"""The path of a graph's file, or the content."""


def read_message(source: Source, kind: str = "GraphDef") -> Any:
    """The message in a file, as text or binary; a `GraphImportError` if it is no such message, or too large.

    Parameters
    ----------
    source : str, path or bytes
    kind : str
        GraphDef, or Config of the compiler.
    """
    content = source if isinstance(source, bytes) else content_of(source)
    if not content:
        raise GraphImportError(f"it is empty; a {kind} as text or binary is expected")
    if len(content) > MAX_BYTES:
        raise GraphImportError(_too_large(len(content), MAX_BYTES))
    # First bytes, which tell binary from text: a binary graph has lengths and field numbers below 32 among them.
    return _from_binary(content, kind) if _BINARY.search(content[:4096]) else _from_text(content, kind)


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file of at most `MAX_BYTES`.

    A `GraphImportError` if it cannot be read, or is no regular file, or too large.
    """
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            if (Path(path) / "saved_model.pb").exists():
                raise GraphImportError(f"it is a SavedModel, with its variables in other files; {_FREEZE}")
            raise GraphImportError("it is a folder; give the path of a GraphDef file in it")
        if not stat.S_ISREG(status.st_mode):
            raise GraphImportError("it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise GraphImportError(_too_large(status.st_size, MAX_BYTES))
        with open(path, "rb") as file:
            # One byte more, because the file may have grown since.
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise GraphImportError(f"it cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise GraphImportError(f"it is not the path of a file: {error}") from None


def _too_large(size: int, limit: int, kind: str = "a graph") -> str:
    return f"it has {size} bytes; {kind} of at most {limit} is read"


def _from_binary(content: bytes, kind: str) -> Any:
    formats = messages()
    made = getattr(formats, kind)
    weight = parsed_size(content, made.DESCRIPTOR)
    if weight > MAX_MEMORY:
        raise GraphImportError(
            f"it holds so many fields that parsing it would take more than {MAX_MEMORY} bytes of memory"
        )
    try:
        message = made.FromString(content)
    except formats.DecodeError:
        message = None
    if kind == "GraphDef" and (message is None or not message.node):
        _reject_model(content)
    if message is None:
        raise GraphImportError(
            f"it is not a {kind}, neither as text nor as a protobuf message; it may be truncated, or another file"
        )
    return message


def _reject_model(content: bytes) -> None:
    """Raise an error with advice if the content is another model file of TensorFlow's."""
    formats = messages()
    for name, kind in (("SavedModel", formats.SavedModel), ("MetaGraphDef", formats.MetaGraphDef)):
        if parsed_size(content, kind.DESCRIPTOR) > MAX_MEMORY:
            return
        try:
            message = kind.FromString(content)
        except formats.DecodeError:
            continue
        graphs = [message] if name == "MetaGraphDef" else message.meta_graphs
        if any(each.graph_def.node for each in graphs):
            raise GraphImportError(f"it is a {name}, not a GraphDef; {_FREEZE}")


def _from_text(content: bytes, kind: str) -> Any:
    if len(content) > MAX_TEXT:
        raise GraphImportError(_too_large(len(content), MAX_TEXT, "text") + "; write it in the binary form")
    _check_text(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GraphImportError(f"it is neither a binary {kind} nor UTF-8 text: {error.reason}") from None
    formats = messages()
    if _OTHER_MODELS.match(text):
        raise GraphImportError(f"it is a SavedModel or MetaGraphDef, not a {kind}; {_FREEZE}")
    message = getattr(formats, kind)()
    # Shine reads some fields of a graph, but all of a Config, which people write.
    unknown = kind == "GraphDef"
    try:
        formats.text_format.Parse(text, message, allow_unknown_field=unknown, descriptor_pool=formats.pool)
    except (formats.text_format.ParseError, ValueError) as error:
        raise GraphImportError(f"it is not a {kind} as text: {str(error)[:200]}") from None
    return message


def _check_text(content: bytes) -> None:
    """Refuse text that protobuf would need too much memory or stack to parse."""
    opened, lines = content.count(b"{") + content.count(b"<"), content.count(b"\n")
    # Bytes of memory that parsing text takes for each message, line, and byte of text; measured
    if opened * 150 + lines * 64 + len(content) * 6 > MAX_MEMORY:
        raise GraphImportError(
            f"it has {opened} messages on {lines} lines, and parsing them would take more than {MAX_MEMORY} bytes of "
            "memory; write it in the binary form"
        )
    depth = 0
    for match in _TOKENS.finditer(content):
        token = match.group()[:1]
        if token in b"{<[":
            depth += 1
            if depth > MAX_NESTING:
                line = content.count(b"\n", 0, match.start()) + 1
                raise GraphImportError(f"line {line}: messages nest more than {MAX_NESTING} deep")
        elif token in b"}>]":
            depth -= 1
