"""From code to files: an emitter for each kind of file of a tensor program."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shine.formats.native.code import Files
from shine.formats.native.emission import OF_CODE, gathered, kinds_of
from shine.tensor.native.code import TensorCode
from shine.tensor.native.cpp_class import class_files
from shine.tensor.native.headers import header_files
from shine.tensor.native.nvptx import ptx_files
from shine.tensor.native.python_module import python_files
from shine.tensor.native.wasm import wasm_files

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
    return gathered(code, [*kinds_of(kinds), *(["class"] if code.cpp_class else [])], EMITTERS)
