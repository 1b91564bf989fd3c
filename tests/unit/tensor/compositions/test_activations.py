"""Elementwise compositions against SciPy and extended precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions.activations import activation

W = np.longdouble


def sigmoid(x):
    return np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))


def erf(x):
    return scipy.special.erf(x.astype(float)).astype(W)


def softplus(x):
    return np.logaddexp(W(0), x)


EXPECTED = {
    "sigmoid": ((), sigmoid),
    "log1p": ((), np.log1p),
    "softplus": ((), softplus),
    "log_sigmoid": ((), lambda x: -softplus(-x)),
    "elu": ((0.5,), lambda x, a: np.where(x > 0, x, a * np.expm1(x))),
    "celu": ((2.0,), lambda x, a: np.where(x > 0, x, a * np.expm1(x / a))),
    "selu": ((), lambda x: W(1.0507009873554805) * np.where(x > 0, x, W(1.6732632423543772) * np.expm1(x))),
    "relu": ((), lambda x: x * (x > 0)),
    "relu6": ((), lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ((0.25,), lambda x, a: np.where(x > 0, x, a * x)),
    "threshold": ((0.5, 9.0), lambda x, least, other: np.where(x > least, x, other)),
    "softsign": ((), lambda x: x / (1 + abs(x))),
    "silu": ((), lambda x: x * sigmoid(x)),
    "mish": ((), lambda x: x * np.tanh(softplus(x))),
    "hard_sigmoid": ((0.25, 0.5), lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "hard_swish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "clip": ((-0.5, 2.0), np.clip),
    "hard_shrink": ((0.5,), lambda x, size: np.where(abs(x) <= size, 0, x)),
    "soft_shrink": ((0.5,), lambda x, size: np.sign(x) * np.maximum(abs(x) - size, 0)),
    "erf": ((), erf),
    "gelu": ((), lambda x: x * (1 + erf(x / np.sqrt(W(2)))) / 2),
    "gelu_tanh": ((), lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / W(np.pi)) * (x + W(0.044715) * x**3)))),
    "rsqrt": ((), lambda x: 1 / np.sqrt(x)),
}
"""Other arguments, and the function in extended precision, of each definition."""

DOMAINS = {"log1p": (0, 1), "rsqrt": (0, 1e30)}
ABSOLUTE = {"gelu": 8, "gelu_tanh": 8, "hard_swish": 4, "soft_shrink": 1, "hard_sigmoid": 1, "mish": 4}
"""Functions that cancel: units in the last place of the argument that they may be off."""


def points(name, dtype):
    line = np.concatenate([np.linspace(-30, 30, 4001), np.geomspace(1e-30, 80, 1001), -np.geomspace(1e-30, 80, 1001)])
    low, high = DOMAINS.get(name, (-np.inf, np.inf))
    return line[(line > low) & (line < high)].astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXPECTED)
def test_values_are_within_a_few_units_in_the_last_place(name, dtype):
    others, expected = EXPECTED[name]
    x = points(name, dtype)
    value = evaluated(lambda b, x: activation(b, name, x, *others), x).astype(W)
    exact = expected(x.astype(W), *others)
    tiny, unit = np.finfo(dtype).tiny, W(np.finfo(dtype).eps)
    allowed = 4 * unit * abs(exact) + tiny + ABSOLUTE.get(name, 0) * unit * np.minimum(abs(x) + 1, 100)
    assert (abs(value - exact) <= allowed).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_is_at_most_two_units_in_the_last_place_off(dtype):
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-30, 8, 3001)]).astype(dtype)
    value = evaluated(lambda b, x: activation(b, "erf", x), x)
    exact = scipy.special.erf(x.astype(float))
    assert (abs(value - exact) <= 2 * np.spacing(abs(exact).astype(dtype))).all()
    assert abs(value).max() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sigmoid", (0, 1, 0.5)),
        ("softplus", (0, np.inf, np.log(2))),
        ("log_sigmoid", (-np.inf, 0, -np.log(2))),
        ("erf", (-1, 1, 0)),
        ("selu", (-1.7580993408473766, np.inf, 0)),
        ("relu6", (0, 6, 0)),
        ("clip", (-1, 1, 0)),
        ("elu", (-1, np.inf, 0)),
        ("tanh", (-1, 1, 0)),
    ],
)
def test_infinity_and_nan(name, expected, dtype):
    others = {"clip": (-1.0, 1.0), "elu": (1.0,)}.get(name, ())
    x = np.array([-np.inf, np.inf, 0, np.nan], dtype)
    value = evaluated(lambda b, x: activation(b, name, x, *others), x)
    np.testing.assert_allclose(value, [*expected, np.nan], rtol=1e-6 if dtype == np.float32 else 1e-15)


def test_other_arguments_may_be_values():
    x, slope = np.array([[-1.0, 2], [-3, -4]]), np.array([0.5, 0.25])
    value = evaluated(lambda b, x, slope: activation(b, "leaky_relu", x, slope), x, slope)
    assert value.tolist() == [[-0.5, 2], [-1.5, -1]]


def test_what_does_not_fit_is_rejected():
    x = np.zeros(2)
    with pytest.raises(FormError, match="leaky_relu takes 2 arguments, and is given 1"):
        evaluated(lambda b, x: activation(b, "leaky_relu", x), x)
    with pytest.raises(FormError, match="gelu takes elements f32, f64, and is given <2 x i64>"):
        evaluated(lambda b, x: activation(b, "gelu", x), x.astype(np.int64))
