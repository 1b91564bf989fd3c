"""Tensor programs from files and objects of others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError, placed, reason
from shine.lang.forms.names import c_identifier, listed, shown, value_text
from shine.tensor.form.module import Module
from shine.tensor.form.reading import module_of
from shine.tensor.native.function import TensorFunction

READERS: dict[str, tuple[str, str]] = {
    "graphdef": ("shine.tensor.graphdef", "load_module"),
    "onnx": ("shine.tensor.onnx", "load_onnx"),
    "torch": ("shine.tensor.torch", "from_exported"),
    "text": ("shine.tensor.loading", "load_text"),
}
"""Module and name of the function that reads each format."""

ENDINGS: dict[str, str] = {".pb": "graphdef", ".pbtxt": "graphdef", ".onnx": "onnx"}
"""Format of files by their endings."""

OF_TORCH = (".pt2", ".pt", ".pth")
"""Endings of PyTorch's files."""

_TEXT = "module @"
"""The beginning of a module as text."""


def load(
    source: Any,
    function: str | None = None,
    *,
    format: str | None = None,
    opt_level: str | int = "O2",
    threads: int | None = 1,
    **reading: Any,
) -> TensorFunction:
    """A tensor program as a function of arrays.

    Parameters
    ----------
    source : path-like, bytes, str, Module, or torch.export.ExportedProgram
        A file of TensorFlow (``.pb``, ``.pbtxt``) or ONNX (``.onnx``), or with a module as text; the bytes of one; a
        module as text; a module; a program of PyTorch.
    function : str, optional
        One of the module's functions; by default ``main``, or the first one.
    format : {"graphdef", "onnx", "torch", "text"}, optional
        Format of bytes, or of a file with another ending.
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline.
    threads : int or None
        Threads that share the large loops of a call; all processors if None. Results do not depend on it.
    **reading
        Options of the format. TensorFlow: `config`, a tf2xla ``Config``, or `feeds` and `fetches`; `shapes`,
        `checkpoint` (see `shine.tensor.graphdef.load_module`). ONNX: `shapes`, `fetches` (see
        `shine.tensor.onnx.load_onnx`). PyTorch: `fetches` (see `shine.tensor.torch.from_exported`).

    Returns
    -------
    TensorFunction

    Raises
    ------
    GraphImportError
        If the file cannot be read, or has what is not supported; the message names the node.
    FormError
        If a module is not valid, or has no such function.
    TypeError
        If the source is none of these, or the format has no such option.

    Examples
    --------
    >>> double = load('''module @example
    ... func @double: (<3 x f32>) -> <3 x f32> {
    ... 'entry(%x: <3 x f32>):
    ...     %y = add %x: <3 x f32>, %x: <3 x f32>
    ...     return %y: <3 x f32>
    ... }''')
    >>> double([1, 2, 3])
    array([2., 4., 6.], dtype=float32)
    """
    if isinstance(source, Module):
        _check_options("a module", (), reading)
        return TensorFunction(source, function, opt_level=opt_level, threads=threads)
    if format is None and isinstance(source, str | bytes) and not source.strip():
        raise GraphImportError("the source is empty; give a file's path or bytes, or a module as text")
    path = None if _is_text(source) or not isinstance(source, str | os.PathLike) else Path(source)
    kind = format_of(source if path is None else path) if format is None else _known(format)
    read = getattr(import_module(READERS[kind][0]), READERS[kind][1])
    _check_options(f"the format {kind}", tuple(signature(read).parameters)[1:], reading)
    module = read(source if path is None else path, **reading)
    name, description = ("", "") if path is None else (c_identifier(path.stem), path.name)
    return TensorFunction(module, function, name=name, description=description, opt_level=opt_level, threads=threads)


def format_of(source: Any) -> str:
    """The format of a source, one of `READERS`: by the ending of a file, or by how the content begins.

    Raises
    ------
    GraphImportError
        If it cannot be read, or says nothing.
    TypeError
        If it is no path, text, bytes or ExportedProgram.
    """
    if isinstance(source, Path) and source.suffix.lower() in ENDINGS:
        return ENDINGS[source.suffix.lower()]
    if isinstance(source, Path) and source.suffix.lower() in OF_TORCH:
        raise GraphImportError(
            f"{source}: PyTorch's files hold pickled objects, which can run any code, so Shine opens none; in Python, "
            "call shine.tensor.load(torch.export.load(path))"
        )
    if type(source).__module__.startswith("torch.export"):
        return "torch"
    if not isinstance(source, Path | str | bytes):
        raise TypeError(
            f"{value_text(source)} is no tensor program; give a file, bytes, a module, its text, or an ExportedProgram"
        )
    if _is_text(_content(source)):
        return "text"
    what = "bytes do not say what they are" if isinstance(source, bytes) else f"{source}: its ending says nothing"
    raise GraphImportError(f"{what}; name the format, one of {', '.join(READERS)}")


def load_text(source: str | bytes | Path) -> Module:
    """A module from its text, or a file with it.

    Raises
    ------
    FormError
        If it is not valid; the message has line and column.
    GraphImportError
        If the file cannot be read, or is no text in UTF-8.
    """
    content = _content(source)
    try:
        return module_of(content if isinstance(content, str) else content.decode())
    except UnicodeDecodeError as error:
        raise GraphImportError(f"the text of a module is UTF-8, but byte {error.start} is not") from None


def _content(source: str | bytes | Path) -> str | bytes:
    if not isinstance(source, Path):
        return source
    with placed(f"{source}: cannot be read", OSError, kind=GraphImportError, told=reason):
        return source.read_bytes()


def _is_text(source: Any) -> bool:
    """Whether a text or bytes begin as the text of a module."""
    if isinstance(source, str):
        return source.lstrip().startswith(_TEXT)
    return isinstance(source, bytes) and source.lstrip().startswith(_TEXT.encode())


def _known(format: str) -> str:
    if not isinstance(format, str) or format not in READERS:
        raise ValueError(f"unknown format {value_text(format)}; use one of {', '.join(READERS)}")
    return format


def _check_options(what: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"{what} has no option {shown(name)}; it has {listed(known) or 'none'}")
