"""From a job to files: the kinds of files, and how each kind is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from llvmlite import ir

from shine.base.files import write_bytes
from shine.compiler.codegen.native.row_by_row import emit_kernel
from shine.formats.native import headers, linking, projects, python_module, wasm
from shine.formats.native.code import Code, Files, Job, TextCode
from shine.formats.native.targets import Target, target_of
from shine.lang.forms.names import value_text

GPU_TRIPLE = "nvptx64-nvidia-cuda"
"""The triple of PTX if a job's target is of another kind."""


def ptx_files(job: Job) -> Files:
    """The PTX of a job: ``NAME`` and ``NAME_kernel`` (see `shine.compiler.codegen.native.row_by_row.emit_kernel`).

    A job for a target of another kind is compiled for the least processor of `GPU_TRIPLE`.

    Raises
    ------
    CompilationError
        If the program has constant arrays.
    """
    job.check()
    module = ir.Module(name=job.name)
    emit_kernel(module, job.program, job.name)
    made = TextCode(job.order.on(gpu_target(job.target)), job.description, str(module))
    return {f"{job.name}.ptx": made.assembly.encode()}


def gpu_target(wanted: Target) -> Target:
    """The target of PTX: the one that is wanted, if that is a GPU, else the least of `GPU_TRIPLE`."""
    return wanted if wanted.format == "ptx" else target_of(GPU_TRIPLE)


Emitter = Callable[[Job], Files]

OF_CODE: dict[str, Callable[[Code], Files]] = {
    "object": lambda job: {job.object_name: job.object_code},
    "ir": lambda job: {f"{job.name}.ll": job.optimized_ir.encode()},
    "asm": lambda job: {f"{job.name}.s": job.assembly.encode()},
    "shared": linking.shared_files,
    "cmake": projects.cmake_files,
    "pkgconfig": projects.pkgconfig_files,
}
"""Functions that make the files of each kind from any code."""

EMITTERS: dict[str, Emitter] = {
    "object": OF_CODE["object"],
    "header": headers.header_files,
    "ir": OF_CODE["ir"],
    "asm": OF_CODE["asm"],
    "shared": OF_CODE["shared"],
    "python": python_module.python_files,
    "cmake": OF_CODE["cmake"],
    "pkgconfig": OF_CODE["pkgconfig"],
    "bench": projects.bench_files,
    "wasm": wasm.wasm_files,
    "wasm-scalar": wasm.scalar_files,
    "ptx": ptx_files,
}
"""Functions that make the files of each kind for a job."""

NEEDS: dict[str, tuple[str, ...]] = {
    "cmake": ("object", "header"),
    "pkgconfig": ("object", "header"),
    "bench": ("object", "header"),
    "python": ("shared",),
}
"""Kinds that are useless alone, and the kinds that are made along with them."""

T = TypeVar("T", bound=Code)


def emitted(job: Job, kinds: str | Iterable[str]) -> Files:
    """The files of some kinds, and of the kinds that these need; the errors are those of `gathered`."""
    return gathered(job, kinds, EMITTERS)


def gathered(code: T, kinds: str | Iterable[str], emitters: Mapping[str, Callable[[T], Files]]) -> Files:
    """The files of some kinds, and of the kinds that these need.

    Parameters
    ----------
    code : Code
    kinds : str or iterable of str
    emitters : mapping
        Functions that make the files of each kind.

    Raises
    ------
    ValueError
        If there is no such kind, or none is named.
    CompilationError
        If the target cannot have such a file, or nothing installed can make it.
    """
    chosen: list[str] = []
    for kind in kinds if isinstance(kinds, Iterable) and not isinstance(kinds, str) else [kinds]:
        if not isinstance(kind, str) or kind not in emitters:
            raise ValueError(f"cannot emit {value_text(kind)}; use some of {', '.join(emitters)}")
        chosen += [kind, *NEEDS.get(kind, ())]
    if not chosen:
        raise ValueError(f"there is nothing to emit; name some of {', '.join(emitters)}")
    files: Files = {}
    for kind in dict.fromkeys(chosen):
        files.update(emitters[kind](code))
    return files


def written(files: Files, folder: str | Path) -> list[Path]:
    """Paths of files that are written to a folder, which is made if it is missing.

    Raises
    ------
    TypeError
        If the folder is no path.
    OSError
        If a file cannot be written.
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder={value_text(folder)} is no path; give the path of a folder")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_bytes(place / file, content)
    return [place / file for file in files]
