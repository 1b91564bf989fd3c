"""A native function that takes arrays of NumPy as they are: it checks them, finds their elements and calls the program.

Around a small program, Python takes longer for a call of `ctypes`, the address of an array's elements and a new array
than the program itself. So CPython calls the native function as one of its own (`shine.compiler.llvm.object_layout`),
and it does the rest: it reads the fields of the objects, at the offsets that CPython and NumPy promise to extension
modules, which have them compiled in as macros (`PyTuple_GET_ITEM`, `PyArray_DATA`, ...), and NumPy's own function makes
new arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.compiler.llvm.object_layout import (
    ALIGNED,
    CONTIGUOUS,
    COUNT,
    DATA,
    FLAGS,
    HEAD,
    ITEMS,
    NEW_ARRAY,
    RANK,
    SIZES,
    TYPE,
    WORD,
    WRITEABLE,
    array_function,
    interpreter_function,
)
from shine.tensor.native.interface import Interface, Tensor

SUFFIX = ".objects"
"""Follows the name of the program in the name of the function; no function in C has such a name."""

_CHECKED = f"""
define internal ptr @"{SUFFIX}.data"(ptr %array, i64 %type, i32 %rank, ptr %sizes, i32 %wanted) nounwind {{
entry:
  %class_place = getelementptr i8, ptr %array, i64 {HEAD - WORD}
  %class = load i64, ptr %class_place
  %is_array = icmp eq i64 %class, ARRAY
  br i1 %is_array, label %typed, label %no
typed:
  %type_place = getelementptr i8, ptr %array, i64 {TYPE}
  %found_type = load i64, ptr %type_place
  %has_type = icmp eq i64 %found_type, %type
  %flags_place = getelementptr i8, ptr %array, i64 {FLAGS}
  %flags = load i32, ptr %flags_place
  %set = and i32 %flags, %wanted
  %has_flags = icmp eq i32 %set, %wanted
  %rank_place = getelementptr i8, ptr %array, i64 {RANK}
  %found_rank = load i32, ptr %rank_place
  %has_rank = icmp eq i32 %found_rank, %rank
  %both = and i1 %has_type, %has_flags
  %all = and i1 %both, %has_rank
  %sizes_place = getelementptr i8, ptr %array, i64 {SIZES}
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
  %data_place = getelementptr i8, ptr %array, i64 {DATA}
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
  ret i32 -1
}}
"""
"""The first result that overlaps a tensor before it, or -1."""


def objects_ir(interface: Interface) -> str:
    """LLVM IR of a `builtin` (`shine.compiler.llvm.object_layout`): ``NAME.objects(arguments, results, arena)``.

    In Python, it takes a tuple of arrays, a tuple of arrays for the results or None for new ones, and an address, and
    returns the tuple of results. It returns None if the tuples have other lengths, or contain something that is no
    array of NumPy, has another type, shape or order of elements, or cannot be written, or if a given result overlaps
    another tensor. While the program runs, other threads of Python may run.
    """
    given, tensors = len(interface.arguments), interface.tensors
    constants = [_table("bytes", [tensor.type.bytes for tensor in tensors])]
    constants += [_table(f"sizes{place}", tensor.type.shape) for place, tensor in enumerate(tensors)]
    body = f"""
define ptr @"{interface.name}{SUFFIX}"(ptr %self, ptr %given, i64 %count) nounwind {{
  %slots = alloca ptr, i32 {max(len(tensors), 1)}
  %arguments = load ptr, ptr %given
  %results_place = getelementptr ptr, ptr %given, i32 1
  %results = load ptr, ptr %results_place
  %arena_place = getelementptr ptr, ptr %given, i32 2
  %arena_object = load ptr, ptr %arena_place
  %arena = call ptr {_known("PyLong_AsVoidPtr")}(ptr %arena_object)
{_counted("arguments", given)}
{_found("arguments", interface.arguments, 0)}
  %is_new = icmp eq ptr %results, {_object(None)}
  br i1 %is_new, label %make, label %take
make:
  %made = call ptr {_known("PyTuple_New")}(i64 {len(interface.results)})
  %has_made = icmp ne ptr %made, null
  br i1 %has_made, label %fill, label %failed
fill:
{_made(interface.results, given)}
  br label %run
take:
{_counted("results", len(interface.results))}
{_found("results", interface.results, given)}
  %overlap = call i32 @"{SUFFIX}.overlap"(ptr %slots, ptr @.bytes, i32 {given}, i32 {len(tensors)})
  %apart = icmp eq i32 %overlap, -1
  br i1 %apart, label %keep, label %other
keep:
  call void {_known("Py_IncRef")}(ptr %results)
  br label %run
run:
  %found = phi ptr [ %made, %filled ], [ %results, %keep ]
  %thread = call ptr {_known("PyEval_SaveThread")}()
  %targets = getelementptr ptr, ptr %slots, i32 {given}
  call void @"{interface.name}"(ptr %slots, ptr %targets, ptr %arena)
  call void {_known("PyEval_RestoreThread")}(ptr %thread)
  ret ptr %found
other:
  call void {_known("Py_IncRef")}(ptr {_object(None)})
  ret ptr {_object(None)}
unmade:
  call void {_known("Py_DecRef")}(ptr %made)
  br label %failed
failed:
  ret ptr null
}}
"""
    return "\n".join(constants) + _CHECKED.replace("ARRAY", str(id(np.ndarray))) + _OVERLAP + body


def _counted(table: str, count: int) -> str:
    """Code that goes to `other` unless a tuple has a number of items."""
    return f"""  %{table}_count_place = getelementptr i8, ptr %{table}, i64 {COUNT}
  %{table}_count = load i64, ptr %{table}_count_place
  %{table}_fit = icmp eq i64 %{table}_count, {count}
  br i1 %{table}_fit, label %{table}_fitting, label %other
{table}_fitting:"""


def _found(table: str, tensors: Sequence[Tensor], first: int) -> str:
    """Code that puts the addresses of the elements of a tuple's arrays into the slots, or goes to `other`."""
    flags = CONTIGUOUS | ALIGNED | (WRITEABLE if first else 0)
    lines = []
    for place, tensor in enumerate(tensors, first):
        lines.append(f"""  %item{place} = getelementptr i8, ptr %{table}, i64 {ITEMS + WORD * (place - first)}
  %array{place} = load ptr, ptr %item{place}
  %data{place} = call ptr @"{SUFFIX}.data"(ptr %array{place}, i64 {id(tensor.type.numpy)}, i32 {tensor.type.rank}, \
ptr @.sizes{place}, i32 {flags})
  %good{place} = icmp ne ptr %data{place}, null
  br i1 %good{place}, label %kept{place}, label %other
kept{place}:
  %slot{place} = getelementptr ptr, ptr %slots, i32 {place}
  store ptr %data{place}, ptr %slot{place}""")
    return "\n".join(lines)


def _made(tensors: Sequence[Tensor], first: int) -> str:
    """Code that fills a tuple with new arrays and puts the addresses of their elements into the slots."""
    lines = []
    for place, tensor in enumerate(tensors, first):
        # NumPy takes over a reference to the type.
        lines.append(f"""  call void {_known("Py_IncRef")}(ptr {_object(tensor.type.numpy)})
  %new{place} = call ptr inttoptr (i64 {array_function(NEW_ARRAY)} to ptr)(ptr {_object(np.ndarray)}, \
ptr {_object(tensor.type.numpy)}, i32 {tensor.type.rank}, ptr @.sizes{place}, ptr null, ptr null, i32 0, ptr null)
  %is_made{place} = icmp ne ptr %new{place}, null
  br i1 %is_made{place}, label %put{place}, label %unmade
put{place}:
  %room{place} = getelementptr i8, ptr %made, i64 {ITEMS + WORD * (place - first)}
  store ptr %new{place}, ptr %room{place}
  %new_data_place{place} = getelementptr i8, ptr %new{place}, i64 {DATA}
  %new_data{place} = load ptr, ptr %new_data_place{place}
  %new_slot{place} = getelementptr ptr, ptr %slots, i32 {place}
  store ptr %new_data{place}, ptr %new_slot{place}""")
    return "\n".join([*lines, "  br label %filled", "filled:"])


def _known(name: str) -> str:
    """A function of CPython, as the IR of this process calls it."""
    return f"inttoptr (i64 {interpreter_function(name)} to ptr)"


def _object(value: object) -> str:
    """An object that lives as long as the process."""
    return f"inttoptr (i64 {id(value)} to ptr)"


def _table(name: str, numbers: Sequence[int]) -> str:
    numbers = numbers or (0,)
    return f"@.{name} = private constant [{len(numbers)} x i64] [{', '.join(f'i64 {number}' for number in numbers)}]"
