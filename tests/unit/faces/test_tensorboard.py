"""Searches as curves for TensorBoard."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import shine
from shine.base.errors import MissingExtraError
from shine.callbacks import TensorBoard

X = np.random.default_rng(0).uniform(1, 2, (30, 2))
QUICK: dict[str, Any] = {"generations": 3, "population": 30, "seeding": 0, "tier": "reference"}


def test_each_search_has_a_folder_with_curves_and_formulas(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    log = TensorBoard(tmp_path)
    for _ in range(2):
        shine.evolve(X, X[:, 0] * X[:, 1], report=log, features=["wide", "high"], **QUICK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
    (events,) = (tmp_path / "1").iterdir()
    content = events.read_bytes()
    assert all(text in content for text in (b"loss", b"wide", b"evolution.population", b"| complexity |"))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'shine-gp\[tensorboard\]'"):
        TensorBoard()


def test_an_estimator_with_it_can_be_cloned_and_pickled(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    model = shine.SymbolicRegressor(callbacks=[TensorBoard(tmp_path)], generations=1, population_size=30)
    model.fit(X, X[:, 0])
    clone(model).fit(X, X[:, 1])
    assert pickle.loads(pickle.dumps(model)).best_.expression == model.best_.expression
    assert len(list(tmp_path.iterdir())) == 2
