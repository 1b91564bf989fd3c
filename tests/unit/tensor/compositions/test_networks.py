"""Compositions against NumPy, written independently."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions import networks as c
from shine.tensor.compositions.activations import activation

RNG = np.random.default_rng(4)
INF, NAN = np.inf, np.nan


def drawn(*shape, dtype="f8"):
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_its_logarithm(axis, dtype):
    x = drawn(3, 4, 5, dtype=dtype) * 30
    powers = np.exp((x - x.max(axis, keepdims=True)).astype(np.longdouble))
    expected = powers / powers.sum(axis, keepdims=True)
    bound = 1e-6 if dtype == "f4" else 1e-14
    np.testing.assert_allclose(evaluated(lambda b, x: c.softmax(b, x, axis), x), expected, rtol=20 * bound, atol=1e-30)
    logarithm = evaluated(lambda b, x: c.log_softmax(b, x, axis), x)
    np.testing.assert_allclose(logarithm, np.log(expected), rtol=bound, atol=bound)


def test_softmax_of_large_numbers_and_of_nothing():
    x = np.array([[1e30, 1e30], [-3e38, 3e38], [-INF, 0.0]], "f4")
    assert evaluated(c.softmax, x).tolist() == [[0.5, 0.5], [0, 1], [0, 1]]
    assert evaluated(c.log_softmax, x).tolist()[0] == pytest.approx([-np.log(2)] * 2)
    assert evaluated(c.softmax, np.zeros((2, 0), "f4")).shape == (2, 0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [([1000.0, 1000.0], 1000 + np.log(2)), ([-INF, -INF], -INF), ([INF, 0], INF), ([NAN, 0], NAN), ([], -INF)],
)
def test_logsumexp_at_its_limits(line, expected):
    x = np.array(line)
    np.testing.assert_allclose(evaluated(c.logsumexp, x), expected, rtol=1e-15)
    assert evaluated(lambda b, x: c.logsumexp(b, x, keep=True), x).shape == (1,)


def test_logsumexp_over_some_axes():
    x = drawn(2, 3, 4)
    expected = np.log(np.exp(x).sum((0, 2)))
    np.testing.assert_allclose(evaluated(lambda b, x: c.logsumexp(b, x, (0, -1)), x), expected, rtol=1e-14)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 13])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(size, exclusive, reverse):
    x = RNG.integers(-9, 9, (2, size, 3))
    turned = np.flip(x, 1) if reverse else x
    expected = np.cumsum(turned, 1) - (turned if exclusive else 0)
    expected = np.flip(expected, 1) if reverse else expected
    assert (evaluated(lambda b, x: c.cumsum(b, x, 1, exclusive, reverse), x) == expected).all()


def test_one_hot_at_any_place_and_beyond_the_depth():
    indices = np.array([[0, 2, -1], [3, 1, 7]], "i4")
    for axis in (0, 1, 2, -1):
        found = evaluated(lambda b, x, axis=axis: c.one_hot(b, x, 3, "f32", axis), indices)
        expected = np.moveaxis(indices[..., None] == np.arange(3), -1, axis)
        assert found.dtype == np.float32 and (found == expected).all()
    with pytest.raises(FormError, match="one_hot takes integers"):
        evaluated(lambda b, x: c.one_hot(b, x, 3), drawn(2))


def test_known_numbers():
    assert evaluated(lambda b: c.iota(b, "i32", (2, 3), -1)).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert evaluated(lambda b: c.iota(b, "f32", (2, 3))).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert evaluated(lambda b: c.linspace(b, "f64", 0, 1, 5)).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_linear_layers_and_embeddings():
    x, weights, bias = drawn(2, 3, 4), drawn(4, 5), drawn(5)
    np.testing.assert_allclose(evaluated(c.linear, x, weights, bias), x @ weights + bias, rtol=1e-13)
    turned = evaluated(lambda b, x, w: c.linear(b, x, w, outputs_first=True), x, weights.T.copy())
    np.testing.assert_allclose(turned, x @ weights, rtol=1e-13)
    assert (evaluated(c.embedding, x, np.array([1, 0, 1])) == x[[1, 0, 1]]).all()


def attended(q, k, v, counts, scale):
    """Query by query, key by key."""
    result = np.zeros((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(q.shape[:-1]):
        stack, i = place[:-1], place[-1]
        keys = [j for j in range(k.shape[-2]) if counts(i, j)]
        powers = [np.exp(scale * sum(q[place] * k[(*stack, j)])) for j in keys]
        for power, j in zip(powers, keys, strict=True):
            result[place] += power / sum(powers) * v[(*stack, j)]
    return result


def test_attention():
    q, k, v = drawn(2, 3, 4, 8), drawn(2, 3, 5, 8), drawn(2, 3, 5, 6)
    close = {"rtol": 1e-12, "atol": 1e-14}
    everyone, before = (lambda i, j: True), (lambda i, j: j <= i)
    np.testing.assert_allclose(evaluated(c.attention, q, k, v), attended(q, k, v, everyone, 8**-0.5), **close)
    causal = evaluated(lambda b, q, k, v: c.attention(b, q, k, v, causal=True, scale=0.3), q, k, v)
    np.testing.assert_allclose(causal, attended(q, k, v, before, 0.3), **close)
    mask = RNG.random((4, 5)) < 0.5
    mask[:, 0] = True
    mask[2] = False
    expected = attended(q, k, v, lambda i, j: mask[i, j], 8**-0.5)
    np.testing.assert_allclose(evaluated(c.attention, q, k, v, mask), expected, **close)
    both = evaluated(lambda b, q, k, v, m: c.attention(b, q, k, v, m, causal=True), q, k, v, mask)
    np.testing.assert_allclose(both, attended(q, k, v, lambda i, j: mask[i, j] and j <= i, 8**-0.5), **close)
    added = np.where(mask, 0, -1e9)
    added[2] = 0
    mask[2] = True
    expected = attended(q, k, v, lambda i, j: mask[i, j], 8**-0.5)
    np.testing.assert_allclose(evaluated(c.attention, q, k, v, added), expected, **close)


def test_what_does_not_fit_is_rejected():
    with pytest.raises(FormError, match="exp takes elements f32, f64"):
        evaluated(c.logsumexp, np.arange(3))
    with pytest.raises(FormError, match="no axis 2 of 2"):
        evaluated(lambda b, x: c.softmax(b, x, 2), drawn(2, 2))
    with pytest.raises(FormError, match="there is no function 'swosh'"):
        evaluated(lambda b, x: activation(b, "swosh", x), drawn(2))
