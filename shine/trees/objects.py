"""Native functions that take one key, or some rows, as Python has them (`shine.compiler.llvm.object_layout`).

Around one row of a hundred trees, or one key, a call of `ctypes` takes as long as the work itself. What these functions
need of this process, such as addresses of CPython's functions, is in an array of words, so their code can be cached.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import (
    ALIGNED,
    DATA,
    FLAGS,
    HEAD,
    NEW_ARRAY,
    RANK,
    SIZES,
    STEPS,
    TYPE,
    WORD,
    array_function,
    builtin,
    interpreter_function,
)
from shine.trees.key_code import text_of_one

MOST_ROWS = 1024
"""Of a call; for more, threads are worth their start."""

_LAYOUT = (HEAD, DATA, RANK, SIZES, STEPS, TYPE, FLAGS)

_OF_PYTHON = ("Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread")


def row_words(kernel: Any, features: int, width: int, tables: int, forbidden: int) -> Any:
    """Words for `of_rows`: int64.

    Parameters
    ----------
    kernel : ctypes function
        Of `shine.trees.kernel`.
    features, width : int
        Numbers in a row, and in a result.
    tables : int
        Address of the kernel's tables.
    forbidden : int
        Bits that the kernel must not return.
    """
    own = (ctypes.cast(kernel, ctypes.c_void_p).value or 0, features, width, tables, forbidden)
    numpy = (id(np.ndarray), id(np.dtype(np.float64)), id(np.dtype(np.float32)), array_function(NEW_ARRAY))
    return np.array([*own, *numpy, *map(interpreter_function, _OF_PYTHON), id(None)], np.int64)


@cache
def of_rows() -> Callable[[Any, Any, Any], Any]:
    """The function ``(words, X, arena)``: new results, shape (n_rows, width).

    `arena` is an array of scratch memory. The function returns None if `X` is no aligned array of float64 or float32 of
    the right shape with at most `MOST_ROWS` rows, or if there are forbidden values among these.
    """
    return _compiled("rows", _of_rows)


@cache
def of_key(dtype: str) -> Callable[[Any, Any], int | None]:
    """The function ``(words, key)``: the position of a key, -1 if there is none; None if Python has to convert the key.

    Parameters
    ----------
    dtype : str
        Of the keys.
    """
    return _compiled(f"key {dtype}", lambda: text_of_one(dtype) + _of_key(dtype))


def key_words(dtype: str, table: int) -> Any:
    """Words for `of_key`: int64."""
    kind, name = (float, "PyFloat_AsDouble") if dtype.startswith("float") else (int, "PyLong_AsLongLongAndOverflow")
    return np.array(
        [table, id(kind), id(None), *map(interpreter_function, (name, "PyLong_FromLongLong", "Py_IncRef"))], np.int64
    )


def _compiled(name: str, text: Callable[[], str]) -> Callable[..., Any]:
    meaning = ("objects", name, repr(_LAYOUT), source_digest("trees"))
    return builtin(Engine.kept(["objects"], meaning, text), "objects")


def _facts(names: dict[str, str]) -> str:
    """Code that reads the words, of the types of IR that are given."""
    lines = [
        f"""  %words = load ptr, ptr %given
  %facts_at = getelementptr i8, ptr %words, i64 {DATA}
  %facts = load ptr, ptr %facts_at"""
    ]
    for place, (name, kind) in enumerate(names.items()):
        lines.append(f"""  %{name}_at = getelementptr i64, ptr %facts, i64 {place}
  %{name} = load {kind}, ptr %{name}_at""")
    return "\n".join(lines)


def _argument(name: str, place: int) -> str:
    return f"""  %{name}_at = getelementptr ptr, ptr %given, i64 {place}
  %{name} = load ptr, ptr %{name}_at"""


def _member(name: str, owner: str, offset: int, kind: str) -> str:
    """Code that reads a field of an object."""
    return f"""  %{name}_at = getelementptr i8, ptr %{owner}, i64 {offset}
  %{name} = load {kind}, ptr %{name}_at"""


_REFUSED = """refused:
  call void %increase(ptr %none)
  ret ptr %none
}
"""


def _of_rows() -> str:
    own = {"kernel": "ptr", "features": "i64", "width": "i64", "tables": "ptr", "forbidden": "i64"}
    numpy = {"array": "i64", "double": "ptr", "single": "ptr", "new": "ptr"}
    python = {"increase": "ptr", "decrease": "ptr", "save": "ptr", "restore": "ptr", "none": "ptr"}
    return f"""
define ptr @objects(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %shape = alloca [2 x i64]
{_facts({**own, **numpy, **python})}
{_argument("X", 1)}
{_argument("memory", 2)}
{_member("class", "X", HEAD - WORD, "i64")}
  %is_array = icmp eq i64 %class, %array
  br i1 %is_array, label %typed, label %refused
typed:
{_member("type", "X", TYPE, "ptr")}
{_member("flags", "X", FLAGS, "i32")}
{_member("rank", "X", RANK, "i32")}
  %is_double = icmp eq ptr %type, %double
  %is_single = icmp eq ptr %type, %single
  %is_real = or i1 %is_double, %is_single
  %aligned = and i32 %flags, {ALIGNED}
  %is_aligned = icmp ne i32 %aligned, 0
  %is_matrix = icmp eq i32 %rank, 2
  %may = and i1 %is_real, %is_aligned
  %fits = and i1 %may, %is_matrix
  br i1 %fits, label %sized, label %refused
sized:
{_member("sizes", "X", SIZES, "ptr")}
{_member("steps", "X", STEPS, "ptr")}
  %rows = load i64, ptr %sizes
  %columns_at = getelementptr i64, ptr %sizes, i64 1
  %columns = load i64, ptr %columns_at
  %row_bytes = load i64, ptr %steps
  %column_bytes_at = getelementptr i64, ptr %steps, i64 1
  %column_bytes = load i64, ptr %column_bytes_at
  %digits = select i1 %is_double, i64 3, i64 2
  %row_step = ashr i64 %row_bytes, %digits
  %column_step = ashr i64 %column_bytes, %digits
  %row_again = shl i64 %row_step, %digits
  %column_again = shl i64 %column_step, %digits
  %is_row_whole = icmp eq i64 %row_again, %row_bytes
  %is_column_whole = icmp eq i64 %column_again, %column_bytes
  %is_wide = icmp eq i64 %columns, %features
  %is_short = icmp sle i64 %rows, {MOST_ROWS}
  %whole = and i1 %is_row_whole, %is_column_whole
  %sizes_fit = and i1 %is_wide, %is_short
  %readable = and i1 %whole, %sizes_fit
  br i1 %readable, label %make, label %refused
make:
  store i64 %rows, ptr %shape
  %second = getelementptr i64, ptr %shape, i64 1
  store i64 %width, ptr %second
  ; NumPy takes over a reference to the type.
  call void %increase(ptr %double)
  %made = call ptr %new(i64 %array, ptr %double, i32 2, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %is_made = icmp ne ptr %made, null
  br i1 %is_made, label %run, label %failed
run:
{_member("source", "X", DATA, "ptr")}
{_member("target", "made", DATA, "ptr")}
{_member("arena", "memory", DATA, "ptr")}
  %kind = zext i1 %is_single to i8
  %thread = call ptr %save()
  %found = call i32 %kernel(ptr %source, i64 %rows, i64 %row_step, i64 %column_step, ptr %target, ptr %arena, \
ptr %tables, i8 zeroext %kind)
  call void %restore(ptr %thread)
  %bits = zext i32 %found to i64
  %bad = and i64 %bits, %forbidden
  %is_good = icmp eq i64 %bad, 0
  br i1 %is_good, label %done, label %drop
done:
  ret ptr %made
failed:
  ret ptr null
drop:
  call void %decrease(ptr %made)
  br label %refused
{_REFUSED}"""


def _of_key(dtype: str) -> str:
    names = {"table": "ptr", "kind": "i64", "none": "ptr", "read": "ptr", "number": "ptr", "increase": "ptr"}
    if dtype.startswith("float"):
        element, convert = (
            ("double", "") if dtype == "float64" else ("float", "  %key = fptrunc double %value to float")
        )
        value = f"""{_member("value", "object", HEAD, "double")}
  %is_held = fcmp ord double %value, %value"""
    else:
        bits, signed = int(re.sub(r"\D", "", dtype)), not dtype.startswith("u")
        element = f"i{bits}"
        convert = f"  %key = trunc i64 %value to {element}" if bits < 64 else ""
        back = f"%again = {'sext' if signed else 'zext'} {element} %short to i64"
        fits = f"%short = trunc i64 %value to {element}\n  {back}\n  %is_same = icmp eq i64 %again, %value"
        if bits == 64:
            fits = f"%is_same = icmp sge i64 %value, {-(2**63) if signed else 0}"
        value = f"""  %value = call i64 %read(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %is_within = icmp eq i32 %over, 0
  {fits}
  %is_held = and i1 %is_within, %is_same"""
    return f"""
define ptr @objects(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %overflow = alloca i32
{_facts(names)}
{_argument("object", 1)}
{_member("class", "object", HEAD - WORD, "i64")}
  %is_number = icmp eq i64 %class, %kind
  br i1 %is_number, label %known, label %refused
known:
{value}
  br i1 %is_held, label %look, label %refused
look:
{convert}
  %place = call i64 @find(ptr %table, {element} {"%key" if convert else "%value"})
  %result = call ptr %number(i64 %place)
  ret ptr %result
{_REFUSED}"""
