"""Some rows as Python has them: the same results as the ordinary way, and no reference lost."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import shine.trees
import shine.trees.kernel
import shine.trees.keys
from shine.trees.compiled import CompiledTrees
from shine.trees.objects import MOST_ROWS

ensemble = pytest.importorskip("sklearn.ensemble")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(MOST_ROWS + 1, 5))


@pytest.fixture(scope="module", params=["HistGradientBoostingRegressor", "RandomForestRegressor"])
def model(request: pytest.FixtureRequest) -> CompiledTrees:
    sizes = {"max_iter": 9} if request.param.startswith("Hist") else {"n_estimators": 9, "n_jobs": 1}
    fitted = getattr(ensemble, request.param)(max_depth=4, random_state=0, **sizes)
    return shine.trees.compile(fitted.fit(X, X[:, 0] * X[:, 1] + X[:, 2]))


def by_ctypes(model: CompiledTrees, rows: np.ndarray) -> np.ndarray:
    """Results of the kernel's other door."""
    return model._linked(rows)[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_are_read_whatever_their_strides(model, dtype):
    given = X.astype(dtype)
    views = [given[:0], given[:1], given[3:4], given[:MOST_ROWS], given[10::-3], np.asfortranarray(given[:7])]
    views += [np.broadcast_to(given[:1], (9, 5)), np.repeat(given[:9], 2, axis=1)[:, ::2], given[:5, ::-1]]
    for view in views:
        found = model._linked.of_array(view, 0)
        assert found is not None
        assert found.tobytes() == by_ctypes(model, view).tobytes()
        assert found.flags.c_contiguous and found.flags.owndata and found.shape == (len(view), 1)


def test_what_is_no_such_array_is_left_to_python(model):
    unaligned = np.frombuffer(b"x" + X[:2].tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 5)
    record = np.zeros(2, [("a", "f8", 5), ("b", "f4")])["a"]
    assert record.strides == (44, 8)
    others = [X, X[0], X[:2, :4], X[:2].tolist(), X[:2].astype(int), X[:2].astype(">f8"), X[:2].astype("f2")]
    others += [None, X[:2][None], unaligned, record, np.ma.masked_array(X[:2]), X[:2].astype(object)]
    for other in others:
        assert model._linked.of_array(other, 0) is None
    assert model.predict(X[:2].tolist()).tobytes() == model.predict(X[:2]).tobytes()
    assert model.predict(unaligned.copy()).tobytes() == model.predict(unaligned).tobytes()


def test_forbidden_values_are_told_as_ever(model):
    row = X[:1].copy()
    row[0, 0] = np.inf
    if model.reading.allows_infinite:
        assert np.isfinite(model.predict(row)).all()
    else:
        with pytest.raises(ValueError, match="infinity"):
            model.predict(row)
    assert (model.predict(X[:1], threads=1) == model.predict(X[:1])).all()


def test_no_reference_is_lost(model):
    row, bad = X[:1].copy(), np.full((1, 5), np.nan)
    kinds = (np.dtype(np.float64), None, row)
    before = [sys.getrefcount(kind) for kind in kinds]
    for _ in range(1000):
        model._linked.of_array(row, 0)
        model._linked.of_array(bad, -1)
        model._linked.of_array(None, 0)
    assert [abs(sys.getrefcount(kind) - count) < 50 for kind, count in zip(kinds, before, strict=True)] == [True] * 3


def test_without_known_objects_all_goes_the_ordinary_way(model, monkeypatch):
    wanted = model.predict(X[:3])
    monkeypatch.setattr(shine.trees.kernel, "is_readable", lambda: False)
    monkeypatch.setattr(shine.trees.keys, "is_readable", lambda: False)
    assert model.predict(X[:3]).tobytes() == wanted.tobytes()
    table = shine.trees.KeyTable([3, 1, 2])
    assert (table[3], 4 in table) == (0, False)
