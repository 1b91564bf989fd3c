"""Runs over data that are streamed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.streams import streaming
from shine.faces.config import read_job
from shine.runs import resume_job, run_job

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path: Path, last: float = 2.0) -> None:
    x = np.linspace(1, 5, 600)
    x[-1] = last
    parquet.write_table(pyarrow.table({"x": x, "y": 3 * x + np.sin(9 * x)}), path)


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_rows_and_refuses_others(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 200)
    write(tmp_path / "d.parquet")
    config = tmp_path / "c.yaml"
    config.write_text(
        "data: {path: d.parquet, target: y, stream: true}\nprimitives: [add, mul]\n"
        "evolution: {population: 30, rows: 50, renewal: 2}\nstop: {generations: 3, seconds: null}\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    run_job(read_job(config), folder, tell=str)
    longer = resume_job(folder, overrides=["stop.generations=5"], tell=str)
    whole = tmp_path / "whole"
    whole.mkdir()
    expected = run_job(read_job(config, ["stop.generations=5"]), whole, tell=str)
    assert [model.expression for model in longer.front] == [model.expression for model in expected.front]
    assert longer.reason.endswith("by all 600 rows")
    write(tmp_path / "d.parquet", 2.0000001)
    with pytest.raises(DataError, match="the data have changed since the run began"):
        resume_job(folder, overrides=["stop.generations=6"], tell=str)
