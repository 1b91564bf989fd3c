"""A network as a function from rows of features to rows of outputs, whatever it was made with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, FormError, GraphImportError
from shine.base.typing import AnyArray, Floats
from shine.lang.forms.names import identifier, listed, shown, value_text
from shine.tensor.form.module import Module
from shine.tensor.form.types import FLOATS
from shine.tensor.form.verifier import without_dead
from shine.tensor.loading import format_of, load
from shine.tensor.native.function import TensorFunction
from shine.tensor.native.interface import Tensor
from shine.tensor.onnx.node import batch_shapes

BATCH = 64
"""Rows of a batch whose size the network leaves open."""


@dataclass(frozen=True)
class Network:
    """A network that is called with rows of features.

    Parameters
    ----------
    call : callable
        Array of shape (n_rows, n_features), float64 -> arrays of shape (n_rows,) or (n_rows, n), one for each result.
    labels : tuple of str
        Names of the results.
    dtype : dtype
        Of the inputs: features are rounded to it before they are used anywhere.
    """

    call: Callable[[Floats], Sequence[AnyArray]]
    labels: tuple[str, ...]
    dtype: Any = np.float64

    def rounded(self, X: Floats) -> Floats:
        """Features as the network sees them."""
        return X.astype(self.dtype).astype(np.float64)

    def outputs(self, X: Floats) -> tuple[tuple[str, ...], Floats]:
        """Names of the outputs, and their values for rows, shape (n_rows, n_outputs).

        A `DataError` if it gives other than one row of floating-point numbers for each row of features.
        """
        results = self.call(X)
        names: list[str] = []
        columns: list[Floats] = []
        for label, result in zip(self.labels, results, strict=True):
            found = np.asarray(result)
            if found.dtype.kind != "f":
                raise DataError(f"{label} of the network has elements of {found.dtype}; a formula has real values")
            if found.ndim not in (1, 2) or len(found) != len(X):
                raise DataError(
                    f"{label} of the network has the shape {list(found.shape)} for {len(X)} rows; it must give a "
                    "number or a row of numbers for each row"
                )
            table = found.astype(np.float64).reshape(len(X), -1)
            name = identifier(label)
            names += [name] if table.shape[1] == 1 else [f"{name}_{place}" for place in range(table.shape[1])]
            columns.append(table)
        return tuple(names), np.concatenate(columns, axis=1)


def network_of(model: Any, features: Sequence[str], layer: str | None, reading: Mapping[str, Any]) -> Network:
    """The network that a user means (see `shine.distil`).

    Raises
    ------
    DataError
        If it does not take these features, or has no such layer.
    GraphImportError, FormError
        If a file or program cannot be read.
    TypeError
        If the model is none.
    """
    torch_module = type(model).__module__ != "builtins" and hasattr(model, "named_modules") and callable(model)
    if torch_module:
        model = exported(model, len(features), BATCH)
    if isinstance(model, TensorFunction | Module):
        if reading:
            raise TypeError(
                f"a compiled network has no option {shown(next(iter(reading)))}; give the file in its place"
            )
        function = model if isinstance(model, TensorFunction) else load(model)
        return compiled(function if layer is None else cut(function, layer), features)
    if isinstance(model, str | bytes | os.PathLike) or type(model).__module__.startswith("torch.export"):
        return compiled(_read(model, layer, dict(reading)), features)
    if not callable(model):
        raise TypeError(
            f"{value_text(model)} is no network; give a file, a function of shine.tensor, a module or an "
            "ExportedProgram of torch, or any function of an array"
        )
    if layer is not None:
        raise TypeError("a Python function has no layers that can be named; give a function that returns the layer")
    return Network(lambda X: (model(X),), ("output",))


def _read(model: Any, layer: str | None, reading: dict[str, Any]) -> TensorFunction:
    format = reading.get("format")
    if format is None:
        is_path = isinstance(model, str | os.PathLike) and not str(model).lstrip().startswith("module @")
        format = format_of(Path(model) if is_path else model)
    if format == "onnx" and "shapes" not in reading:
        reading["shapes"] = batch_shapes(model, BATCH)
    if layer is None:
        return load(model, **reading)
    if reading.get("config") is not None or reading.get("fetches") is not None:
        raise TypeError("a layer takes the place of config and fetches; leave them out, and give feeds if needed")
    if format == "text":
        return cut(load(model, **reading), layer)
    return load(model, **{**reading, "fetches": [layer]})


def cut(function: TensorFunction, layer: str) -> TensorFunction:
    """The function that computes a value inside of another one; a `FormError` if there is no value of that name."""
    body = function.module.function(function.function)
    values = {value.name: value for each in body.body for value in each.results}
    if layer not in values:
        raise FormError(f"there is no layer {shown(layer)}; there are {listed(values)}")
    inner = without_dead(replace(body, results=(values[layer],)))
    return TensorFunction(
        function.module.with_functions(inner), function.function, name=function.name, opt_level=function.opt_level
    )


def compiled(function: TensorFunction, features: Sequence[str]) -> Network:
    """A compiled network; its batch has a fixed size, so rows are given in blocks of it.

    A `DataError` if its inputs are no rows of these features.
    """
    inputs, results = function.parameters, function.results
    for tensor, what in (*((each, "input") for each in inputs), *((each, "result") for each in results)):
        if tensor.type.dtype not in FLOATS:
            raise DataError(f"{what} {tensor} is not of floating-point numbers; cut the network behind or before it")
    if not inputs:
        raise DataError("the network has no inputs")
    batch, widths = _layout(inputs, len(features))
    order = _order(inputs, widths, features)
    dtype = np.float32 if any(each.type.dtype == "f32" for each in inputs) else np.float64
    for tensor in results:
        if tensor.type.rank > 2 or (batch is not None and tensor.type.shape[:1] != (batch,)):
            wanted = "a number or a row of numbers" if batch is None else f"{batch} numbers, or {batch} rows of numbers"
            raise DataError(f"the result {tensor} cannot be distilled: {wanted} would be, for the inputs that it has")
        if batch is None and tensor.type.rank == 2 and tensor.type.shape[0] != 1:
            raise DataError(f"the result {tensor} cannot be distilled: a number or a row of numbers would be")

    def call(X: Floats) -> Sequence[AnyArray]:
        size = batch or 1
        made: list[list[AnyArray]] = [[] for _ in results]
        for start in range(0, len(X), size):
            block = X[start : start + size]
            rows = len(block)
            # The last row fills the block: what stands in these rows is not used.
            block = np.concatenate([block, np.repeat(block[-1:], size - rows, axis=0)])
            arguments = [
                np.ascontiguousarray(block[:, columns].reshape(each.type.shape), each.type.numpy)
                for each, columns in zip(inputs, order, strict=True)
            ]
            found = function(*arguments)
            for place, result in enumerate(found if len(results) > 1 else (found,)):
                made[place].append(np.asarray(result).reshape(size, -1)[:rows])
        return [np.concatenate(parts) for parts in made]

    return Network(call, tuple(each.label for each in results), dtype)


def _layout(inputs: Sequence[Tensor], features: int) -> tuple[int | None, list[int]]:
    """Rows of the batch, None if each call takes one row without an axis for it; and columns of each input."""
    shapes = [each.type.shape for each in inputs]
    taken = f"the network takes {listed(map(str, inputs))}"
    if any(len(shape) > 2 for shape in shapes):
        raise DataError(f"{taken}; inputs of one axis or two, (rows, features), can be distilled")
    if all(len(shape) == 2 for shape in shapes) or (all(shape for shape in shapes) and len(inputs) == features):
        batches = {shape[0] for shape in shapes}
        widths = [shape[1] if len(shape) == 2 else 1 for shape in shapes]
        batch = batches.pop()
        if batches:
            raise DataError(f"{taken}, whose numbers of rows differ; cut it where each row stands for itself")
        if batch == 0:
            raise DataError(f"{taken}, which has no rows")
    elif all(len(shape) < 2 for shape in shapes):
        batch, widths = None, [shape[0] if shape else 1 for shape in shapes]
    else:
        raise DataError(f"{taken}; either all inputs have an axis for rows, or none")
    if sum(widths) != features:
        also = f", or {len(inputs)} of a batch" if batch is None and all(shapes) else ""
        raise DataError(f"{taken}: {sum(widths)} features{also}, and {features} are given")
    return batch, widths


def _order(inputs: Sequence[Tensor], widths: Sequence[int], features: Sequence[str]) -> list[list[int]]:
    """Columns that each input takes: by name if all inputs are named like features, else in order."""
    labels = [each.label for each in inputs]
    single = all(width == 1 for width in widths)
    if single and sorted(labels) == sorted(features):
        return [[list(features).index(label)] for label in labels]
    if single and set(labels) & set(features):
        raise GraphImportError(
            f"the inputs of the network are {listed(labels)}, and the features {listed(features)}; name all features "
            "like the inputs, or none"
        )
    ends = np.cumsum([0, *widths])
    return [list(range(start, end)) for start, end in pairwise(ends.tolist())]


def exported(module: Any, features: int, batch: int) -> Any:
    """The program of a module that takes one tensor of shape (batch, features).

    Parameters
    ----------
    module : torch.nn.Module
    features, batch : int

    Raises
    ------
    GraphImportError
        If torch cannot export it.
    """
    import torch

    first = next(module.parameters(), None)
    example = torch.zeros(batch, features) if first is None else first.detach().new_zeros(batch, features)
    training = [each for each in module.modules() if each.training]
    module.eval()
    try:
        with warnings.catch_warnings():
            # Torch warns of its own code.
            warnings.simplefilter("ignore")
            return torch.export.export(module, (example,))
    except Exception as error:
        # Whatever the module raises for rows of so many features.
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise GraphImportError(
            f"torch cannot export the module for a tensor of {batch} rows and {features} features: {reason}; "
            "for other inputs, give torch.export.export(module, inputs)"
        ) from None
    finally:
        for each in training:
            each.training = True
