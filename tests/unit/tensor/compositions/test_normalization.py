"""Means and normalization against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions import normalization as n

RNG = np.random.default_rng(5)


def drawn(*shape):
    return RNG.normal(size=shape)


def normal(x, axes, epsilon):
    """(x - mean) / sqrt(variance + epsilon)."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("axes", [None, (0,), (0, -1), (2, 1), ()])
@pytest.mark.parametrize("keep", [False, True])
def test_means_and_variances(axes, keep):
    x = drawn(3, 4, 5) + 7
    kwargs = {"axis": axes, "keepdims": keep}
    np.testing.assert_allclose(evaluated(lambda b, x: n.mean(b, x, axes, keep), x), x.mean(**kwargs), rtol=1e-14)
    np.testing.assert_allclose(
        evaluated(lambda b, x: n.variance(b, x, axes, keep), x), x.var(**kwargs), rtol=1e-12, atol=1e-30
    )


def test_the_correction_of_a_variance():
    x = drawn(6)
    value = evaluated(lambda b, x: n.variance(b, x, correction=1), x)
    assert value == pytest.approx(x.var(ddof=1), rel=1e-13)
    assert np.isnan(evaluated(n.mean, np.zeros((0,))))
    with pytest.raises(FormError, match="means are of floats, and not of <3 x i64>"):
        evaluated(n.mean, np.arange(3))


def test_layer_and_rms_norm():
    x, scale, shift = drawn(2, 3, 4), drawn(3, 4), drawn(3, 4)
    value = evaluated(lambda b, x, s, t: n.layer_norm(b, x, (1, 2), s, t, 0.1), x, scale, shift)
    np.testing.assert_allclose(value, normal(x, (1, 2), 0.1) * scale + shift, rtol=1e-12)
    np.testing.assert_allclose(evaluated(n.layer_norm, x), normal(x, (2,), 1e-5), rtol=1e-12)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 0.1)
    value = evaluated(lambda b, x, s: n.rms_norm(b, x, (-1,), s, 0.1), x, scale)
    np.testing.assert_allclose(value, x / root * scale, rtol=1e-12)


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm_of_channels_at_any_axis(axis):
    x, (average, scale, shift), variance = drawn(2, 3, 4, 3), drawn(3, 3), RNG.random(3)
    along = [3 if i == axis % 4 else 1 for i in range(4)]
    m, v, s, t = (a.reshape(along) for a in (average, variance, scale, shift))
    value = evaluated(
        lambda b, x, m, v, *a: n.batch_norm(b, x, m, v, n.Channels(*a, epsilon=0.1, axis=axis)),
        *(x, average, variance, scale, shift),
    )
    np.testing.assert_allclose(value, (x - m) / np.sqrt(v + 0.1) * s + t, rtol=1e-12, atol=1e-12)
    bare = evaluated(lambda b, *a: n.batch_norm(b, *a, n.Channels(axis=axis)), x, average, variance)
    np.testing.assert_allclose(bare, (x - m) / np.sqrt(v + 1e-5), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [1, -1])
def test_group_and_instance_norm(axis):
    x, scale, shift = drawn(2, 6, 5, 6), drawn(6), drawn(6)
    first = np.moveaxis(x, axis, 1)
    split = normal(first.reshape(2, 3, 2, -1), (2, 3), 1e-5).reshape(first.shape)
    expected = np.moveaxis(split * scale[:, None, None] + shift[:, None, None], 1, axis)
    value = evaluated(lambda b, x, s, t: n.group_norm(b, x, 3, n.Channels(s, t, axis=axis)), x, scale, shift)
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-12)
    value = evaluated(lambda b, x: n.instance_norm(b, x, n.Channels(axis=axis)), x)
    np.testing.assert_allclose(value, np.moveaxis(normal(first, (2, 3), 1e-5), 1, axis), rtol=1e-11, atol=1e-12)
    with pytest.raises(FormError, match="4 groups of axis 1 of <2 x 6"):
        evaluated(lambda b, x: n.group_norm(b, x, 4, n.Channels(axis=1)), x)
