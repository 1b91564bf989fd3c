"""Compiled estimators as files for C, made ahead of time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from shine.base.errors import CompilationError
from shine.formats.native.code import Options, Order
from shine.formats.native.emission import gathered, written
from shine.trees.code import EMITTERS, Told, TreeCode
from shine.trees.compiled import CompiledTrees, compiled_of
from shine.trees.layout import layout
from shine.trees.onnx import read_onnx
from shine.trees.reading import Reading, read


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
    """What each number of a row is."""
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
