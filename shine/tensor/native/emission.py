"""From code to files: an emitter for each kind of file of a tensor program."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shine.formats.native.code import Files
from shine.formats.native.emission import OF_CODE, gathered
from shine.formats.native.linking import SUFFIXES
from shine.formats.native.python_module import summary
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.code import TensorCode
from shine.tensor.native.cpp_class import class_files
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
