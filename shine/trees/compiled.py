"""Compiled estimators, with the methods that scikit-learn's have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray, Floats
from shine.compiler.threads import check_threads
from shine.formats.native.code import Options, Order, written
from shine.trees.code import TreeCode, tree_code
from shine.trees.core import INFINITE, MISSING
from shine.trees.kernel import TreeKernel
from shine.trees.onnx import read_onnx
from shine.trees.reading import Reading, read

_READ = (np.dtype(np.float64), np.dtype(np.float32))


def rows_of(X: Any, reading: Reading) -> AnyArray:
    """An array of shape (n_rows, n_features), float64 or float32; not a copy if it can be read as it is.

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it has another shape, other columns, or values that are not numbers.
    """
    if type(X) is np.ndarray and X.dtype in _READ and not reading.categories and X.ndim == 2:
        array: AnyArray = X
    else:
        array = _converted(X, reading)
    count = reading.ensemble.n_features
    if array.shape[1] != count:
        raise ValueError(f"X has {array.shape[1]} features; the {reading.name} was fitted to {count}")
    size = array.itemsize
    if not array.flags.aligned or array.strides[0] % size or array.strides[1] % size:
        array = np.ascontiguousarray(array)
    return array


def _converted(X: Any, reading: Reading) -> AnyArray:
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix; give X.toarray()")
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else []
    _check_names(names, reading)
    if names and reading.categories:
        columns = [X[name] for name in X.columns]
    else:
        array = _array(X, reading)
        if not reading.categories or array.shape[1] != reading.ensemble.n_features:
            return _numbers(array, names, reading)
        columns = [array[:, place] for place in range(array.shape[1])]
    out = np.empty((len(X), len(columns)))
    for place, column in enumerate(columns):
        values = np.asarray(column)
        if place in reading.categories:
            out[:, place] = _codes(values, reading.categories[place])
        else:
            name = names[place : place + 1]
            out[:, place] = _numbers(values.reshape(-1, 1), name, reading)[:, 0]
    return out


def _array(X: Any, reading: Reading) -> AnyArray:
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError("the rows of X have different lengths") from None
    if array.ndim == 1 and len(array) == reading.ensemble.n_features:
        raise ValueError("X has one dimension; for one row, give X.reshape(1, -1)")
    if array.ndim != 2:
        raise ValueError(f"X has {array.ndim} dimensions; give rows of {reading.ensemble.n_features} features")
    return array


def _numbers(array: AnyArray, names: list[str], reading: Reading) -> AnyArray:
    """Numbers in a type that can be read: rounded once, to the type in which they are compared."""
    if array.dtype in _READ:
        return array
    if array.dtype.kind not in "biufO":
        raise ValueError(f"X has values of type {array.dtype}; give numbers")
    try:
        with np.errstate(over="ignore"):
            return array.astype(reading.ensemble.rounding)
    except (TypeError, ValueError):
        place = next(place for place in range(array.shape[1]) if not _is_numeric(array[:, place]))
        what = repr(names[place]) if names else place
        raise ValueError(f"column {what} of X has values that are not numbers, and the model no categories") from None


def _is_numeric(column: AnyArray) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _check_names(names: list[str], reading: Reading) -> None:
    expected = [str(name) for name in reading.feature_names]
    if names and expected and names != expected:
        missing = [name for name in expected if name not in names]
        said = f"no column {', '.join(map(repr, missing[:3]))}" if missing else "its columns in another order"
        raise ValueError(f"X has {said}; the {reading.name} was fitted to {', '.join(expected[:20])}")


def _codes(values: AnyArray, categories: AnyArray) -> AnyArray:
    """Positions of values among categories; NaN for others, and for missing values."""
    if values.dtype.kind in "biuf" and categories.dtype.kind in "biuf":
        known = categories[~np.isnan(categories)] if categories.dtype.kind == "f" else categories
        if not len(known):
            return np.full(len(values), np.nan)
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[place] == values, place, np.nan)
    numbers = {
        value: float(code) for code, value in enumerate(categories.tolist()) if value is not None and value == value
    }
    return np.array([numbers.get(value, np.nan) for value in values.tolist()], np.float64)


class CompiledTrees:
    """Trees as native code; `shine.trees.compile` makes it.

    It is compiled when it is first called, may be called by many threads at once, and can be pickled.

    Parameters
    ----------
    reading : Reading
        The estimator as it was read.

    Attributes
    ----------
    reading : Reading
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return type(self), (self.reading,)

    def __repr__(self) -> str:
        ensemble = self.reading.ensemble
        return (
            f"<{type(self).__name__} of {self.reading.name}: {len(ensemble.trees)} trees, {ensemble.n_leaves} leaves>"
        )

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.reading.ensemble.n_features

    @property
    def ir(self) -> str:
        """LLVM IR for this processor, before LLVM's own passes; it has no trees in it, which are data."""
        return self._linked.ir

    @property
    def report(self) -> str:
        """Method of computing the trees."""
        return "\n".join(self._linked.layout.report)

    def code(self, name: str | None = None, *, method: str | None = None, **options: Unpack[Options]) -> TreeCode:
        """Code for a target, which makes files of itself; the arguments and errors are those of `shine.trees.build`."""
        return tree_code(self.reading, Order.of("f" if name is None else name, **options), method)

    @cached_property
    def _linked(self) -> TreeKernel:
        return TreeKernel(self.reading.ensemble)

    @cached_property
    def _plain(self) -> TreeKernel:
        """The sums themselves."""
        ensemble = self.reading.ensemble
        return self._linked if ensemble.link == "identity" else TreeKernel(replace(ensemble, link="identity"))

    @cached_property
    def _forbidden(self) -> int:
        """Values that rows must not have."""
        return (0 if self.reading.allows_nan else MISSING) | (0 if self.reading.allows_infinite else INFINITE)

    def _run(self, kernel: TreeKernel, X: Any, threads: int | None) -> Floats:
        check_threads(threads)
        reading = self.reading
        if not reading.categories and (made := kernel.of_array(X, self._forbidden)) is not None:
            return made
        results, found = kernel(rows_of(X, reading), threads)
        if found & MISSING and not reading.allows_nan:
            raise ValueError(f"X has NaN, which a {reading.name} does not take; fill in missing values first")
        if found & INFINITE and not reading.allows_infinite:
            raise ValueError(f"X has infinity, or a number too large for {reading.ensemble.rounding}")
        return results


class CompiledRegressor(CompiledTrees):
    """A compiled regressor; see `CompiledTrees`."""

    def predict(self, X: Any, *, threads: int | None = None) -> Floats:
        """Predicted values.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Arrays of float64 or float32 are not copied, whatever their strides.
        threads : int, optional
            Most threads; by default as many as there are processors, if there are rows enough.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)

        Raises
        ------
        TypeError, ValueError
            If `X` is no such matrix, or has values that the estimator does not take.
        """
        results = self._run(self._linked, X, threads)
        return results if self.reading.n_targets > 1 else results[:, 0]


class CompiledClassifier(CompiledTrees):
    """A compiled classifier; see `CompiledTrees`."""

    @property
    def classes_(self) -> Any:
        """Classes of the target, or of each target."""
        classes = self.reading.classes
        return classes[0] if len(classes) == 1 else list(classes)

    def predict(self, X: Any, *, threads: int | None = None) -> AnyArray:
        """Predicted classes, shape (n_rows,) or (n_rows, n_targets); arguments and errors as of `predict_proba`."""
        sums = self._run(self._plain, X, threads)
        classes = self.reading.classes
        if len(classes) == 1:
            if sums.shape[1] == 1 and len(classes[0]) > 1:
                return classes[0].take((sums[:, 0] > self.reading.threshold).astype(np.intp))
            return classes[0].take(np.argmax(sums, axis=1))
        found: AnyArray = np.zeros((len(sums), len(classes)), classes[0].dtype)
        for target, share in enumerate(self._split(sums)):
            found[:, target] = classes[target].take(np.argmax(share, axis=1))
        return found

    def predict_proba(self, X: Any, *, threads: int | None = None) -> Any:
        """Probabilities of the classes.

        Arguments and errors are those of `CompiledRegressor.predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or list of one for each target
        """
        results = self._run(self._linked, X, threads)
        return results if len(self.reading.classes) == 1 else self._split(results)

    def _split(self, shares: Floats) -> list[Floats]:
        """Columns of each target."""
        ends = np.cumsum([len(each) for each in self.reading.classes])[:-1]
        return [np.ascontiguousarray(part) for part in np.split(shares, ends, axis=1)]


class CompiledBoostedClassifier(CompiledClassifier):
    """A compiled classifier by gradient boosting; see `CompiledTrees`."""

    def decision_function(self, X: Any, *, threads: int | None = None) -> Floats:
        """Sums of the trees, shape (n_rows,) for two classes, else (n_rows, n_classes); arguments as of `predict`."""
        sums = self._run(self._plain, X, threads)
        return sums[:, 0] if sums.shape[1] == 1 else sums


def compiled_of(reading: Reading) -> CompiledTrees:
    """The compiled estimator of a reading."""
    if not reading.classes:
        return CompiledRegressor(reading)
    return (CompiledBoostedClassifier if reading.is_boosted else CompiledClassifier)(reading)


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
