"""Ensembles of trees compiled for this process, and ahead of time as files for C."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from shine.formats.native.code import Options, written
from shine.trees.compiled import CompiledTrees, compiled_of
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
    trees = model if isinstance(model, CompiledTrees) else compiled_of(_read(model))
    return written(trees.code(name, method=method, **options).files(emit), folder)


def _read(model: Any) -> Reading:
    if isinstance(model, str | os.PathLike | bytes):
        return read_onnx(model)
    # A message of the onnx package, which is not imported here.
    is_message = type(model).__module__.startswith("onnx") and hasattr(model, "SerializeToString")
    return read_onnx(model.SerializeToString()) if is_message else read(model)
