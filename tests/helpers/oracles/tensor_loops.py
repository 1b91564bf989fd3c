"""The meaning of each tensor operation in plain Python, element by element: numbers are ints, floats and bools."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

from shine.tensor.form.module import Instruction


def by_loops(instruction: Instruction, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Results of an instruction that calls no function; integers are exact, then wrapped."""
    name, attributes = instruction.operation, instruction.attributes
    types = [result.type for result in instruction.results]
    if name in _PLACES or name in _NUMBERS:
        rule = _PLACES.get(name) or _elementwise(_NUMBERS[name])
        results = [np.empty(type.shape, object) for type in types]
        for place in np.ndindex(types[0].shape):
            results[0][place] = rule(place, operands, attributes)
    else:
        results = [np.empty(type.shape, object) for type in types]
        _WHOLE[name](results, operands, attributes)
    return tuple(_made(result, type.numpy) for result, type in zip(results, types, strict=True))


def _made(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    found = np.empty(values.shape, dtype)
    for place in np.ndindex(values.shape):
        value = values[place]
        if dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            value = int(value) % 2**bits
            value -= 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else 0
        with np.errstate(all="ignore"):
            found[place] = value
    return found


def at(operand: np.ndarray, place: tuple[int, ...]) -> Any:
    """The element that broadcasting puts at a place."""
    own = place[len(place) - operand.ndim :] if operand.ndim else ()
    return operand[tuple(0 if size == 1 else i for i, size in zip(own, operand.shape, strict=True))].item()


def _elementwise(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda place, operands, attributes: rule(*(at(operand, place) for operand in operands))


def _quiet(rule: Callable[..., float]) -> Callable[..., float]:
    """Without Python's exceptions: infinite instead of too large, NaN outside of the domain."""

    def run(*values: float) -> float:
        try:
            return rule(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return run


def _is_float(*values: Any) -> bool:
    return isinstance(values[0], float)


def _div(a: Any, b: Any) -> Any:
    if not _is_float(a):
        return 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _floordiv(a: Any, b: Any) -> Any:
    if b == 0:
        return _div(a, b)
    return math.nan if _is_float(a) and math.isinf(a) else a // b


def _mod(a: Any, b: Any) -> Any:
    if b == 0:
        return math.nan if _is_float(a) else 0
    return math.nan if _is_float(a) and math.isinf(a) else a % b


def _pow(a: Any, b: Any) -> Any:
    if _is_float(a):
        sign = -1 if math.copysign(1, a) < 0 and abs(b) < 2**53 and b % 2 == 1 else 1
        if a == 0 and b < 0:
            return sign * math.inf
        found = _quiet(math.pow)(a, b)
        return sign * found if found == math.inf else found
    if b >= 0:
        # Modulo a power of two that every width divides: the power itself may have billions of digits.
        return pow(a, b, 1 << 64)
    return 0 if abs(a) != 1 else a if b % 2 else 1


def _least(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def _most(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


def _whole(rule: Callable[[float], int]) -> Callable[[Any], Any]:
    def run(a: Any) -> Any:
        if not _is_float(a) or not math.isfinite(a):
            return a
        return math.copysign(float(rule(a)), a)

    return run


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _div,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "min": _least,
    "max": _most,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: a if a != a else (a > 0) - (a < 0),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "sqrt": _quiet(math.sqrt),
    "exp": _quiet(math.exp),
    "log": lambda a: -math.inf if a == 0 else _quiet(math.log)(a),
    "sinh": lambda a: a if math.isinf(a) else math.copysign(abs(_quiet(math.sinh)(a)), a),
    **{n: _quiet(getattr(math, n)) for n in ("sin", "cos", "tan", "asin", "acos", "atan", "cosh", "tanh")},
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "select": lambda condition, a, b: a if condition else b,
}


def _cast(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    value, dtype = at(operands[0], place), attributes["dtype"]
    if dtype == "bool":
        return value != 0
    if dtype[0] == "f" or not isinstance(value, float):
        return value
    bits, signed = int(dtype[1:]), dtype[0] == "i"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if math.isnan(value):
        return 0
    return high if value > high else low if value < low else math.trunc(value)


def _padded(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    source, filling = operands
    own = []
    for i, low, between, size in zip(place, attributes["low"], attributes["interior"], source.shape, strict=True):
        index, rest = divmod(i - low, between + 1)
        if rest or not 0 <= index < size:
            return filling.item()
        own.append(index)
    return source[tuple(own)].item()


def _reshaped(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    number = 0
    for i, size in zip(place, attributes["shape"], strict=True):
        number = number * size + i
    own = []
    for size in reversed(operands[0].shape):
        number, i = divmod(number, size)
        own.append(i)
    return operands[0][tuple(reversed(own))].item()


def _concatenated(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    axis, i = attributes["axis"], place[attributes["axis"]]
    for operand in operands:
        if i < operand.shape[axis]:
            return operand[(*place[:axis], i, *place[axis + 1 :])].item()
        i -= operand.shape[axis]
    raise AssertionError("beyond the end")


def _gathered(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    source, indices = operands
    axis = attributes["axis"]
    index = int(indices[place[axis : axis + indices.ndim]])
    index = min(max(index, 0), source.shape[axis] - 1)
    return source[(*place[:axis], index, *place[axis + indices.ndim :])].item()


def _dot(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    left, right = operands
    inside = list(place)
    column = (inside.pop(),) if right.ndim > 1 else ()
    row = (inside.pop(),) if left.ndim > 1 else ()
    total = 0
    for k in range(left.shape[-1]):
        a = at(left, (*inside, *row, k)) if left.ndim > 1 else left[k].item()
        b = at(right, (*inside, k, *column)) if right.ndim > 1 else right[k].item()
        total += a * b
    return total


def _convolved(place: tuple[int, ...], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> Any:
    image, kernel = operands
    batch, *where, filter = place
    channels = kernel.shape[-2]
    first = filter // (kernel.shape[-1] // attributes["groups"]) * channels
    total = 0.0
    for offset in np.ndindex(kernel.shape[:-2]):
        parts = zip(where, offset, attributes["strides"], attributes["dilation"], attributes["low"], strict=True)
        seen = [i * stride + k * by - low for i, k, stride, by, low in parts]
        if all(0 <= i < size for i, size in zip(seen, image.shape[1:-1], strict=True)):
            for c in range(channels):
                total += image[(batch, *seen, first + c)].item() * kernel[(*offset, c, filter)].item()
    return total


_PLACES: dict[str, Callable[..., Any]] = {
    "cast": _cast,
    "constant": lambda place, operands, attributes: attributes["value"][place].item(),
    "broadcast": lambda place, operands, attributes: at(operands[0], place),
    "reshape": _reshaped,
    "transpose": lambda place, operands, attributes: operands[0][
        tuple(place[attributes["permutation"].index(axis)] for axis in range(len(place)))
    ].item(),
    "slice": lambda place, operands, attributes: (
        operands[0][tuple(a + i * by for a, i, by in zip(attributes["start"], place, attributes["step"], strict=True))]
    ).item(),
    "pad": _padded,
    "concatenate": _concatenated,
    "gather": _gathered,
    "dot": _dot,
    "convolve": _convolved,
}
"""One element of the result: its place, the operands and the attributes -> a number."""


def _reduced(step: Callable[[Any, Any], Any], start: Any) -> Callable[..., None]:
    """Loops over all elements; without a start, the first element of each result is where it begins."""

    def run(results: list[np.ndarray], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> None:
        results[0].fill(start)
        for place in np.ndindex(operands[0].shape):
            to = tuple(
                0 if axis in attributes["axes"] else i
                for axis, i in enumerate(place)
                if attributes["keep"] or axis not in attributes["axes"]
            )
            value, old = operands[0][place].item(), results[0][to]
            results[0][to] = value if old is None else step(old, value)

    return run


def _lines(operand: np.ndarray, axis: int) -> list[tuple[tuple[int, ...], list[Any]]]:
    moved = np.moveaxis(operand, axis, -1)
    return [(place, [e.item() for e in moved[place]]) for place in np.ndindex(moved.shape[:-1])]


def _arg(better: Callable[[Any, Any], bool]) -> Callable[..., None]:
    def run(results: list[np.ndarray], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> None:
        for place, line in _lines(operands[0], attributes["axis"]):
            best = 0
            for i, value in enumerate(line):
                if line[best] == line[best] and (value != value or better(value, line[best])):
                    best = i
            results[0][place] = best

    return run


def _order(line: list[Any], descending: bool) -> list[int]:
    def compare(a: int, b: int) -> int:
        x, y = line[a], line[b]
        nan = (x != x) - (y != y)
        found = nan or (x > y) - (x < y)
        return (-found if descending else found) or a - b

    return sorted(range(len(line)), key=cmp_to_key(compare))


def _sorted(results: list[np.ndarray], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> None:
    values, places = (np.moveaxis(result, attributes["axis"], -1) for result in results)
    for place, line in _lines(operands[0], attributes["axis"]):
        for i, source in enumerate(_order(line, attributes["descending"])):
            values[(*place, i)], places[(*place, i)] = line[source], source


def _largest(results: list[np.ndarray], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> None:
    for place, line in _lines(operands[0], -1):
        for i, source in enumerate(_order(line, True)[: attributes["k"]]):
            results[0][(*place, i)], results[1][(*place, i)] = line[source], source


def _scattered(results: list[np.ndarray], operands: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> None:
    source, indices, slices = operands
    axis = attributes["axis"]
    for place in np.ndindex(source.shape):
        results[0][place] = source[place].item()
    for place in np.ndindex(slices.shape):
        index = int(indices[place[axis : axis + indices.ndim]])
        if 0 <= index < source.shape[axis]:
            results[0][(*place[:axis], index, *place[axis + indices.ndim :])] += slices[place].item()


_WHOLE: dict[str, Callable[..., None]] = {
    "reduce_sum": _reduced(lambda a, b: a + b, 0),
    "reduce_prod": _reduced(lambda a, b: a * b, 1),
    "reduce_max": _reduced(lambda a, b: a if a != a or a >= b else b, None),
    "reduce_min": _reduced(lambda a, b: a if a != a or a <= b else b, None),
    "argmax": _arg(lambda a, b: a > b),
    "argmin": _arg(lambda a, b: a < b),
    "sort": _sorted,
    "top_k": _largest,
    "scatter_add": _scattered,
}
"""All elements at once: results to fill, operands and attributes."""
