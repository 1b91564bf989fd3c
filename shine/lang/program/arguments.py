"""The arrays a program is called with: which parameter gets which, of what type, and whether their shapes fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from shine.lang.program.program import Parameter, Program
from shine.typing import AnyArray

Shape = tuple[int, ...]


def argument_arrays(program: Program, arguments: Sequence[ArrayLike], named: Mapping[str, ArrayLike]) -> list[AnyArray]:
    """The values of all parameters, the bound ones too, each of its storage type; not yet broadcast.

    Parameters
    ----------
    program : Program
    arguments : sequence of array-like
        In the order of the parameters that are arguments.
    named : mapping of str to array-like
        By label or name.

    Raises
    ------
    TypeError
        If arguments are missing, too many, no numbers, or do not fit their type.
    """
    free = program.arguments
    names = {parameter.name: parameter for parameter in free} | {parameter.label: parameter for parameter in free}
    given = {parameter.name: value for parameter, value in zip(free, arguments, strict=False)}
    problem = "too many arguments" if len(arguments) > len(free) else None
    for key, value in named.items():
        if key not in names or names[key].name in given:
            problem = problem or f"unexpected {key!r}"
        else:
            given[names[key].name] = value
    for parameter in free:
        if parameter.name not in given and parameter.default is None:
            problem = problem or f"missing {parameter.label!r}"
    if problem:
        labels = ", ".join(f"{parameter.label}: {parameter.dtype}" for parameter in free)
        raise TypeError(f"the program takes ({labels}): {problem}")
    return [_array(parameter, given.get(parameter.name)) for parameter in program.parameters]


def _array(parameter: Parameter, value: ArrayLike | None) -> AnyArray:
    if value is None:
        value = parameter.value if parameter.value is not None else parameter.default
    array = np.asarray(value)
    if array.dtype == np.dtype(parameter.dtype):
        return array
    if array.dtype.kind not in "biuf":
        raise TypeError(f"input {parameter.label!r} has dtype {array.dtype}; numbers are needed")
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(parameter.dtype)
    if converted.dtype.kind != "f" and not np.array_equal(converted, array):
        problem = (
            "it has other numbers than 0 and 1" if parameter.dtype == "bool" else "it has fractions, or is too large"
        )
        raise TypeError(f"input {parameter.label!r} does not fit {parameter.dtype}: {problem}")
    return converted


def broadcast_shape(parameters: Sequence[Parameter], arrays: Sequence[AnyArray]) -> Shape:
    """The shape that arrays broadcast to.

    Raises
    ------
    ValueError
        If they do not fit; the message names two that differ.
    """
    shape: Shape = ()
    for position, array in enumerate(arrays):
        try:
            shape = np.broadcast_shapes(shape, array.shape)
        except ValueError:
            culprit = next(i for i in range(position) if not _fit(arrays[i].shape, array.shape))
            first, second = parameters[culprit], parameters[position]
            raise ValueError(
                f"the shapes of inputs {first.label!r}, {arrays[culprit].shape}, and {second.label!r}, {array.shape}, "
                "do not fit each other"
            ) from None
    return shape


def _fit(first: Shape, second: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False))
