"""Ahead of time: tensor programs as objects, headers, classes in C++ and modules, for any processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from shine.formats.native.code import Files, Options
from shine.formats.native.emission import OF_CODE, gathered, written
from shine.formats.native.linking import SUFFIXES, summary
from shine.tensor.loading import load
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.code import TensorCode
from shine.tensor.native.cpp_class import class_files
from shine.tensor.native.function import TensorFunction
from shine.tensor.native.headers import header_files
from shine.tensor.native.interface import Tensor
from shine.tensor.native.nvptx import ptx_files
from shine.tensor.native.wasm import wasm_files

_MODULE = '''\
"""{summary}

Written by Shine for {triple}. Needs NumPy, and {library} beside it.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


PARAMETERS = {parameters}
"""Label, type and shape of each argument."""

RESULTS = {results}
"""Label, type and shape of each result."""

_ARENA_BYTES = {arena}
_library = ctypes.CDLL(str(Path(__file__).resolve().with_name("{library}")))
_run = _library.{name}
_run.restype = None
_run.argtypes = [ctypes.c_void_p] * 3
_arenas = threading.local()


def {name}({signature}) -> Any:
    """{summary}

    Parameters
    ----------
{documented}

    Returns
    -------
    {returned}

    Raises
    ------
    TypeError
        If an array has elements of another type.
    ValueError
        If it has another shape.
    """
    arguments = [_array(*each) for each in zip(PARAMETERS, ({given}))]
    results = [np.empty(shape, dtype) for _, dtype, shape in RESULTS]
    _run(_table(arguments), _table(results), _arena())
    values = [array[()] for array in results]
    return values[0] if len(values) == 1 else tuple(values)


def _array(described: tuple[str, str, tuple[int, ...]], value: ArrayLike) -> NDArray[Any]:
    label, dtype, shape = described
    array = np.asarray(value)
    if hasattr(value, "dtype") and array.dtype != dtype:
        raise TypeError(f"argument {{label!r}} has elements of type {{array.dtype}}, not {{dtype}}")
    if array.shape != shape:
        raise ValueError(f"argument {{label!r}} has shape {{array.shape}}, not {{shape}}")
    return np.require(array, dtype, ["C", "A"])


def _table(arrays: list[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def _arena() -> int:
    """Address of this thread's scratch memory."""
    if not hasattr(_arenas, "memory"):
        _arenas.memory = np.empty(_ARENA_BYTES + {alignment}, np.uint8)
    return -(-_arenas.memory.ctypes.data // {alignment}) * {alignment}
'''

_TAKEN = frozenset({"annotations", "ctypes", "threading", "np"})
"""Names of the module that its function needs."""


def python_files(job: TensorCode) -> Files:
    """The Python module of a program; its shared library is another kind of file.

    Raises
    ------
    ExportError
        If the target has no shared libraries.
    """
    interface = job.interface
    names = [f"{each.name}_" if each.name in _TAKEN else each.name for each in interface.arguments]
    text = _MODULE.format(
        summary=summary(job),
        triple=job.target.triple,
        library=f"lib{job.name}{SUFFIXES.get(job.target.format, '')}",
        name=interface.name,
        parameters=_described(interface.arguments),
        results=_described(interface.results),
        arena=interface.arena_bytes,
        alignment=ALIGNMENT,
        signature=", ".join(f"{name}: ArrayLike" for name in names),
        documented="\n".join(f"    {n} : {_kind(each)}" for n, each in zip(names, interface.arguments, strict=True)),
        returned=", ".join(map(_kind, interface.results)),
        given="".join(f"{name}, " for name in names).rstrip(" "),
    )
    return {f"{job.name}.py": text.encode()}


def _described(tensors: tuple[Tensor, ...]) -> str:
    lines = "".join(f"    {(each.label, each.type.numpy.name, each.type.shape)!r},\n" for each in tensors)
    return f"(\n{lines})" if lines else "()"


def _kind(tensor: Tensor) -> str:
    return f"array of {tensor.type.numpy.name}, shape {tensor.type.shape}"


EMITTERS: dict[str, Callable[[TensorCode], Files]] = {
    "object": OF_CODE["object"],
    "header": header_files,
    "class": class_files,
    "ir": OF_CODE["ir"],
    "asm": OF_CODE["asm"],
    "shared": OF_CODE["shared"],
    "python": python_files,
    "cmake": OF_CODE["cmake"],
    "pkgconfig": OF_CODE["pkgconfig"],
    "wasm": wasm_files,
    "ptx": ptx_files,
}
"""Functions that make the files of each kind."""


def emitted(code: TensorCode, kinds: str | Iterable[str]) -> Files:
    """The files of some kinds, of the kinds that these need, and of the class in C++ if the code has one.

    Raises
    ------
    ValueError
        If there is no such kind, none is named, or no class in C++ can have the name.
    CompilationError
        If the target cannot have such a file, or nothing installed can make it.
    """
    files = gathered(code, kinds, EMITTERS)
    return {**files, **class_files(code)} if code.cpp_class else files


def compile(
    source: Any,
    name: str | None = None,
    emit: str | Iterable[str] = ("object", "header"),
    *,
    cpp_class: str = "",
    **options: Any,
) -> dict[str, bytes]:
    """Compile a tensor program ahead of time.

    Parameters
    ----------
    source : TensorFunction, or anything that `shine.tensor.load` takes
    name : str, optional
        Name of the function in C, and of the files; by default made of the file's or the module's.
    emit : str or iterable of str
        Kinds of files, some of object, header, class, ir, asm, shared, python, cmake, pkgconfig, wasm, ptx.
    cpp_class : str
        Write a class in C++ too, such as ``foo::bar::MatMulComp``.
    **options
        Those of `shine.aot.compile`, `target`, `cpu`, `features` and `opt_level`, and of `shine.tensor.load`.

    Returns
    -------
    dict of str to bytes
        Contents of the files by their names.

    Raises
    ------
    ValueError
        If there is no such kind, or C or C++ cannot have a name.
    GraphImportError, FormError
        If the source cannot be read.
    CompilationError, ExportError
        If the target does not exist or cannot have such a file, or a linker is missing.

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
    return emitted(function.code(name, cpp_class=cpp_class, **order), emit)


def build(
    source: Any,
    folder: str | Path,
    name: str | None = None,
    emit: str | Iterable[str] = ("object", "header"),
    **options: Any,
) -> list[Path]:
    """Compile a tensor program ahead of time into files of a folder.

    Parameters
    ----------
    source, name, emit, **options
        As for `compile`.
    folder : path-like
        Made if missing. Nothing is written unless all files can be made.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    OSError
        If a file cannot be written. Other errors are those of `compile`.
    """
    make = compile
    return written(make(source, name, emit, **options), folder)
