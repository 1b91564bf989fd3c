"""Native code of an ensemble of trees for a target: its tables are constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from llvmlite import ir

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, declare
from shine.compiler.processor import Machine
from shine.formats.native.code import Code, Emitter, Files, Order
from shine.formats.native.emission import OF_CODE
from shine.formats.native.headers import c_header
from shine.formats.write.c import for_comment
from shine.tensor.native.function import machine_for
from shine.trees.core import arena_bytes, emit_core
from shine.trees.kernel import plan_of
from shine.trees.layout import DOUBLE, I1, I32, Layout, Plan, layout, number
from shine.trees.reading import Reading

_DECLARATIONS = """\
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
"""

_PROMISES = """\
The functions keep no state, allocate nothing, and may be called by many threads at once, each with an arena of its
own. Rows may be computed in any portions: their numbers do not depend on each other."""


@dataclass(frozen=True, eq=False)
class TreeCode(Code):
    """An ensemble that is compiled for a target.

    Parameters
    ----------
    order, description
        As of `Code`.
    layout : Layout
    n_features : int
    meanings : tuple of str
        What each number is that a row gets, for the header.
    features : tuple of str
        Names and codes of features, for the header.
    """

    emitters: ClassVar[Mapping[str, Emitter]] = OF_CODE

    layout: Layout
    n_features: int
    meanings: tuple[str, ...]
    features: tuple[str, ...]

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

    def header(self) -> Files:
        """The header for C and C++."""
        text = _DECLARATIONS.format(
            name=self.name,
            features=self.n_features,
            results=self.layout.n_results,
            arena=self.arena_bytes,
            meanings="\n".join(f" *   k = {place}: {for_comment(text)}" for place, text in enumerate(self.meanings)),
            features_listed="".join(f" * {for_comment(text)}\n" for text in (" ", *self.features) if self.features),
        )
        return c_header(self, "".join(f"{line.rstrip()}\n" for line in text.splitlines()), _PROMISES)

    def described(self) -> dict[str, object]:
        """The description of `Code`, with the number of features, the meanings of results and the size of the arena."""
        facts = {"n_features": self.n_features, "outputs": list(self.meanings), "arena_bytes": self.arena_bytes}
        return {**super().described(), **facts}


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


def tree_code(reading: Reading, order: Order, method: str | None) -> TreeCode:
    """Code of an ensemble; `method` is that of `shine.trees.build`.

    A `ValueError` if the ensemble has no such method, a `CompilationError` if the target is a GPU.
    """
    chosen = _method(reading, method)
    if order.target.format == "ptx":
        raise CompilationError(
            f"{order.target.triple}: there is no code of trees for GPUs; name a processor, or wasm32"
        )
    ensemble = reading.ensemble
    if chosen == "decision_function":
        ensemble = replace(ensemble, link="identity")
    description = f"{chosen} of a {reading.name}: {len(ensemble.trees)} trees, {ensemble.n_leaves} leaves"
    meanings, features = _meanings(reading, chosen), _features(reading)
    return TreeCode(order, description, layout(ensemble), ensemble.n_features, meanings, features)


def _method(reading: Reading, method: str | None) -> str:
    possible = ["predict_proba", *(["decision_function"] if reading.is_boosted else [])]
    if not reading.classes:
        possible = ["predict"]
    chosen = possible[0] if method is None else method
    if chosen not in possible:
        hint = "; the class is the one of the largest number" if method == "predict" else ""
        raise ValueError(f"a {reading.name} has no {chosen!r} in C; there is {' and '.join(possible)}{hint}")
    return chosen


def _meanings(reading: Reading, method: str) -> tuple[str, ...]:
    """Meaning of each number of a row."""
    several = reading.n_targets > 1
    if not reading.classes:
        return tuple(f"target {k}" if several else "the prediction" for k in range(reading.n_targets))
    what = "the decision for" if method == "decision_function" else "the probability of"
    classes = [each.tolist() for each in reading.classes]
    if method == "decision_function" and reading.ensemble.n_outputs == 1:
        return (f"{what} class {classes[0][-1]!r}",)
    return tuple(
        f"{what} class {label!r}" + (f" of target {target}" if several else "")
        for target, labels in enumerate(classes)
        for label in labels
    )


def _features(reading: Reading) -> tuple[str, ...]:
    """Names of features, and codes of their categories."""
    lines = [f"Feature {place} is {name}." for place, name in enumerate(reading.feature_names)]
    for place, categories in reading.categories.items():
        codes = ", ".join(f"{code} for {value!r}" for code, value in enumerate(categories.tolist()) if value == value)
        lines.append(f"Feature {place} is a code: {codes}; any other for an unknown category or a missing one.")
    return tuple(lines)
