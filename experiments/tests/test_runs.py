"""Runs of engines: scores, files, continuing, failures, and summaries."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from quality import runner
from quality.engines import Task, run_gplearn, run_pyoperon, run_shine
from quality.problems import FormulaProblem, Split, Uniform, generator
from quality.records import Record, Run, append_record, read_records
from quality.scoring import r2, score
from quality.summary import recovery_table

PRODUCT = FormulaProblem("Test-1", ("m", "h"), "m*h", Uniform(((1, 5), (1, 5)), 100), Uniform(((1, 5), (1, 5)), 50))
RUN = Run("Test-1", "shine", 0, 0.0, 20.0, 0, 1)  # it ends when the loss is zero
RECORD = Record("Test-1", "shine", 0, 0.0, 20.0, 0, 1, seconds=0.5, recovered="factor", r2_test=1.0, size=3)


def task(seconds: float) -> Task:
    """Rows whose target is a product."""
    split = PRODUCT.split(generator("Test-1", 0))
    return Task(split.X, split.y, PRODUCT.features, seconds, 1, 0)


def test_r2_is_one_minus_the_share_of_the_variance_that_is_left():
    target = np.array([1.0, 2.0, 3.0, 4.0])
    assert r2(target, target) == 1.0
    assert r2(target, np.full(4, 2.5)) == 0.0
    assert r2(target, np.array([1.0, 2.0, 3.0, 5.0])) == pytest.approx(0.8)
    assert r2(target, -target) < 0


def test_a_score_measures_each_half_by_itself():
    X = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    split = Split(X, X[:, 0] + np.array([0.0, 0.0, 3.0]), X, X[:, 0] * X[:, 1])
    scored = score("m*h", PRODUCT, split)
    assert (scored.recovered, scored.r2_test, scored.loss, scored.size) == ("factor", 1.0, 3.0, 3)
    assert scored.r2_train == pytest.approx(1 - 9 / 14)


def test_records_come_back_from_their_file(tmp_path):
    path = tmp_path / "folder" / "runs.csv"
    records = [RECORD, replace(RECORD, seed=1, expressible=False, error='a "quoted", failure', r2_test=-math.inf)]
    for record in records:
        append_record(path, record)
    assert [replace(r, seconds=0.5) for r in read_records(path, Record)] == records


def test_a_truncated_line_is_left_out_and_the_next_is_whole(tmp_path):
    path = tmp_path / "runs.csv"
    append_record(path, RECORD)
    append_record(path, replace(RECORD, seed=1))
    path.write_bytes(path.read_bytes()[:-30])
    append_record(path, replace(RECORD, seed=2))
    assert [record.seed for record in read_records(path, Record)] == [0, 2]


def test_a_file_with_other_columns_is_rejected(tmp_path):
    (tmp_path / "runs.csv").write_text("problem,engine\nTest-1,shine\n", encoding="utf-8")
    with pytest.raises(ValueError, match="other columns"):
        read_records(tmp_path / "runs.csv", Record)


def test_runs_that_are_in_the_file_are_not_repeated(tmp_path, monkeypatch):
    executed = []

    def execute(run, problem, python, simplify, measure):
        executed.append(run.seed)
        return replace(RECORD, seed=run.seed, error="failed" if run.seed == 1 else "")

    monkeypatch.setattr(runner, "execute", execute)
    path, runs = tmp_path / "runs.csv", [(replace(RUN, seed=seed), PRODUCT) for seed in range(3)]
    runner.run_all(runs[:2], path)
    records = runner.run_all(runs, path, jobs=2)
    assert executed == [0, 1, 2]
    assert [record.seed for record in records] == [0, 1, 2]
    runner.run_all(runs, path, retry=True)
    assert executed == [0, 1, 2, 1]


@pytest.mark.slow
def test_a_run_ends_in_a_record_with_the_truth_recovered():
    record = runner.execute(RUN, PRODUCT, sys.executable)
    assert (record.error, record.recovered, record.run) == ("", "factor", RUN)
    assert record.r2_test == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("script", "limit", "message"),
    [
        ("echo Killed by nobody; exit 3", 30, "the worker ended with 3: Killed by nobody"),
        ("exec sleep 60", 0.2, "no result after 0.2 s"),
        ("kill -9 $$", 30, "the worker ended with -9: no message"),
        ("exit 0", 30, "FileNotFoundError"),
    ],
)
def test_a_worker_that_fails_or_hangs_is_a_line_of_the_table(tmp_path, script, limit, message):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    record = runner.execute(RUN, PRODUCT, str(python), limit)
    assert message in record.error
    assert (record.run, record.r2_test, record.recovered) == (RUN, -math.inf, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "module", "seconds"),
    [(run_shine, "shine", 20.0), (run_gplearn, "gplearn", 1.0), (run_pyoperon, "pyoperon", 1.0)],
)
def test_formulas_of_every_engine_can_be_read(run, module, seconds):
    pytest.importorskip(module)
    given = task(seconds)
    found = run(given)
    for text in (found.chosen, found.accurate):
        scored = score(text, PRODUCT, Split(given.X, given.y, given.X, given.y))
        assert scored.r2_train > 0.99
    assert 0 < found.seconds < 30


def test_the_table_counts_recommended_and_most_accurate_formulas():
    records = [
        replace(RECORD, accurate_recovered="factor", accurate_r2_test=1.0, accurate_size=5),
        replace(
            RECORD, seed=1, recovered="no", r2_test=1 - 1e-7, accurate_recovered="difference", accurate_r2_test=1.0
        ),
        replace(RECORD, problem="Other-1", recovered="undecided", r2_test=0.5, accurate_r2_test=1 - 1e-4),
        Record("Other-2", "shine", 0, 0.0, 20.0, 0, 1, expressible=False, error="failed"),
    ]
    lines = {cells[1]: cells for cells in (line.split("|")[1:-1] for line in recovery_table(records).splitlines())}
    lines = {key.strip(): [cell.strip() for cell in cells[2:]] for key, cells in lines.items()}
    assert lines["all"] == ["4", "1 / 2", "2 / 3", "2 / 2", "1 / 2", "3 / 0", "0.5", "1"]
    assert lines["Test"][:2] == ["2", "1 / 2"]
    assert lines["expressible ones"][0] == "3"
