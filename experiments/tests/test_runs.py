"""Runs of engines: scores, files, continuing, failures, and summaries."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from quality import runner
from quality.command import chosen, interpreter, seeds_of
from quality.engines import Found, Task, run_gplearn, run_pyoperon, run_shine
from quality.problems import FormulaProblem, Split, Uniform, generator
from quality.records import Record, Run, append_record, read_records
from quality.scoring import r2, score
from quality.summary import accuracy_table, comparison, recovery_table, save_plot
from quality.worker import read_task, write_task

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


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_prediction_that_is_not_finite_is_worse_than_any_other(bad):
    assert r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, bad])) == -math.inf


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


def test_a_task_comes_back_from_its_file(tmp_path):
    given = task(1.5)
    write_task(tmp_path / "task.npz", "gplearn", given)
    engine, read = read_task(tmp_path / "task.npz")
    assert (engine, read.features, read.budget, read.threads, read.seed) == ("gplearn", ["m", "h"], 1.5, 1, 0)
    np.testing.assert_array_equal(read.X, given.X)
    np.testing.assert_array_equal(read.y, given.y)


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


@pytest.mark.parametrize("text", ["m*", "open('x')", "m*q"])
def test_a_text_that_is_no_formula_is_a_line_of_the_table(monkeypatch, text):
    monkeypatch.setattr(runner, "_search", lambda *ignored: Found(text, text, 1.0))
    assert "formula" in runner.execute(RUN, PRODUCT, sys.executable).error


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


def test_the_table_of_real_data_has_medians_and_counts_failures_as_worst():
    records = [replace(RECORD, seed=seed, r2_test=value) for seed, value in enumerate((0.2, 0.4, 0.9))]
    records.append(replace(RECORD, seed=3, error="failed", r2_test=-math.inf))
    last = [cell.strip() for cell in accuracy_table(records).splitlines()[-1].split("|")[1:-1]]
    assert (last[1], last[2], last[3].split(" / ")[0], last[-1]) == ("median of all", "4", "0.3", "1")


def test_settings_of_files_are_compared_by_the_problems_they_share():
    other = [replace(RECORD, recovered="no", size=9), replace(RECORD, problem="Other-1")]
    legend, lines = comparison({"a.csv": [RECORD], "b.csv": [*other, replace(RECORD, budget=3.0)]}).split("\n\n")
    assert legend.splitlines() == [
        "1 is a.csv: shine, 20 s, 1 thread",
        "2 is b.csv: shine, 20 s, 1 thread",
        "3 is b.csv: shine, 3 s, 1 thread",
    ]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines()[2:]] == [
        ["Test-1", "1 of 1", "inf", "3", "0 of 1", "inf", "9", "1 of 1", "inf", "3"]
    ]


def test_a_plot_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    save_plot([RECORD, replace(RECORD, engine="other", r2_test=0.5, accurate_r2_test=0.9)], tmp_path / "a.png", "runs")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_seeds_are_a_count_or_a_list():
    assert seeds_of("3") == (0, 1, 2)
    assert seeds_of("0,5,7") == (0, 5, 7)
    assert seeds_of("5,") == (5,)


def test_problems_are_chosen_by_name_or_family():
    other = replace(PRODUCT, name="Other-1")
    problems = [PRODUCT, other, replace(PRODUCT, name="Test-2")]
    assert chosen(problems, "") == problems
    assert [problem.name for problem in chosen(problems, "Test")] == ["Test-1", "Test-2"]
    assert chosen(problems, "Other-1") == [other]
    with pytest.raises(SystemExit, match="unknown problem 'Nobody'"):
        chosen(problems, "Test,Nobody")


def test_an_interpreter_is_known_by_its_full_path():
    assert interpreter(sys.executable) == sys.executable
