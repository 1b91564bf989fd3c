"""Images of another size, at places of any kind."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions.pooling import resize_linear, resize_nearest, upsample

RNG = np.random.default_rng(6)


def test_whole_factors_repeat_elements():
    x = RNG.normal(size=(2, 3, 1))
    value = evaluated(lambda b, x: upsample(b, x, (1, 2, 3)), x)
    np.testing.assert_array_equal(value, x.repeat(2, 1).repeat(3, 2))
    with pytest.raises(FormError, match=r"factors = \[0\]"):
        evaluated(lambda b, x: upsample(b, x, (0,)), np.zeros(2))


@pytest.mark.parametrize("places", [[0, 0, 1, 1, 2, 2], [2, 0, 1], [-3, 0, 9], [0, 1, 2], []])
def test_nearest_elements_are_those_at_the_places(places):
    x = RNG.normal(size=(2, 3, 2))
    value = evaluated(lambda b, x: resize_nearest(b, x, 1, np.array(places, float)), x)
    np.testing.assert_array_equal(value, x[:, np.clip(np.array(places, int), 0, 2)])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_between_neighbours_are_those_of_numpy(axis, dtype):
    x = RNG.normal(size=(4, 5, 3)).astype(dtype)
    places = np.array([-0.7, 0.0, 0.25, 1.0, 1.9, 2.0, 7.0])
    value = evaluated(lambda b, x: resize_linear(b, x, axis, places), x)
    expected = np.apply_along_axis(lambda line: np.interp(places, np.arange(len(line)), line), axis, x)
    assert value.dtype == x.dtype
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6 if dtype == "f4" else 1e-15)


@pytest.mark.parametrize(
    ("x", "message"), [(np.zeros(3, "i4"), "cast it to one of f32, f64"), (np.zeros((0, 2)), "is empty along axis 0")]
)
def test_what_has_no_neighbours_is_refused(x, message):
    with pytest.raises(FormError, match=message):
        evaluated(lambda b, x: resize_linear(b, x, 0, np.array([0.5])), x)
