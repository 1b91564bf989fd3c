"""What travels with a formula: the same after JSON, and small."""

from __future__ import annotations

import json

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference, line

from shine.evaluate.inference.uncertainty import Uncertainty


def found(formula="2.31*x + 1.37", rows=30, loss="mse"):
    x, y = line(rows)
    return inference(formula, {"x": x}, y, loss)


@pytest.mark.parametrize(
    ("formula", "rows", "loss"),
    [("2.31*x + 1.37", 30, "mse"), ("2.31*x + 1.37", 2, "mse"), ("2*x + 1", 30, "mse"), ("2.31*x + 1.37", 30, "mae"),
     ("2.31*x + 0.71 + 0.63*exp(0*x)", 30, "mse"), ("2.31*x", 30, "poisson")],
)  # fmt: skip
def test_json_keeps_everything(formula, rows, loss):
    before = found(formula, rows, loss)
    before.profile(0.9)
    text = json.dumps(before.uncertainty.plain(), allow_nan=False)
    after = Uncertainty.of_plain(json.loads(text))
    for name, value in vars(before.uncertainty).items():
        if name == "profiles":
            assert after.profiles.keys() == value.keys()
            assert np.array_equal(after.profiles[0.9], value[0.9])
        elif isinstance(value, np.ndarray):
            assert np.array_equal(getattr(after, name), value, equal_nan=True), name
        else:
            assert getattr(after, name) == value, name


def test_it_does_not_grow_with_the_rows():
    few, many = (len(json.dumps(found(rows=rows).uncertainty.plain())) for rows in (30, 3000))
    assert abs(few - many) < 100


def test_intervals_by_standard_errors_are_around_the_most_likely_constants():
    known = found().uncertainty
    low, high = known.wald(0.95).T
    assert (low + high) / 2 == pytest.approx(known.best)
