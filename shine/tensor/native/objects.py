"""A native function that takes arrays of NumPy as they are: it checks them, finds their elements and calls the program.

In Python, to ask for the address of an array's elements takes longer than a small program. So the function gets the
addresses of two tuples of arrays, and reads what it needs from the objects, at the offsets that CPython and NumPy
promise to extension modules: these have them compiled in as macros (`PyTuple_GET_ITEM`, `PyArray_DATA`, ...).
`is_readable` tries the offsets on some arrays; where they are different, addresses are asked for one by one.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache

import numpy as np

from shine.tensor.native.interface import Interface

SUFFIX = ".objects"
"""Follows the name of the program in the name of the function; no function in C has such a name."""

DONE = -1
"""What the function returns if it has computed the results; otherwise, the position of a tensor to look at."""

_WORD = 8
_HEAD = object.__basicsize__
_ITEMS = tuple.__basicsize__

# PyArrayObject_fields: data, nd, dimensions, strides, base, descr, flags (numpy/ndarraytypes.h).
_DATA, _RANK, _SIZES, _TYPE, _FLAGS = (_HEAD + place * _WORD for place in (0, 1, 2, 5, 6))

# NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400

_CHECKED = f"""
define internal ptr @"{SUFFIX}"(ptr %tuple, i64 %place, i64 %type, i32 %rank, ptr %sizes, i32 %wanted) nounwind {{
entry:
  %slot = getelementptr ptr, ptr %tuple, i64 %place
  %item = getelementptr i8, ptr %slot, i64 {_ITEMS}
  %array = load ptr, ptr %item
  %class_place = getelementptr i8, ptr %array, i64 {_HEAD - _WORD}
  %class = load i64, ptr %class_place
  %is_array = icmp eq i64 %class, ARRAY
  br i1 %is_array, label %typed, label %no
typed:
  %type_place = getelementptr i8, ptr %array, i64 {_TYPE}
  %found_type = load i64, ptr %type_place
  %has_type = icmp eq i64 %found_type, %type
  %flags_place = getelementptr i8, ptr %array, i64 {_FLAGS}
  %flags = load i32, ptr %flags_place
  %set = and i32 %flags, %wanted
  %has_flags = icmp eq i32 %set, %wanted
  %rank_place = getelementptr i8, ptr %array, i64 {_RANK}
  %found_rank = load i32, ptr %rank_place
  %has_rank = icmp eq i32 %found_rank, %rank
  %both = and i1 %has_type, %has_flags
  %all = and i1 %both, %has_rank
  %sizes_place = getelementptr i8, ptr %array, i64 {_SIZES}
  %found_sizes = load ptr, ptr %sizes_place
  br i1 %all, label %axes, label %no
axes:
  %axis = phi i32 [0, %typed], [%next, %size]
  %left = icmp slt i32 %axis, %rank
  br i1 %left, label %size, label %yes
size:
  %size_place = getelementptr i64, ptr %sizes, i32 %axis
  %found_size_place = getelementptr i64, ptr %found_sizes, i32 %axis
  %wanted_size = load i64, ptr %size_place
  %found_size = load i64, ptr %found_size_place
  %next = add i32 %axis, 1
  %same = icmp eq i64 %wanted_size, %found_size
  br i1 %same, label %axes, label %no
yes:
  %data_place = getelementptr i8, ptr %array, i64 {_DATA}
  %data = load ptr, ptr %data_place
  ret ptr %data
no:
  ret ptr null
}}
"""


_OVERLAP = f"""
define internal i32 @"{SUFFIX}.overlap"(ptr %slots, ptr %bytes, i32 %first, i32 %count) nounwind {{
entry:
  br label %result
result:
  %i = phi i32 [%first, %entry], [%next_i, %disjoint]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %others, label %none
others:
  %slot_i = getelementptr i64, ptr %slots, i32 %i
  %start_i = load i64, ptr %slot_i
  %bytes_i_place = getelementptr i64, ptr %bytes, i32 %i
  %bytes_i = load i64, ptr %bytes_i_place
  %end_i = add i64 %start_i, %bytes_i
  br label %other
other:
  %j = phi i32 [0, %others], [%next_j, %apart]
  %before = icmp slt i32 %j, %i
  br i1 %before, label %compare, label %disjoint
compare:
  %slot_j = getelementptr i64, ptr %slots, i32 %j
  %start_j = load i64, ptr %slot_j
  %bytes_j_place = getelementptr i64, ptr %bytes, i32 %j
  %bytes_j = load i64, ptr %bytes_j_place
  %end_j = add i64 %start_j, %bytes_j
  %next_j = add i32 %j, 1
  %begins = icmp ult i64 %start_i, %end_j
  %ends = icmp ult i64 %start_j, %end_i
  %overlap = and i1 %begins, %ends
  br i1 %overlap, label %found, label %apart
apart:
  br label %other
disjoint:
  %next_i = add i32 %i, 1
  br label %result
found:
  ret i32 %i
none:
  ret i32 {DONE}
}}
"""
"""The first result that overlaps a tensor before it."""


def objects_ir(interface: Interface) -> str:
    """LLVM IR of ``int32_t NAME.objects(PyObject *arguments, PyObject *results, void *arena, int32_t check)``.

    The function takes the addresses of two tuples of arrays in this process. It returns `DONE`, or the position among
    all tensors of one that is no array of NumPy, or has another type, shape or order of elements, or cannot be written;
    if `check` is not 0, also of a result that overlaps another tensor.
    """
    given, tensors = len(interface.arguments), interface.tensors
    constants = [_table("bytes", [tensor.type.bytes for tensor in tensors])]
    lines = []
    for place, tensor in enumerate(tensors):
        is_result = place >= given
        table, index = ("%results", place - given) if is_result else ("%arguments", place)
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if is_result else 0)
        constants.append(_table(f"sizes{place}", tensor.type.shape))
        lines.append(
            f'  %data{place} = call ptr @"{SUFFIX}"(ptr {table}, i64 {index}, i64 {id(tensor.type.numpy)}, '
            f"i32 {tensor.type.rank}, ptr @.sizes{place}, i32 {flags})\n"
            f"  %good{place} = icmp ne ptr %data{place}, null\n"
            f"  br i1 %good{place}, label %kept{place}, label %bad{place}\n"
            f"bad{place}:\n  ret i32 {place}\n"
            f"kept{place}:\n"
            f"  %slot{place} = getelementptr ptr, ptr %slots, i32 {place}\n"
            f"  store ptr %data{place}, ptr %slot{place}\n"
        )
    body = f"""
define i32 @"{interface.name}{SUFFIX}"(ptr %arguments, ptr %results, ptr %arena, i32 %check) nounwind {{
  %slots = alloca ptr, i32 {max(len(tensors), 1)}
{"".join(lines)}  %checks = icmp ne i32 %check, 0
  br i1 %checks, label %compare, label %run
compare:
  %overlap = call i32 @"{SUFFIX}.overlap"(ptr %slots, ptr @.bytes, i32 {given}, i32 {len(tensors)})
  %apart = icmp eq i32 %overlap, {DONE}
  br i1 %apart, label %run, label %stop
stop:
  ret i32 %overlap
run:
  %made = getelementptr ptr, ptr %slots, i32 {given}
  call void @"{interface.name}"(ptr %slots, ptr %made, ptr %arena)
  ret i32 {DONE}
}}
"""
    return "\n".join(constants) + _CHECKED.replace("ARRAY", str(id(np.ndarray))) + _OVERLAP + body


def _table(name: str, numbers: Sequence[int]) -> str:
    numbers = numbers or (0,)
    return f"@.{name} = private constant [{len(numbers)} x i64] [{', '.join(f'i64 {number}' for number in numbers)}]"


@cache
def is_readable() -> bool:
    """Whether arrays in this process have their facts at the offsets above."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return False
    return all(_is_as_expected(np.zeros(shape, dtype)[::step]) for shape, dtype, step in _PROBES)


_PROBES = (((2, 3, 5), np.float32, 1), ((7,), np.int64, 2), ((4, 1), np.bool_, 1))


def _is_as_expected(array: np.ndarray) -> bool:
    def word(offset: int, kind: type[ctypes.c_int64 | ctypes.c_int32] = ctypes.c_int64) -> int:
        return int(kind.from_address(id(array) + offset).value)

    facts = [word(_HEAD - _WORD) == id(type(array)), word(_DATA) == array.ctypes.data]
    facts += [word(_RANK, ctypes.c_int32) == array.ndim, word(_TYPE) == id(array.dtype)]
    if not all(facts):
        return False
    flags = word(_FLAGS, ctypes.c_int32)
    sizes = tuple((ctypes.c_int64 * array.ndim).from_address(word(_SIZES)))
    item = ctypes.c_int64.from_address(id(box := (array,)) + _ITEMS).value
    return (
        sizes == array.shape
        and item == id(box[0])
        and bool(flags & _CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & _WRITEABLE) == array.flags.writeable
    )
