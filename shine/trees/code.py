"""Code of an ensemble for a target: the trees are constants of the object file."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, declare
from shine.compiler.processor import Machine
from shine.formats.native.code import Code, Files
from shine.formats.native.emission import OF_CODE
from shine.formats.native.headers import commented, for_comment
from shine.tensor.native.lowering import machine_for
from shine.trees.core import arena_bytes, emit_core
from shine.trees.kernel import plan_of
from shine.trees.layout import Layout
from shine.trees.parts import DOUBLE, I1, I32, Plan, number

_HEADER = """\
/*
{comment}
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Features of a row, and numbers that a row gets. */
enum {{ {name}_n_features = {features}, {name}_n_results = {results} }};

/* What the functions return: 0, or the sum of these if a feature that a tree compares was such a number in any row. */
enum {{ {name}_missing = 1, {name}_infinite = 2 }};

/* Bytes of the arena, which is scratch memory: its address must be a multiple of 64. */
#define {name}_arena_bytes ((size_t){arena}u)

/*
 * Computes {name}_n_results numbers for each of n_rows rows: y[i * {name}_n_results + k] is
{meanings}
 *
 * Feature j of row i is X[i * row_stride + j * column_stride]; strides count numbers, not bytes. For rows one after the
 * other, row_stride is {name}_n_features and column_stride is 1. y and the arena must not overlap anything else.
{features_listed} */
int {name}(const double *X, size_t n_rows, ptrdiff_t row_stride, ptrdiff_t column_stride, double *y, void *arena);

/* The same for numbers of single precision. */
int {name}_single(const float *X, size_t n_rows, ptrdiff_t row_stride, ptrdiff_t column_stride, double *y, void *arena);

#ifdef __cplusplus
}}
#endif

#endif
"""

_PROMISES = """\
The functions keep no state, allocate nothing, and may be called by many threads at once, each with an arena of its
own. Rows may be computed in any portions: their numbers do not depend on each other."""


@dataclass(frozen=True)
class Told:
    """What a header says of features and of results.

    Parameters
    ----------
    n_features : int
    meanings : tuple of str
        What each number is that a row gets.
    features : tuple of str
        Names and codes of features.
    """

    n_features: int
    meanings: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TreeCode(Code):
    """An ensemble that is compiled for a target.

    Parameters
    ----------
    order, description
        As of `Code`.
    layout : Layout
    told : Told
    """

    layout: Layout
    told: Told

    @cached_property
    def _machine_facts(self) -> Machine:
        return machine_for(self.target)

    @property
    def plan(self) -> Plan:
        """The code's plan."""
        return plan_of(self.layout.shape, self._machine_facts.vector_bytes)

    @property
    def arena_bytes(self) -> int:
        """Bytes of scratch memory."""
        tables = self.layout.tables
        return arena_bytes(self.plan, len(tables.features), len(tables.base), self.layout.n_results)

    @property
    def text(self) -> str:
        """LLVM IR of the two functions."""
        module = ir.Module(name=self.name)
        core = emit_core(module, self.plan)
        tables = self.layout.tables
        sizes = [len(tables.features), self.layout.numeric, len(tables.trees), len(tables.base)]
        constants = [
            *map(number, sizes),
            ir.Constant(DOUBLE, self.layout.divisor),
            *(_constant(module, name, array, self._machine_facts.is_little) for name, array in tables.arrays.items()),
        ]
        word = ir.IntType(self.target.word)
        labels = ("X", "n_rows", "row_stride", "column_stride", "y", "arena")
        for name, is_single in ((self.name, 0), (f"{self.name}_single", 1)):
            function = declare(module, name, I32, [POINTER, word, word, word, POINTER, POINTER], labels)
            build = ir.IRBuilder(function.append_basic_block("entry"))
            X, *counts, y, arena = function.args
            wide = [each if word == I64 else build.sext(each, I64) for each in counts]
            build.ret(build.call(core, [X, *wide, y, arena, ir.Constant(I1, is_single), *constants]))
        return str(module)


def header_files(job: TreeCode) -> Files:
    """The header ``NAME.h``."""
    text = _HEADER.format(
        comment=commented(job, _PROMISES),
        guard=f"{job.name.upper()}_H",
        name=job.name,
        features=job.told.n_features,
        results=job.layout.n_results,
        arena=job.arena_bytes,
        meanings="\n".join(f" *   k = {place}: {for_comment(text)}" for place, text in enumerate(job.told.meanings)),
        features_listed="".join(f" * {for_comment(text)}\n" for text in (" ", *job.told.features) if job.told.features),
    )
    return {f"{job.name}.h": "\n".join(line.rstrip() for line in text.splitlines()).encode() + b"\n"}


EMITTERS = {
    "object": OF_CODE["object"],
    "header": header_files,
    "ir": OF_CODE["ir"],
    "asm": OF_CODE["asm"],
    "shared": OF_CODE["shared"],
    "cmake": OF_CODE["cmake"],
    "pkgconfig": OF_CODE["pkgconfig"],
}
"""Functions that make the files of each kind."""


def _constant(module: ir.Module, name: str, array: AnyArray, is_little: bool) -> ir.GlobalVariable:
    """A table as bytes in the order of the target."""
    kind = array.dtype.newbyteorder("<" if is_little else ">")
    content = bytearray(array.astype(kind).tobytes()) or bytearray(8)
    data = ir.ArrayType(ir.IntType(8), len(content))
    table = ir.GlobalVariable(module, data, f"ensemble.{name}")
    table.type = POINTER
    table.linkage, table.global_constant, table.align = "internal", True, 64
    table.initializer = ir.Constant(data, content)
    return table
