"""Images of another size, as torch's `interpolate` makes them: places are computed as in its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.resizing import resize_linear, resize_nearest
from shine.tensor.imported.building import Operand
from shine.tensor.torch.call import Call

_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w")}
"""Arguments with the factors of enlargement, by the number of axes that are resized."""


def _nearest(call: Call) -> Operand:
    value = call.first.value
    for axis, old, new, scale in _axes(call):
        places = np.arange(new, dtype=np.float32) * _step(old, new, scale, np.float32)
        value = resize_nearest(call.builder, value, axis, np.floor(places))
    return Operand(value)


def _bilinear(call: Call) -> Operand:
    value = call.first.value
    if call.first.dtype not in ("float32", "float64"):
        raise GraphImportError(f"elements {call.first.dtype} are not interpolated; cast them to float32")
    number = call.first.value.type.numpy.type
    for axis, old, new, scale in _axes(call):
        places = np.arange(new).astype(number)
        if call.get("align_corners", False):
            places = places * (number(old - 1) / number(max(new - 1, 1)))
        else:
            places = (places + number(0.5)) * _step(old, new, scale, number) - number(0.5)
        value = resize_linear(call.builder, value, axis, places)
    return Operand(value)


def _axes(call: Call) -> Iterator[tuple[int, int, int, float | None]]:
    """The axes that change, the last one first: their sizes before and after, and the factor if one is given."""
    count = call.first.rank - 2
    scales = call.get("scale_factors") or [call.get(name) for name in _SCALES[count]]
    for place in reversed(range(count)):
        old, new = call.first.shape[place + 2], call.shape[place + 2]
        if old != new:
            yield place + 2, old, new, scales[place]


def _step(old: int, new: int, scale: float | None, number: Callable[[float], Any]) -> Any:
    """Elements of the image from one element of the result to the next one."""
    return number(1 / scale) if scale else number(old) / number(new)


RESIZING: dict[str, Callable[[Call], Operand]] = {
    "upsample_nearest1d": _nearest,
    "upsample_nearest2d": _nearest,
    "upsample_bilinear2d": _bilinear,
}
