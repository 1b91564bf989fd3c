"""Ahead of time: tensor programs as objects, headers, classes in C++ and modules, for any processor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shine.formats.native.code import Options, written
from shine.tensor.loading import load
from shine.tensor.native.function import TensorFunction


def compile(
    source: Any,
    name: str | None = None,
    emit: str | Iterable[str] = ("object", "header"),
    *,
    cpp_class: str = "",
    **options: Any,
) -> dict[str, bytes]:
    """Compile a tensor program ahead of time; `shine.aot.compile` of what `shine.tensor.load` makes of a source.

    Parameters
    ----------
    source : TensorFunction, or anything that `shine.tensor.load` takes
    name, emit, cpp_class
        As for `shine.aot.compile`; the name is by default made of the file's or the module's.
    **options
        Those of `shine.aot.compile`, and of `shine.tensor.load`.

    Returns
    -------
    dict of str to bytes
        Contents of the files by their names.

    Raises
    ------
    GraphImportError, FormError
        If the source cannot be read. Other errors are those of `shine.aot.compile`.

    Examples
    --------
    >>> text = '''module @example
    ... func @double: (<3 x f32>) -> <3 x f32> {
    ... 'entry(%x: <3 x f32>):
    ...     %y = add %x: <3 x f32>, %x: <3 x f32>
    ...     return %y: <3 x f32>
    ... }'''
    >>> print(*compile(text, "twice", target="aarch64-linux-gnu", cpp_class="Twice"))
    twice.o twice.h twice.hpp
    """
    order: Any = {key: options.pop(key) for key in Options.__annotations__ if key in options}
    if isinstance(source, TensorFunction) and options:
        raise TypeError(f"a function is read already; leave out {', '.join(options)}")
    function = source if isinstance(source, TensorFunction) else load(source, **options)
    return function.code(name, cpp_class=cpp_class, **order).files(emit)


def build(
    source: Any,
    folder: str | Path,
    name: str | None = None,
    emit: str | Iterable[str] = ("object", "header"),
    **options: Any,
) -> list[Path]:
    """Compile a tensor program ahead of time into files of a folder; the arguments and errors are those of `compile`.

    `folder` is made if missing. Nothing is written unless all files can be made; their paths are returned.
    """
    make = compile
    return written(make(source, name, emit, **options), folder)
