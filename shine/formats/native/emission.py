"""The kinds of files that all native code can have, and a program in C that measures a formula."""

from __future__ import annotations

from shine.formats.native import linking
from shine.formats.native.code import Code, Emitter, Files
from shine.formats.native.headers import PROMISES, commented
from shine.formats.native.interface import Column, Interface

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


def cmake_files(job: Code) -> Files:
    """A file to include in a CMake project; it defines the library ``shine::name``."""
    text = _CMAKE.format(summary=_summary(job), triple=job.target.triple, name=job.name, object=job.object_name)
    return {f"{job.name}.cmake": text.encode()}


def pkgconfig_files(job: Code) -> Files:
    """A file for pkg-config."""
    text = _PKG_CONFIG.format(summary=_summary(job), name=job.name, object=job.object_name)
    return {f"{job.name}.pc": text.encode()}


def bench_files(job: Code, interface: Interface) -> Files:
    """A C program that measures the functions of many rows and prints the time of a row."""
    body = "\n".join(_bench_body(interface))
    return {f"{job.name}_bench.c": _BENCH.format(comment=commented(job, PROMISES), name=job.name, body=body).encode()}


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


OF_CODE: dict[str, Emitter] = {
    "object": lambda code: {code.object_name: code.object_code},
    "header": lambda code: code.header(),
    "ir": lambda code: {f"{code.name}.ll": code.optimized_ir.encode()},
    "asm": lambda code: {f"{code.name}.s": code.assembly.encode()},
    "shared": linking.shared_files,
    "cmake": cmake_files,
    "pkgconfig": pkgconfig_files,
}
"""Functions that make the files of each kind from any code."""
