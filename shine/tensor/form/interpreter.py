"""The reference interpreter: the meaning of each operation in NumPy. It is the oracle of the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from shine.base.errors import FormError
from shine.lang.interpret import INTEGER_REFERENCE, REFERENCE, ZERO_DIVISORS
from shine.tensor.form.module import Function, Instruction, Module
from shine.tensor.form.operations import FROM_THE_LANGUAGE
from shine.tensor.form.types import DTYPES

Array: TypeAlias = np.ndarray
Meaning: TypeAlias = Callable[..., Any]
"""Arrays, and attributes by keyword -> an array, or a tuple of arrays."""


def interpret(module: Module, name: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """Results of a function.

    Parameters
    ----------
    module : Module
        Verified.
    name : str
        A function with a body.
    arguments : sequence of ndarray
        Of the parameters' types.

    Returns
    -------
    tuple of ndarray
        One for each result. Floats are computed in their own precision.

    Raises
    ------
    FormError
        If there is no such function, or the arguments have other types.
    """
    function = module.function(name)
    given = [np.asarray(argument) for argument in arguments]
    wanted = [(type.shape, type.numpy) for type in function.parameter_types]
    if [(array.shape, array.dtype) for array in given] != wanted:
        types = ", ".join(map(str, function.parameter_types))
        raise FormError(f"@{name} takes ({types}); given are arrays of {[(a.shape, str(a.dtype)) for a in given]}")
    with np.errstate(all="ignore"):
        return _run(module, function, given)


def _run(module: Module, function: Function, arguments: Sequence[Array]) -> tuple[Array, ...]:
    values = dict(zip(function.parameters, arguments, strict=True))
    for instruction in function.body:
        operands = [values[operand] for operand in instruction.operands]
        found = evaluate(instruction, operands, lambda name, given: _run(module, module.function(name), given))
        for result, array in zip(instruction.results, found, strict=True):
            values[result] = np.asarray(array, result.type.numpy).reshape(result.type.shape)
    return tuple(values[result] for result in function.results)


def evaluate(
    instruction: Instruction,
    operands: Sequence[Array],
    called: Callable[[str, Sequence[Array]], tuple[Array, ...]] | None = None,
) -> tuple[Array, ...]:
    """Results of one instruction.

    Parameters
    ----------
    instruction : Instruction
    operands : sequence of ndarray
    called : callable, optional
        Results of a function of the module; needed by instructions that call.
    """
    name, attributes = instruction.operation, instruction.attributes
    if name in FROM_THE_LANGUAGE:
        return (_elementwise(name, operands),)
    if name in _CALLS:
        if called is None:
            raise FormError(f"{name} calls functions, and there is no module here")
        return _CALLS[name](called, operands, attributes)
    found = MEANINGS[name](*operands, **attributes)
    return found if isinstance(found, tuple) else (found,)


def _elementwise(name: str, operands: Sequence[Array]) -> Array:
    """A primitive of the language."""
    kind = operands[0].dtype.kind
    if kind in "fb":
        # Truth is compared only, and only comparisons take it.
        return REFERENCE[name](*(operand.astype(np.int8) if kind == "b" else operand for operand in operands))
    arrays = list(np.broadcast_arrays(*operands))
    if name not in ZERO_DIVISORS:
        return INTEGER_REFERENCE[name](*arrays)
    place, is_zero = ZERO_DIVISORS[name]
    zero = is_zero(*arrays)
    arrays[place] = np.where(zero, np.ones_like(arrays[place]), arrays[place])
    return np.where(zero, np.zeros_like(arrays[0]), INTEGER_REFERENCE[name](*arrays))


def _cast(operand: Array, dtype: str) -> Array:
    target = DTYPES[dtype]
    if operand.dtype.kind != "f" or target.kind not in "iu":
        return operand.astype(target)
    limits = np.iinfo(target)
    # The largest integer may not be a float: what reaches the power of two above it saturates.
    above, below = operand >= 2.0 ** (limits.bits - (target.kind == "i")), operand <= float(limits.min)
    inside = np.where(above | below | np.isnan(operand), 0, operand).astype(target)
    return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(target)


def _pad(operand: Array, filling: Array, low: Any, high: Any, interior: Any) -> Array:
    sizes = [
        size + max(size - 1, 0) * between + before + after
        for size, before, after, between in zip(operand.shape, low, high, interior, strict=True)
    ]
    padded = np.full(sizes, filling, operand.dtype)
    inside = tuple(
        slice(before, before + max((size - 1) * (between + 1) + 1, 0), between + 1)
        for size, before, between in zip(operand.shape, low, interior, strict=True)
    )
    padded[inside] = operand
    return padded


def _gather(operand: Array, indices: Array, axis: int) -> Array:
    return np.take(operand, np.clip(indices, 0, max(operand.shape[axis] - 1, 0)), axis=axis)


def _scatter_add(operand: Array, indices: Array, slices: Array, axis: int) -> Array:
    """Add slices in the order of the indices."""
    result = np.moveaxis(operand, axis, 0).copy()
    lines = np.moveaxis(slices, range(axis, axis + indices.ndim), range(indices.ndim))
    for place in np.ndindex(indices.shape):
        if 0 <= indices[place] < operand.shape[axis]:
            result[indices[place]] += lines[place]
    return np.moveaxis(result, 0, axis)


def _reduction(reduce: Callable[..., Array]) -> Meaning:
    return lambda operand, axes, keep: reduce(operand, axis=axes, keepdims=keep, dtype=operand.dtype)


def _extremum(reduce: Callable[..., Array]) -> Meaning:
    return lambda operand, axes, keep: reduce(operand, axis=axes, keepdims=keep)


def _sort(operand: Array, axis: int, descending: bool) -> tuple[Array, Array]:
    if descending:
        # The last of the reversed line is the first of equals.
        turned = np.flip(operand, axis)
        order = operand.shape[axis] - 1 - np.flip(np.argsort(turned, axis, kind="stable"), axis)
    else:
        order = np.argsort(operand, axis, kind="stable")
    return np.take_along_axis(operand, order, axis), order


def _top_k(operand: Array, k: int) -> tuple[Array, Array]:
    values, order = _sort(operand, operand.ndim - 1, True)
    return values[..., :k], order[..., :k]


def _convolve(image: Array, kernel: Array, strides: Any, low: Any, high: Any, dilation: Any, groups: int) -> Array:
    """A sum of matrix products, one for each place of the kernel."""
    space = kernel.shape[:-2]
    padded = np.pad(image, [(0, 0), *zip(low, high, strict=True), (0, 0)])
    counts = [
        max((size - (wide - 1) * by - 1) // stride + 1, 0)
        for size, wide, by, stride in zip(padded.shape[1:-1], space, dilation, strides, strict=True)
    ]
    filters = kernel.shape[-1] // groups
    result = np.zeros((image.shape[0], *counts, kernel.shape[-1]), image.dtype)
    for place in product(*map(range, space)):
        seen = tuple(
            slice(at * by, at * by + (count - 1) * stride + 1 if count else 0, stride)
            for at, by, stride, count in zip(place, dilation, strides, counts, strict=True)
        )
        window = padded[(slice(None), *seen)]
        for group in range(groups):
            channels = slice(group * kernel.shape[-2], (group + 1) * kernel.shape[-2])
            made = slice(group * filters, (group + 1) * filters)
            result[..., made] += window[..., channels] @ kernel[place][:, made]
    return result


def _cond(called: Any, operands: Sequence[Array], attributes: Mapping[str, Any]) -> tuple[Array, ...]:
    results: tuple[Array, ...] = called(attributes["true" if operands[0] else "false"], operands[1:])
    return results


def _while(called: Any, operands: Sequence[Array], attributes: Mapping[str, Any]) -> tuple[Array, ...]:
    state = tuple(operands)
    while called(attributes["condition"], state)[0]:
        state = called(attributes["body"], state)
    return state


_CALLS: dict[str, Callable[[Any, Sequence[Array], Mapping[str, Any]], tuple[Array, ...]]] = {
    "call": lambda called, operands, attributes: called(attributes["function"], operands),
    "cond": _cond,
    "while": _while,
}

MEANINGS: dict[str, Meaning] = {
    "round": np.rint,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "cast": _cast,
    "constant": lambda value: value,
    "broadcast": np.broadcast_to,
    # NumPy before 2.1 has another name for it.
    "reshape": lambda x, *, shape: np.reshape(x, shape),
    "transpose": lambda operand, permutation: np.transpose(operand, permutation),
    "slice": lambda operand, start, stop, step: operand[tuple(map(slice, start, stop, step))],
    "pad": _pad,
    "concatenate": lambda *operands, axis: np.concatenate(operands, axis),
    "gather": _gather,
    "scatter_add": _scatter_add,
    "reduce_sum": _reduction(np.sum),
    "reduce_prod": _reduction(np.prod),
    "reduce_max": _extremum(np.max),
    "reduce_min": _extremum(np.min),
    "argmax": np.argmax,
    "argmin": np.argmin,
    "sort": _sort,
    "top_k": _top_k,
    "dot": np.matmul,
    "convolve": _convolve,
}
"""Meaning of each operation that is neither the language's nor a call."""
