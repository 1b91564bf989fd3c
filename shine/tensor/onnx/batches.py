"""Shapes for models that leave the number of rows open."""

from __future__ import annotations

import os

from shine.tensor.onnx.files import read_model


def batch_shapes(source: str | os.PathLike[str] | bytes, rows: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs of which only the first axis is open, with so many rows.

    Parameters
    ----------
    source : str, path or bytes
        An ONNX model.
    rows : int

    Raises
    ------
    GraphImportError
        If it is none.
    """
    graph = read_model(source)[0].graph
    constants = {tensor.name for tensor in graph.initializer}
    found = {}
    for given in graph.input:
        sizes = given.type.tensor_type.shape.dim
        if given.name in constants or not sizes or sizes[0].HasField("dim_value"):
            continue
        if all(size.HasField("dim_value") for size in sizes[1:]):
            found[given.name] = (rows, *(size.dim_value for size in sizes[1:]))
    return found
