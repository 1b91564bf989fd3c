"""Arithmetic of queries beside NumPy's and Python's, in each number type."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import shine.arrow

WHOLE = np.array([-(2**63), -(2**53) - 1, -7, -2, -1, 0, 1, 2, 3, 7, 2**53 + 1, 2**63 - 1])
UNSIGNED = np.array([0, 1, 2, 3, 7, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)
SINGLES = np.array([0.1, -0.0, 2.5, 3e38, np.inf, np.nan, 1e-45, 16777217], np.float32)
FLOATS = np.array([0.1, -0.0, 2.5, -7.0, 1e308, np.inf, -np.inf, np.nan, 5e-324])


def values(text: str, **columns: np.ndarray) -> list[float]:
    """What a query computes."""
    return shine.arrow.eval(pa.table(columns), text).to_pylist()


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("w + 1", lambda w: w + 1), ("w * w", lambda w: w * w), ("-w", lambda w: -w), ("w ** 3", lambda w: w * w * w),
        ("abs(w)", np.abs), ("sign(w)", np.sign), ("min(w, 2)", lambda w: np.minimum(w, 2)),
        ("max(w, -2, 5)", lambda w: np.maximum(w, 5)), ("floor(w)", lambda w: w), ("round(w)", lambda w: w),
        ("square(w)", np.square), ("(w > 0) + (w > 2)", lambda w: (w > 0).astype(int) + (w > 2)),
        ("w if w > 0 else 0", lambda w: np.where(w > 0, w, 0)),
        ("1 if w > 0 else -1", lambda w: np.where(w > 0, 1, -1)),
    ],
)  # fmt: skip
def test_whole_numbers_compute_in_int64_and_wrap(text, function):
    with np.errstate(over="ignore"):
        expected = function(WHOLE)
    assert values(text, w=WHOLE) == expected.tolist()
    assert shine.arrow.eval(pa.table({"w": WHOLE}), text).type == pa.int64()


@pytest.mark.parametrize("divisor", [3, -3, 1, -1, 2**53])
def test_quotients_of_whole_numbers_are_pythons(divisor):
    wrapped = [(int(w) // divisor + 2**63) % 2**64 - 2**63 for w in WHOLE]
    assert values(f"w // {divisor}", w=WHOLE) == wrapped
    assert values(f"w % {divisor}", w=WHOLE) == [int(w) % divisor for w in WHOLE]
    assert values("w // d", w=WHOLE, d=np.full_like(WHOLE, divisor)) == wrapped


def test_a_quotient_by_zero_is_null_and_a_true_quotient_infinite():
    assert values("w // 0", w=WHOLE) == [None] * len(WHOLE)
    assert values("7 % w", w=np.array([0, 2])) == [None, 1]
    assert values("7 / w", w=np.array([0, 2])) == [math.inf, 3.5]


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("u + 1", lambda u: u + np.uint64(1)), ("u - 3", lambda u: u - np.uint64(3)), ("u * u", lambda u: u * u),
        ("u // 7", lambda u: u // np.uint64(7)), ("u % 10", lambda u: u % np.uint64(10)),
        ("max(u, 9)", lambda u: np.maximum(u, np.uint64(9))),
        ("min(u, u - 1)", lambda u: np.minimum(u, u - np.uint64(1))),
        ("u ** 2", lambda u: u * u), ("abs(u)", lambda u: u),
    ],
)  # fmt: skip
def test_unsigned_numbers_compute_in_uint64(text, function):
    with np.errstate(over="ignore"):
        expected = function(UNSIGNED)
    assert values(text, u=UNSIGNED) == expected.tolist()
    assert shine.arrow.eval(pa.table({"u": UNSIGNED}), text).type == pa.uint64()


@pytest.mark.parametrize("text", ["u + w", "u - 1.5", "-u", "u / 2", "sqrt(u)"])
def test_unsigned_numbers_beside_others_compute_in_float64(text):
    table = pa.table({"u": UNSIGNED, "w": np.ones(len(UNSIGNED), np.int8)})
    assert shine.arrow.eval(table, text).type == pa.float64()


def same(found: list[float], expected: np.ndarray) -> bool:
    """Whether numbers have the same bits, NaN being one number."""
    return repr([float(value) for value in found]) == repr([float(value) for value in expected])


@pytest.mark.parametrize("text", ["f * 0.1", "f + f", "f - 1", "f / 3"])
def test_single_precision_stays_with_numbers_of_the_text(text):
    with np.errstate(all="ignore"):
        expected = eval(text, {}, {"f": SINGLES})
    assert shine.arrow.eval(pa.table({"f": SINGLES}), text).type == pa.float32()
    assert same(values(text, f=SINGLES), expected)


@pytest.mark.parametrize("text", ["x * 3", "x // 0.3", "x % 0.3", "x % -2", "x ** 2", "x + 1 - x"])
def test_floats_are_numpys(text):
    with np.errstate(all="ignore"):
        expected = eval(text, {}, {"x": FLOATS[:4]})
    assert same(values(text, x=FLOATS[:4]), expected)


def test_elementary_functions_are_those_of_formulas():
    formula = "exp(-x*x)*sin(3*x) + hypot(x, 2) + log1p(abs(x)) + arctan2(x, 2)"
    x = np.linspace(-3, 3, 200)
    expected = shine.jit("exp(-x*x)*sin(3*x) + hypot(x, 2) + log1p(abs(x))")(x)
    found = np.array(values(formula, x=x)) - np.arctan2(x, 2)
    assert np.allclose(found, expected, rtol=1e-12)
