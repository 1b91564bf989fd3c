"""Runs beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.past_runs import model, past_run

from shine.base.errors import ExportError
from shine.runs import compare


def test_settings_that_differ_and_fronts_by_size(tmp_path: Path):
    first = past_run(tmp_path / "a", model("x", nodes=1), model("exp(x)", nodes=2), population=100)
    second = past_run(tmp_path / "b", model("x", nodes=1), model("x*x", nodes=3), population=500)
    found = compare([first, second])
    assert found.settings == {"evolution.population": (100, 500)}
    assert found.same_data is True
    assert {size: [each and each.expression for each in row] for size, row in found.fronts.items()} == {
        1: ["x", "x"],
        2: ["exp(x)", None],
        3: [None, "x*x"],
    }


def test_other_data_are_told(tmp_path: Path):
    runs = [past_run(tmp_path / name, data_hash=digest) for name, digest in [("a", "1"), ("b", "2"), ("c", None)]]
    assert compare(runs[:2]).same_data is False
    assert compare(runs).same_data is None


def test_a_folder_without_a_run_is_told(tmp_path: Path):
    with pytest.raises(ExportError, match="holds no run"):
        compare([tmp_path, tmp_path])
