"""From a job to files: the kinds of files, and how each kind is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from llvmlite import ir

from shine.base.files import write_bytes
from shine.compiler.codegen.native.row_by_row import emit_kernel
from shine.formats.native import headers, linking, wasm
from shine.formats.native.code import Code, Files, Job, TextCode
from shine.formats.native.headers import commented
from shine.formats.native.interface import Column, Interface
from shine.formats.native.targets import Target, target_of
from shine.lang.forms.names import value_text

_CMAKE = """\
# {summary}
#
# Written by Shine for {triple}. In a project:
#
#   include(path/to/{name}.cmake)
#   target_link_libraries(your_target PRIVATE shine::{name})

if(NOT TARGET shine::{name})
  add_library(shine::{name} OBJECT IMPORTED)
  set_target_properties(shine::{name} PROPERTIES
    IMPORTED_OBJECTS "${{CMAKE_CURRENT_LIST_DIR}}/{object}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""

_PKG_CONFIG = """\
# Found where PKG_CONFIG_PATH has its folder; the object file and the header are beside it.
Name: {name}
Description: {summary}
Version: 1.0.0
Cflags: -I${{pcfiledir}}
Libs: ${{pcfiledir}}/{object}
"""

_BENCH = """\
/*
{comment}
 *
 * Measures it over rows of random numbers: {name}_bench [ROWS]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "{name}.h"

static uint64_t state = 88172645463325252u;

/* A number from 1 to 2, by xorshift. */
static double number(void)
{{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return 1.0 + (double)(state >> 11) / 9007199254740992.0;
}}

static void *room(size_t bytes)
{{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {{
        fputs("out of memory\\n", stderr);
        exit(1);
    }}
    return memory;
}}

int main(int count, char **words)
{{
    const size_t n_rows = count > 1 ? (size_t)strtoul(words[1], NULL, 10) : 100000;
    size_t i;
    if (n_rows == 0) {{
        fputs("usage: {name}_bench [ROWS]\\n", stderr);
        return 2;
    }}
{body}
    return 0;
}}
"""

_MEASURED = """\
    {{
        clock_t start = clock(), now;
        double runs = 0.0;
        do {{
{call}
            runs += 1.0;
            now = clock();
        }} while (now - start < CLOCKS_PER_SEC / 4);
        printf("{what}: %.3f ns a row (%lu rows, processor time)\\n",
               (double)(now - start) / CLOCKS_PER_SEC / runs / (double)n_rows * 1e9, (unsigned long)n_rows);
    }}"""

GPU_TRIPLE = "nvptx64-nvidia-cuda"
"""The triple of PTX if a job's target is of another kind."""


def cmake_files(job: Code) -> Files:
    """A file to include in a CMake project; it defines the library ``shine::name``."""
    text = _CMAKE.format(summary=_summary(job), triple=job.target.triple, name=job.name, object=job.object_name)
    return {f"{job.name}.cmake": text.encode()}


def pkgconfig_files(job: Code) -> Files:
    """A file for pkg-config."""
    text = _PKG_CONFIG.format(summary=_summary(job), name=job.name, object=job.object_name)
    return {f"{job.name}.pc": text.encode()}


def bench_files(job: Job) -> Files:
    """A C program that measures the functions of many rows and prints the time of a row."""
    body = "\n".join(_bench_body(job.interface))
    return {f"{job.name}_bench.c": _BENCH.format(comment=commented(job), name=job.name, body=body).encode()}


def _bench_body(interface: Interface) -> list[str]:
    columns = (*interface.parameters, *interface.outputs)
    lines = [f"    {column.c_type} *{_array(column)} = room(n_rows * sizeof *{_array(column)});" for column in columns]
    kind = interface.parameters[0].c_type if interface.matrix and interface.parameters else None
    count = len(interface.parameters)
    if kind:
        lines.append(f"    {kind} *matrix = room(n_rows * {count} * sizeof *matrix);")
    lines.append("    for (i = 0; i < n_rows; i++) {")
    for position, column in enumerate(interface.parameters):
        scale = "" if column.dtype.startswith("float") else "number() > 1.5" if column.dtype == "bool" else "100.0 * "
        value = scale if column.dtype == "bool" else f"{scale}number()"
        lines.append(f"        {_array(column)}[i] = ({column.c_type})({value});")
        if kind:
            lines.append(f"        matrix[i * {count} + {position}] = {_array(column)}[i];")
    lines += ["    }", _measured("columns", _columns_call(interface))]
    if kind:
        out = _array(interface.outputs[0])
        call = f"            {interface.name}_batch(matrix, n_rows, {count}, 1, {out});"
        lines.append(_measured("row-major matrix", call))
    names = [*(["matrix"] if kind else []), *(_array(column) for column in columns)]
    return [*lines, *(f"    free({name});" for name in names)]


def _measured(what: str, call: str) -> str:
    return _MEASURED.format(what=what, call=call)


def _columns_call(interface: Interface) -> str:
    arguments = ["n_rows", *(f"{_array(column)}, 1" for column in (*interface.parameters, *interface.outputs))]
    return f"            {interface.name}_columns({', '.join(arguments)});"


def _array(column: Column) -> str:
    return f"array_{column.name}"


def _summary(job: Code) -> str:
    """The formula in one line without characters that CMake or pkg-config interpret."""
    line = " ".join(ascii(job.description)[1:-1].replace("\\n", " ").split())
    return "".join("_" if letter in "#$\\" else letter for letter in line)


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
    "cmake": cmake_files,
    "pkgconfig": pkgconfig_files,
}
"""Functions that make the files of each kind from any code."""

EMITTERS: dict[str, Emitter] = {
    "object": OF_CODE["object"],
    "header": headers.header_files,
    "ir": OF_CODE["ir"],
    "asm": OF_CODE["asm"],
    "shared": OF_CODE["shared"],
    "python": linking.python_files,
    "cmake": OF_CODE["cmake"],
    "pkgconfig": OF_CODE["pkgconfig"],
    "bench": bench_files,
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
