"""Turns of formulas within the data, against counts known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.description import DescriptionLength
from shine.search.finishing.turns import turns
from shine.search.models.certainty import NATS_A_TURN, choose

X = np.random.default_rng(0).uniform(0, 10, (50, 2))
X[0], X[1] = 0.0, 10.0
ROWS = Dataset.from_arrays(X, X[:, 0], features=("a", "b"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2.0*a + b", 0), ("exp(a) - log(b + 1.0)", 0), ("square(a - 5.0)", 1), ("sin(a)", 3), ("sin(3.0*a)", 10),
        ("sin(a) + sin(b)", 6), ("7.0", 0), ("cos(0.01*a)", 0),
    ],
)  # fmt: skip
def test_turns_are_counted_along_each_feature(text, count):
    assert turns(shine.parse(text, ("a", "b")), ROWS) == count


def test_a_sine_too_fast_for_the_data_turns_at_nearly_every_point():
    assert turns(shine.parse("sin(square(square(a*a)))", ("a", "b")), ROWS) > 100


def test_values_that_are_not_finite_do_not_count():
    assert turns(shine.parse("sqrt(a - 20.0)", ("a", "b")), ROWS) == 0


def test_a_slow_form_is_preferred_to_its_alias():
    # On rows ten degrees apart, cos(3.1765*x) and cos(0.0349*x) have the same values up to sign.
    x = np.arange(0.0, 180.0, 10.0)
    models = [
        shine.Model(shine.parse(text, ("x",)), loss, 0.9)
        for text, loss in (("40.0", 900.0), ("41.0*cos(3.1764992*x)", 1.0), ("41.0*cos(0.0349066*x) + 0.01", 1.1))
    ]
    rows = Dataset.from_arrays(x[:, None], x, features=("x",))
    assert (
        choose(
            models,
            0.0,
            DescriptionLength.with_unknown_noise(18, 0.5, 900.0),
            [NATS_A_TURN * turns(model.tree, rows) for model in models],
        ).index
        == 2
    )
