"""From a job to files: the kinds of files, and how each kind is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shine.aot import headers, linking, nvptx, projects, python_module, wasm
from shine.aot.code import OBJECT_SUFFIX, Files, Job

Emitter = Callable[[Job], Files]


EMITTERS: dict[str, Emitter] = {
    "object": lambda job: {f"{job.name}{OBJECT_SUFFIX.get(job.target.format, '.o')}": job.object_code},
    "header": headers.header_files,
    "ir": lambda job: {f"{job.name}.ll": job.optimized_ir.encode()},
    "asm": lambda job: {f"{job.name}.s": job.assembly.encode()},
    "shared": linking.shared_files,
    "python": python_module.python_files,
    "cmake": projects.cmake_files,
    "pkgconfig": projects.pkgconfig_files,
    "bench": projects.bench_files,
    "wasm": wasm.wasm_files,
    "wasm-scalar": wasm.scalar_files,
    "ptx": nvptx.ptx_files,
}
"""Functions that make the files of each kind for a job."""

NEEDS: dict[str, tuple[str, ...]] = {
    "cmake": ("object", "header"),
    "pkgconfig": ("object", "header"),
    "bench": ("object", "header"),
    "python": ("shared",),
}
"""Kinds that are useless alone, and the kinds that are made along with them."""


def emitted(job: Job, kinds: Iterable[str]) -> Files:
    """The files of some kinds, and of the kinds that these need.

    Raises
    ------
    ValueError
        If there is no such kind.
    CompilationError
        If the target cannot have such a file, or nothing installed can make it.
    """
    chosen: list[str] = []
    for kind in kinds:
        if kind not in EMITTERS:
            raise ValueError(f"cannot emit {kind!r}; use some of {', '.join(EMITTERS)}")
        chosen += [kind, *NEEDS.get(kind, ())]
    files: Files = {}
    for kind in dict.fromkeys(chosen):
        files.update(EMITTERS[kind](job))
    return files
