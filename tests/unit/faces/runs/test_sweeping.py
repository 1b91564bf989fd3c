"""Sweeps: every run an ordinary one, done once, ranked, whatever happens to single ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shine.base.errors import ConfigError
from shine.faces.config import read_job
from shine.faces.runs.sweeping import Outcome, sweep
from shine.faces.runs.variants import Variant
from shine.runs import find, open_run, run_job

CONFIG = """
data: {generate: {rows: 30, noise: 0.1, features: {a: {uniform: {low: 1, high: 2}}, b: {uniform: {low: 1, high: 2}}},
  target: a*b}}
evolution: {population: 30, max_size: 5, seeding: 0}
fitness: {tier: reference, noise: absolute}
stop: {generations: 1}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of a short search, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return path


@pytest.mark.slow
def test_the_runs_are_those_of_single_searches(config: Path):
    result = sweep(config, {"evolution.population": [20, 30]}, seeds=2)
    assert [each.name for each in find("runs", sort="name")] == [
        f"small-sweep/population={population},seed={seed}" for population in (20, 30) for seed in (0, 1)
    ]
    alone = Path("alone")
    alone.mkdir()
    run_job(read_job(config, ["evolution.population=20", "seed=1"]), alone)
    own = open_run("runs/small-sweep/population=20,seed=1")
    assert [str(model.tree) for model in own.result.front] == [
        str(model.tree) for model in open_run(alone).result.front
    ]
    assert [each.loss for each in result.outcomes] == [
        open_run(each.folder).result.best.loss for each in result.outcomes
    ]


def test_finished_runs_are_not_repeated_and_new_ones_are_added(config: Path):
    sweep(config, seeds=1)
    before = {path: path.stat().st_mtime_ns for path in Path("runs").glob("*/*/result.json")}
    result = sweep(config, seeds=2)
    assert len(before) == 1 and len(result.outcomes) == 2
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


@pytest.mark.slow
def test_an_interrupted_run_goes_on(config: Path):
    expected = sweep(config, out="whole").outcomes[0]
    sweep(config, out="cut")
    path = Path("cut/run/result.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "stopped_by": "interrupted"}))
    (again,) = sweep(config, out="cut").outcomes
    assert (again.formula, again.loss, again.stopped_by) == (expected.formula, expected.loss, "generations")


def test_ctrl_c_ends_the_workers_and_keeps_what_is_done(config: Path, monkeypatch: pytest.MonkeyPatch):
    left_by: list[str] = []

    @contextmanager
    def recorded(*place: object, **more: object) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            left_by.append(type(error).__name__)
            raise

    def interrupt(outcome: Outcome) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shine.faces.runs.sweeping.opened", recorded)
    assert len(sweep(config, seeds=3, tell=interrupt).outcomes) == 1
    assert left_by == ["KeyboardInterrupt"]


def test_a_run_that_fails_does_not_keep_the_others_from_going_on(config: Path):
    result = sweep(config, {"fitness.loss": ["mse", "binomial"]})
    (failed,) = result.failed
    assert dict(failed.variant.settings)["fitness.loss"] == "binomial" and "between 0 and 1" in failed.problem
    assert len(result.standings) == 1


def test_a_wrong_setting_is_told_before_anything_runs(config: Path):
    for grid in ({"evolution.population": [20, -1]}, {"data.generate.target": ["a*b", "1/(a - a)"]}):
        with pytest.raises(ConfigError, match=r"--grid evolution.population: must|target: the formula"):
            sweep(config, grid)
    assert not Path("runs").exists()


def test_a_folder_of_other_settings_is_left_alone(config: Path):
    sweep(config, seeds=1)
    config.write_text(CONFIG.replace("max_size: 5", "max_size: 7"))
    (failed,) = sweep(config, seeds=1).failed
    assert "holds a run of other settings or limits; choose another folder with --out" in failed.problem


def outcome(population: str, seed: int, loss: float, problem: str = "") -> Outcome:
    """What a run came to."""
    return Outcome(Variant((("population", population),), seed), "", loss, 1 - loss, 3, 1.0, "x", "loss", problem)
