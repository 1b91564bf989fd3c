"""Formulas of networks: what is chosen, fidelities, outputs, and rows that are left out."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.faces.distillation.distilling import Fidelity
from shine.faces.distillation.lessons import lesson

RANGES = {"a": (1, 5), "b": (1, 5)}
QUICK = {
    "population": 50, "max_size": 5, "seeding": 0, "constant_steps": 0, "generations": 3, "seconds": None,
    "primitives": ["add", "mul"], "tier": "reference",
}  # fmt: skip


@pytest.mark.slow
def test_the_formula_of_a_function_with_its_fidelities():
    X = np.random.default_rng(0).uniform(1, 5, (40, 2))
    y = X[:, 0] * X[:, 1] + 0.1 * (-1.0) ** np.arange(40)
    found = shine.distil(lambda X: X[:, 0] * X[:, 1], X, y=y, features=["a", "b"], **QUICK)
    assert len(found) == 1 and found[0].best.expression in ("a*b", "b*a")
    assert found[0].to_network.r2 == 1 and found[0].to_network.max_error < 1e-12
    assert found[0].to_data == found[0].network_to_data
    assert found[0].to_data.rms_error == pytest.approx(0.1)
    assert found.predict(X).shape == (40, 1) and "formula to data" in repr(found)


def test_fidelity_by_its_definition():
    truth, near = np.array([1.0, 2, 3, 6]), np.array([1.0, 2, 4, 4])
    found = Fidelity.of(near, truth)
    assert (found.r2, found.max_error, found.rows) == (1 - 5 / 14, 2, 4)
    assert found.rms_error == pytest.approx(np.sqrt(5 / 4))
    assert Fidelity.of(truth, np.ones(4)).r2 == -np.inf and Fidelity.of(np.ones(4), np.ones(4)).r2 == 1


def both(X: np.ndarray) -> np.ndarray:
    return np.column_stack([0.1 * X[:, 0], 3 * X[:, 1], X[:, 0] * X[:, 1]])


def test_outputs_are_chosen_by_number_name_and_variance():
    assert lesson(both, RANGES, output="output_1").outputs == ("output_1",)
    assert lesson(both, RANGES, output=[2, 0]).outputs == ("output_2", "output_0")
    largest = lesson(both, RANGES, largest=2)
    assert largest.outputs == ("output_2", "output_1") and largest.shares[0] > largest.shares[1] > 0.1
    assert np.allclose(largest.values, both(largest.X)[:, [2, 1]])
    assert np.allclose(largest.of_network(largest.X), largest.values)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"output": 3}, DataError, "no output '3'; there are output_0, output_1, output_2"),
        ({"output": "y"}, DataError, "no output 'y'"),
        ({"output": -1}, DataError, "no output '-1'"),
        ({"output": 0, "largest": 1}, TypeError, "either output or largest"),
        ({"largest": 0}, ValueError, "largest is 0"),
        ({"rows": 2}, ValueError, "rows is 2; it is a whole number from 8 on"),
        ({"features": ["a", "b"]}, TypeError, "ranges name the features"),
    ],
)
def test_wrong_choices_are_told(options, error, message: str):
    with pytest.raises(error, match=message):
        lesson(both, RANGES, **options)


def test_rows_without_a_finite_output_are_left_out_and_counted():
    with np.errstate(all="ignore"):
        found = lesson(lambda X: np.log(X[:, 0]), {"a": (-1, 3)}, rows=100)
        assert found.dropped == 25 and (found.X > 0).all() and np.isfinite(found.fresh_values).all()
        with pytest.raises(DataError, match="finite outputs for 0 of 512 rows"):
            lesson(lambda X: np.log(X[:, 0]), {"a": (-3, -1)})


def test_fresh_rows_are_not_those_of_the_search():
    X = np.arange(100.0)[:, None]
    found = lesson(lambda X: X[:, 0], X, rows=60)
    assert found.features == ("x0",) and sorted([*found.X[:, 0], *found.fresh_X[:, 0]]) == X[:, 0].tolist()
    assert len(lesson(lambda X: X[:, 0], X).fresh_X) == 100


def test_measurements_belong_to_rows_and_outputs():
    with pytest.raises(DataError, match="y belongs to rows"):
        shine.distil(both, RANGES, y=[1.0], **QUICK)
    with pytest.raises(DataError, match="choose the output that it measures"):
        shine.distil(both, np.ones((9, 2)), y=np.ones(9), **QUICK)
    for X in (np.ones((3, 2)), np.full((9, 2), np.nan)):
        with pytest.raises(DataError):
            shine.distil(both, X, **QUICK)
