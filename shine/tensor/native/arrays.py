"""Checks and conversions of the arrays that a compiled tensor program is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.lang.forms.names import listed, shown
from shine.tensor.native.interface import Interface, Tensor


def bound(interface: Interface, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments in their order.

    Parameters
    ----------
    interface : Interface
    given : sequence
        Arguments by position.
    named : mapping
        Arguments by name or label.

    Raises
    ------
    TypeError
        If one is missing, unknown, or given twice.
    """
    tensors = interface.arguments
    values: dict[int, Any] = dict(enumerate(given))
    for name, value in named.items():
        place = next((i for i, tensor in enumerate(tensors) if name in (tensor.name, tensor.label)), None)
        if place is None:
            raise TypeError(f"{interface.name} has no argument {shown(name)}; it takes {interface.signature}")
        if place in values:
            raise TypeError(f"{interface.name} has two values for argument {shown(name)}")
        values[place] = value
    if len(values) > len(tensors):
        raise TypeError(f"{interface.name} takes {len(tensors)} arguments, not {len(given)}: {interface.signature}")
    missing = [tensor.label for i, tensor in enumerate(tensors) if i not in values]
    if missing:
        raise TypeError(f"{interface.name} needs {listed(missing)}; it takes {interface.signature}")
    return tuple(values[i] for i in range(len(tensors)))


def argument(tensor: Tensor, value: Any) -> AnyArray:
    """An argument as an array in row-major order: itself if it is one, else a copy.

    Raises
    ------
    TypeError
        If it has another element type. Numbers and lists of numbers, which have none, become that type.
    ValueError
        If it has another shape.
    """
    wanted = tensor.type.numpy
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"argument {shown(tensor.label)} has masked elements; fill them")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"argument {shown(tensor.label)} is no array of numbers: its rows differ in length") from None
    except Exception as error:  # whatever the class of a foreign array raises
        raise TypeError(f"argument {shown(tensor.label)} cannot become an array: {error}") from None
    if array.dtype != wanted:
        if array.dtype.kind not in "biufc":
            raise TypeError(f"argument {shown(tensor.label)} is no array of numbers that {wanted} can be")
        if hasattr(value, "dtype") or array.dtype.kind == "c":
            raise TypeError(
                f"argument {shown(tensor.label)} has elements of type {array.dtype}, not {wanted}; "
                f"convert it with astype({wanted.name!r})"
            )
        array = _converted(tensor, array)
    if array.shape != tensor.type.shape:
        raise ValueError(f"argument {shown(tensor.label)} has shape {array.shape}, not {tensor.type.shape}")
    # `require` adds an axis to scalars.
    return np.require(array, requirements=["C", "A"]).reshape(array.shape).view(np.ndarray)


def _converted(tensor: Tensor, array: AnyArray) -> AnyArray:
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(tensor.type.numpy)
    if converted.dtype.kind != "f" and not np.array_equal(converted, array):
        raise TypeError(f"argument {shown(tensor.label)} has numbers that {tensor.type.numpy} has not")
    return converted


def check_outputs(interface: Interface, arrays: Sequence[Any], arguments: Sequence[AnyArray]) -> None:
    """Raise unless the caller's arrays can take the results.

    Parameters
    ----------
    interface : Interface
    arrays : sequence
        One for each result.
    arguments : sequence of ndarray

    Raises
    ------
    TypeError
        If they are no arrays of the results' element types, or too few or many.
    ValueError
        If one has another shape, is not in row-major order, cannot be written, or overlaps another array.
    """
    results = interface.results
    if len(arrays) != len(results):
        raise TypeError(f"out has {len(arrays)} arrays, and {interface.name} has {len(results)} results")
    for place, (tensor, array) in enumerate(zip(results, arrays, strict=True)):
        where = f"out for {shown(tensor.label)}"
        if not isinstance(array, np.ndarray) or array.dtype != tensor.type.numpy:
            found = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{where} must be an array of {tensor.type.numpy}, not {found}")
        if array.shape != tensor.type.shape:
            raise ValueError(f"{where} has shape {array.shape}, not {tensor.type.shape}")
        if not (array.flags.carray and array.dtype.isnative):
            raise ValueError(f"{where} must be writable, and its elements aligned and in row-major order")
        if any(np.may_share_memory(array, other) for other in (*arguments, *arrays[:place])):
            raise ValueError(f"{where} overlaps an argument or another result; use an array of its own")
