"""Headers of native code for C and C++, and the declarations of a formula's functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from shine.formats.native.code import Code, Files
from shine.formats.native.interface import C_TYPES, Column, Interface
from shine.formats.write.c import commented as lines_of_comment
from shine.formats.write.c import for_comment, header_text, in_comment, linked

_INTEGERS = re.compile(r"\bu?int\w+_t\b")
"""Types of ``stdint.h``, which C89 does not have."""

_RESTRICT = """\
#if defined(__cplusplus)
#define {macro} __restrict
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
#define {macro} restrict
#else
#define {macro}
#endif

{declarations}
#undef {macro}
"""

_COUNTS = """\
/* Number of arguments, and number of results. */
enum {{ {name}_n_features = {features}, {name}_n_outputs = {outputs} }};
"""

_STATUS = """\
/* The functions return 0, or this if an integer division had a zero divisor in any row. */
enum {{ {name}_division_by_zero = 1 }};
"""

_ONE_ROW = """\
/*
 * One row.
{notes} */
{declaration}
"""

_MATRIX = """\
/*
 * n_rows rows of a matrix: y[0] to y[n_rows - 1] are written.
 *
 * Feature j of row i is X[i * row_stride + j * column_stride]; strides count numbers, not bytes, and may be negative:
 *
 *   rows one after the other (row-major):           row_stride = {count}, column_stride = 1
 *   columns one after the other (column-major):     row_stride = 1, column_stride = n_rows
 *
 * Column-major is faster. y must not overlap X, which is never read if there are no features or no rows.{notes}
 */
{declaration}
"""

_COLUMNS = """\
/*
 * n_rows rows of separate columns, each with a stride that counts its own numbers, not bytes: 1 if they lie one after
 * the other, which is fastest; 0 if all rows have the same number; negative strides run backwards.
 *
 * A result must not overlap any argument or other result.{notes}
 */
{declaration}
"""

_FAILURE = """ A row that divides by zero gets an arbitrary
 * number; all other rows are still right."""


PROMISES = """\
Numbers are those of IEEE 754, with NaN and infinities; integers wrap, / truncates, // and % round down. The functions
keep no state, use no memory but the stack, and may be called by many threads at once."""


_ON_A_GPU = """\
/*
 * The kernel computes many rows, on any grid. Its parameters, for cuLaunchKernel:
 *
{kernel}
 */

#ifdef __CUDACC__
/*
 * One row.
{notes} */
extern "C" __device__ {declaration}
#endif
"""


def header_file(code: Code, body: str, promises: str, suffix: str = "h", guard: str = "") -> Files:
    """The file ``NAME.h`` or another header.

    Parameters
    ----------
    code : Code
    body : str
        What it has after the includes.
    promises : str
        Sentences for the comment at the top.
    suffix : str
    guard : str
        Macro that keeps it from being included twice, before its ending; by default the name.
    """
    included = "#include <stdint.h>\n" * bool(_INTEGERS.search(body))
    text = header_text(commented(code, promises), f"{guard or code.name}_{suffix}", body, included)
    return {f"{code.name}.{suffix}": text.encode()}


def c_header(code: Code, declarations: str, promises: str) -> Files:
    """The file ``NAME.h`` with declarations of functions in C."""
    return header_file(code, linked(declarations), promises)


def formula_header(code: Code, interface: Interface) -> Files:
    """The header of a formula's functions."""
    macro = f"{interface.name.upper()}_RESTRICT"
    declarations = _RESTRICT.format(macro=macro, declarations="\n".join(_declarations(interface, macro)))
    return c_header(code, declarations, PROMISES)


def gpu_header(code: Code, interface: Interface) -> Files:
    """The header ``NAME.cuh``, which says how to call the functions on a GPU.

    There the function of one row returns a single result even if it may fail, and has no status but a last argument.
    """
    several = len(interface.outputs) > 1
    kernel = [f"const {column.c_type} *{column.name}" for column in interface.parameters]
    kernel += [f"{column.c_type} *{column.name}" for column in interface.outputs]
    kernel += ["int64_t, the number of rows"]
    kernel += ["int *, which becomes 1 if an integer division had a zero divisor"] * interface.can_fail
    arguments = [f"{column.c_type} {column.name}" for column in interface.parameters]
    arguments += [f"{column.c_type} *{column.name}" for column in interface.outputs] * several
    arguments += ["unsigned char * /* becomes 1 if a divisor is zero */"] * interface.can_fail
    result = "void" if several else interface.outputs[0].c_type
    body = _ON_A_GPU.format(
        kernel="\n".join(f" *   {each}" for each in (f"{interface.name}_kernel:", *kernel)),
        notes=_notes(replace(interface, can_fail=False)),
        declaration=f"{result} {interface.name}({', '.join(arguments)});",
    )
    return header_file(code, body, PROMISES, "cuh")


def commented(code: Code, promises: str) -> str:
    """A description of a file and what it promises, as lines of a C comment."""
    target = code.target
    processor = f", processor {target.cpu}" if target.cpu else ""
    text = f"{code.description}\n\nWritten by Shine for {target.triple}{processor}. Needs no library.\n\n{promises}"
    return lines_of_comment(for_comment(text))


def _declarations(interface: Interface, macro: str) -> Iterable[str]:
    name, features = interface.name, len(interface.parameters)
    yield _COUNTS.format(name=name, features=features, outputs=len(interface.outputs))
    if interface.can_fail:
        yield _STATUS.format(name=name)
    yield _ONE_ROW.format(notes=_notes(interface), declaration=one_row(interface))
    failure = _FAILURE if interface.can_fail else ""
    result = "int" if interface.can_fail else "void"
    if interface.matrix:
        read, written = C_TYPES[interface.matrix], interface.outputs[0].c_type
        declaration = (
            f"{result} {name}_batch(const {read} *{macro} X, size_t n_rows, ptrdiff_t row_stride, "
            f"ptrdiff_t column_stride,\n{' ' * (len(result) + len(name) + 8)}{written} *{macro} y);"
        )
        yield _MATRIX.format(count=features, notes=failure, declaration=declaration)
    yield _COLUMNS.format(notes=failure, declaration=_columns(interface, result, macro))


def one_row(interface: Interface) -> str:
    """The prototype of the function of one row."""
    arguments = [f"{column.c_type} {column.name}" for column in interface.parameters]
    if interface.returns_value:
        result = interface.outputs[0].c_type
    else:
        result = "int" if interface.can_fail else "void"
        arguments += [f"{column.c_type} *{column.name}" for column in interface.outputs]
    return f"{result} {interface.name}({', '.join(arguments) or 'void'});"


def _columns(interface: Interface, result: str, macro: str) -> str:
    arguments = ["size_t n_rows"]
    arguments += [f"const {c.c_type} *{macro} {c.name}, ptrdiff_t {c.stride}" for c in interface.parameters]
    arguments += [f"{c.c_type} *{macro} {c.name}, ptrdiff_t {c.stride}" for c in interface.outputs]
    head = f"{result} {interface.name}_columns("
    return head + f",\n{' ' * len(head)}".join(arguments) + ");"


def _notes(interface: Interface) -> str:
    """Lines of the comment about the arguments: their original names, and how booleans are written."""
    notes = [_note(column) for column in (*interface.parameters, *interface.outputs)]
    if not interface.returns_value and not interface.can_fail:
        notes.insert(0, "The results are written.")
    elif interface.can_fail:
        notes.insert(0, "The results are valid if it returns 0.")
    return "".join(f" * {note}\n" for note in notes if note)


def _note(column: Column) -> str:
    label = in_comment(ascii(column.label)[1:-1])
    renamed = f"{column.name} is {label}" if column.name not in (label, "y") else ""
    truth = f"{column.name} is 0 for false and 1 for true" if column.dtype == "bool" else ""
    said = " and ".join(filter(None, (renamed, truth.removeprefix(f"{column.name} ") if renamed else truth)))
    return f"{said}." if said else ""
