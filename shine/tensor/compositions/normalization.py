"""Means, variances, and the layers that divide by them: layer, batch, group, instance and RMS normalization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shine.base.errors import FormError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.types import FLOATS, axes_of, axis_of


def mean(b: FunctionBuilder, x: Value, axes: Sequence[int] | None = None, keep: bool = False) -> Value:
    """The mean of floats over axes, by default over all; NaN over no elements."""
    if x.type.dtype not in FLOATS:
        raise FormError(f"means are of floats, and not of {x.type}; cast it first")
    found, count = axes_of(x.type, axes)
    total = b.emit("reduce_sum", [x], axes=found, keep=keep)[0]
    return b.emit("div", [total, b.like(x, count)])[0]


def variance(
    b: FunctionBuilder, x: Value, axes: Sequence[int] | None = None, keep: bool = False, correction: float = 0
) -> Value:
    """The mean of squared distances from the mean; the divisor is the number of elements minus a correction."""
    found, count = axes_of(x.type, axes)
    return _mean_square(b, _centred(b, x, found), found, keep, max(count - correction, 0))


def layer_norm(
    b: FunctionBuilder,
    x: Value,
    axes: Sequence[int] = (-1,),
    scale: Value | None = None,
    shift: Value | None = None,
    epsilon: float = 1e-5,
) -> Value:
    """Mean 0 and variance 1 over axes, then scaled and shifted (Ba, Kiros, Hinton 2016).

    Parameters
    ----------
    b : FunctionBuilder
    x : Value
        Floats.
    axes : sequence of int
    scale, shift : Value, optional
        They are broadcast to `x`.
    epsilon : float
        Is added to the variance.
    """
    found, count = axes_of(x.type, axes)
    centred = _centred(b, x, found)
    return _affine(b, b.mul(centred, _inverse_root(b, centred, found, count, epsilon)), scale, shift)


def rms_norm(
    b: FunctionBuilder, x: Value, axes: Sequence[int] = (-1,), scale: Value | None = None, epsilon: float = 1e-5
) -> Value:
    """Root mean square 1 over axes, then scaled (Zhang, Sennrich 2019)."""
    found, count = axes_of(x.type, axes)
    return _affine(b, b.mul(x, _inverse_root(b, x, found, count, epsilon)), scale, None)


@dataclass(frozen=True)
class Channels:
    """Normalization of each channel.

    Parameters
    ----------
    scale, shift : Value, optional
        One number a channel, by which it is multiplied, and which is added to it then.
    epsilon : float
        Is added to the variance.
    axis : int
        That of the channels.
    """

    scale: Value | None = None
    shift: Value | None = None
    epsilon: float = 1e-5
    axis: int = -1

    def along(self, b: FunctionBuilder, x: Value, numbers: Value) -> Value:
        """One number a channel, for operations with the elements of `x`."""
        behind = x.type.rank - 1 - axis_of(x.type.rank, self.axis)
        if not behind or not numbers.type.rank:
            return numbers
        return b.emit("reshape", [numbers], shape=(*numbers.type.shape, *[1] * behind))[0]


def batch_norm(b: FunctionBuilder, x: Value, average: Value, variance: Value, channels: Channels) -> Value:
    """Normalization by known averages and variances of channels (Ioffe, Szegedy 2015): one product and one sum."""
    scale, shift = channels.scale, channels.shift
    root = b.sqrt(b.add(variance, b.like(x, channels.epsilon)))
    factor = b.div(b.like(x, 1) if scale is None else scale, root)
    moved = b.mul(average, factor)
    offset = b.neg(moved) if shift is None else b.sub(shift, moved)
    return b.add(b.mul(x, channels.along(b, x, factor)), channels.along(b, x, offset))


def group_norm(b: FunctionBuilder, x: Value, groups: int, channels: Channels) -> Value:
    """Mean 0 and variance 1 over groups of channels of each example, axis 0 (Wu, He 2018).

    The number of groups divides that of channels; as many groups as channels are instance normalization.
    """
    at = axis_of(x.type.rank, channels.axis)
    shape = x.type.shape
    if at == 0 or groups < 1 or shape[at] % groups:
        raise FormError(f"{groups} groups of axis {at} of {x.type}: they must divide an axis other than 0")
    split = (*shape[:at], groups, shape[at] // groups, *shape[at + 1 :])
    axes = [i for i in range(1, len(split)) if i != at]
    normal = layer_norm(b, b.reshape(x, shape=split), axes, epsilon=channels.epsilon)
    aligned = [None if v is None else channels.along(b, x, v) for v in (channels.scale, channels.shift)]
    return _affine(b, b.reshape(normal, shape=shape), *aligned)


def instance_norm(b: FunctionBuilder, x: Value, channels: Channels) -> Value:
    """Mean 0 and variance 1 of each channel of each example (Ulyanov, Vedaldi, Lempitsky 2016)."""
    return group_norm(b, x, x.type.shape[axis_of(x.type.rank, channels.axis)], channels)


def _centred(b: FunctionBuilder, x: Value, axes: tuple[int, ...]) -> Value:
    return b.emit("sub", [x, mean(b, x, axes, keep=True)])[0]


def _mean_square(b: FunctionBuilder, x: Value, axes: tuple[int, ...], keep: bool, count: float) -> Value:
    return b.emit("div", [b.reduce_sum(b.mul(x, x), axes=axes, keep=keep), b.like(x, count)])[0]


def _inverse_root(b: FunctionBuilder, x: Value, axes: tuple[int, ...], count: int, epsilon: float) -> Value:
    """1 / sqrt(mean of squares + epsilon): a division a line instead of one an element."""
    square = _mean_square(b, x, axes, True, count)
    return b.emit("div", [b.like(x, 1), b.sqrt(b.add(square, b.like(x, epsilon)))])[0]


def _affine(b: FunctionBuilder, x: Value, scale: Value | None, shift: Value | None) -> Value:
    if scale is not None:
        x = b.mul(x, scale)
    return x if shift is None else b.emit("add", [x, shift])[0]
