"""Compiled estimators as files for C, made ahead of time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from llvmlite import ir

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, declare
from shine.compiler.processor import Machine
from shine.formats.native.code import Code, Files, Options, Order
from shine.formats.native.emission import OF_CODE, gathered, written
from shine.formats.native.headers import commented, for_comment
from shine.tensor.native.function import machine_for
from shine.trees.compiled import CompiledTrees, compiled_of
from shine.trees.core import arena_bytes, emit_core
from shine.trees.kernel import plan_of
from shine.trees.layout import DOUBLE, I1, I32, Layout, Plan, layout, number
from shine.trees.onnx import read_onnx
from shine.trees.reading import Reading, read

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
    """Notes of a header on features and results.

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


def compile(model: Any) -> CompiledTrees:
    """Compile a fitted estimator of scikit-learn, or an ensemble of trees in ONNX, to native code in this process.

    Parameters
    ----------
    model : estimator, path-like, bytes or onnx.ModelProto
        A decision tree, a random forest, extra trees, gradient boosting or histogram gradient boosting; for
        classification or regression, of one or several targets. Or an ONNX model of one `TreeEnsembleRegressor` or
        `TreeEnsembleClassifier`, as skl2onnx writes it: a file or its content.

    Returns
    -------
    CompiledRegressor or CompiledClassifier
        Has `predict`, and `predict_proba` and `decision_function` if the estimator has them. Sums and means of trees
        have the bits of scikit-learn's with ``n_jobs=1``; what is an exponential of them may differ in the last digits.
        The trees of ONNX are added in float64, where ONNX Runtime adds those of float32 in float32.

    Raises
    ------
    GraphImportError
        If an ONNX model cannot be read, or is something else.
    TypeError
        If it is no such estimator; the message lists them.
    ValueError
        If it is not fitted, or begins from another model.

    Examples
    --------
    >>> shine.trees.compile(forest).predict(X)    # doctest: +SKIP
    """
    return compiled_of(_read(model))


def build(
    model: Any,
    folder: str | Path,
    name: str = "f",
    emit: str | Iterable[str] = ("object", "header"),
    *,
    method: str | None = None,
    **options: Unpack[Options],
) -> list[Path]:
    """Compile a fitted estimator of scikit-learn, or ONNX, ahead of time into files of a folder.

    Parameters
    ----------
    model : estimator, path-like, bytes, onnx.ModelProto or CompiledTrees
        As for `compile`.
    folder : path-like
        Made if missing. Nothing is written unless all files can be made.
    name : str
        Name of the function in C; names of files begin with it.
    emit : str or iterable of str
        Kinds of files: object, header, ir, asm, shared, cmake, pkgconfig.
    method : {"predict", "predict_proba", "decision_function"}, optional
        What the function computes; by default, `predict` of regressors and `predict_proba` of classifiers.
    **options
        As for `shine.aot.compile`.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    GraphImportError, TypeError, ValueError
        As of `compile`; or if there is no such kind, method or level, or a function in C cannot have this name.
    CompilationError
        If LLVM has no such target, processor or feature, or it is a GPU.
    ExportError
        If a linker that is needed is missing, or fails.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> shine.trees.build(forest, "out", "price", target="aarch64-linux-gnu")    # doctest: +SKIP
    """
    order = Order.of(name, **options)
    reading = model.reading if isinstance(model, CompiledTrees) else _read(model)
    chosen = _method(reading, method)
    if order.target.format == "ptx":
        raise CompilationError(
            f"{order.target.triple}: there is no code of trees for GPUs; name a processor, or wasm32"
        )
    ensemble = reading.ensemble
    if chosen == "decision_function":
        ensemble = replace(ensemble, link="identity")
    description = f"{chosen} of a {reading.name}: {len(ensemble.trees)} trees, {ensemble.n_leaves} leaves"
    told = Told(ensemble.n_features, _meanings(reading, chosen), _features(reading))
    return written(gathered(TreeCode(order, description, layout(ensemble), told), emit, EMITTERS), folder)


def _read(model: Any) -> Reading:
    if isinstance(model, str | os.PathLike | bytes):
        return read_onnx(model)
    # A message of the onnx package, which is not imported here.
    is_message = type(model).__module__.startswith("onnx") and hasattr(model, "SerializeToString")
    return read_onnx(model.SerializeToString()) if is_message else read(model)


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
