"""Runs in folders: their files, how they go on, and that a failed write stops none."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.faulty_runs import write_fault
from helpers.faulty_system import FAULTS, FaultySystem
from helpers.markers import mostly_slow
from helpers.run_folders import ending, newest_good

from shine.base import files
from shine.base.errors import ConfigError, DataError, ExportError, ShineError
from shine.faces.config import Job, read_config, read_job
from shine.faces.runs import checkpoints, jobs, keeping
from shine.faces.runs.checkpoints import Shelf
from shine.faces.runs.files import write_text as written
from shine.runs import Notice, chosen_folder, open_run, read_result, resume_job, run_job
from shine.search.evolution.observers import Progress
from shine.search.seeding import Guesses, Slices, slices

SMALL = """
data: {generate: {rows: 20, noise: 0.1, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}
evolution: {population: 20, max_size: 5, seeding: 0.0}
fitness: {noise: absolute}
stop: {generations: 6, seconds: null}
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A small run that only its generations limit."""
    (tmp_path / "small.yaml").write_text(SMALL)
    return read_job(tmp_path / "small.yaml")


def until(generation: int) -> Callable[[Progress], bool]:
    return lambda progress: progress.generation == generation


def test_a_run_keeps_what_it_used_and_found(job: Job, tmp_path: Path) -> None:
    reported: list[int] = []
    result = run_job(job, chosen_folder(tmp_path / "out"), lambda progress: reported.append(progress.generation))
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == [
        "checkpoints", "config.yaml", "front.csv", "log.jsonl", "result.json",
    ]  # fmt: skip
    assert read_config(tmp_path / "out" / "config.yaml") == job.config
    record = read_result(tmp_path / "out")
    assert (record.best.expression, record.features, record.target) == (str(result.best.tree), ("a",), "y")
    assert [line["generation"] for line in open_run(tmp_path / "out").history] == reported == list(range(7))


def test_the_kept_configuration_repeats_the_run(job: Job, tmp_path: Path) -> None:
    first = run_job(job, chosen_folder(tmp_path / "one"))
    second = run_job(read_job(tmp_path / "one" / "config.yaml"), chosen_folder(tmp_path / "two"))
    assert list(first.rows()) == list(second.rows())


@pytest.mark.slow
def test_a_run_killed_anywhere_goes_on_to_the_same_end(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, snapshots = chosen_folder(tmp_path / "run"), []

    class Watched:
        """Copies the folder before each call, as a process that is killed there would leave it."""

        def __getattr__(self, name: str) -> Any:
            if name not in ("open", "write", "fsync", "replace", "close"):
                return getattr(os, name)
            copy = tmp_path / f"killed before call {len(snapshots)}"
            shutil.copytree(folder, copy)
            snapshots.append(copy)
            return getattr(os, name)

    def watch(progress: Progress) -> bool:
        for module in (files, keeping):
            monkeypatch.setattr(module, "os", Watched() if progress.generation in (2, 6) else os)
        return False

    # Without the setting, the only checkpoint is the final one.
    for setting in ({"checkpoint_seconds": 0.0}, {}):
        shutil.rmtree(folder)
        run_job(job, chosen_folder(folder), watch, **setting)
        monkeypatch.undo()
    expected = ending(folder)
    assert len(snapshots) > 30
    for copy in snapshots[::2]:
        resume_job(copy, tell=lambda notice: None)
        assert ending(copy) == expected, copy.name


EXTENDED = [
    [],
    ["evolution.islands=3", "evolution.migration_interval=5"],
    ["evolution.islands=3", "evolution.migration_interval=4", "evolution.patience=3"],
    ["evolution.islands=2", "evolution.migration_interval=4", "evolution.renewal=3", "evolution.rows=10"],
    ["evolution.islands=2", "fitness.validation=random", "fitness.noise=auto"],
    ["evolution.tournament=2", "evolution.patience=2", "stop.stagnation=4"],
    ["evolution.islands=3", "evolution.migration_interval=5", "stop.loss=0.05"],
]


@pytest.mark.parametrize("settings", mostly_slow(EXTENDED, fast=EXTENDED[1:2]))
def test_any_finished_run_goes_on_to_the_end_of_a_longer_one(settings: list[str], job: Job, tmp_path: Path) -> None:
    run_job(read_job(tmp_path / "small.yaml", [*settings, "stop.generations=12"]), chosen_folder(tmp_path / "whole"))
    run_job(read_job(tmp_path / "small.yaml", settings), chosen_folder(tmp_path / "run"))
    resume_job(tmp_path / "run", overrides=["stop.generations=12"])
    assert ending(tmp_path / "run") == ending(tmp_path / "whole")


IN_TURNS = """
data: {generate: {rows: 200, noise: 0.3, features: {a: {uniform: {low: 1, high: 4}}, b: {uniform: {low: 1, high: 4}}},
  target: a*sin(b) + sqrt(a + 0.3*b)}}
primitives: [add, mul, sin, sqrt]
evolution: {population: 60, max_size: 15, seeding_members: 400}
fitness: {noise: absolute}
stop: {generations: 12, seconds: null}
"""


@pytest.mark.slow
@pytest.mark.parametrize("settings", [[], ["evolution.rows=50", "evolution.renewal=3"]])
def test_a_run_goes_on_in_the_midst_of_its_seeding(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "FIRST_SLICE", 2000)
    monkeypatch.setattr(slices, "SLICE", 2000)
    monkeypatch.setattr(slices, "AN_INDIVIDUAL", 50.0)
    told: list[int] = []

    def counted(stage: Slices, *limits: Any) -> Guesses | None:
        found = until_now(stage, *limits)
        told.append(0 if found is None else len(found.candidates))
        return found

    until_now = Slices.until
    monkeypatch.setattr(Slices, "until", counted)
    (tmp_path / "turns.yaml").write_text(IN_TURNS)
    job = read_job(tmp_path / "turns.yaml", settings)
    run_job(job, chosen_folder(tmp_path / "whole"))
    assert sum(map(bool, told)) > 2
    run_job(job, chosen_folder(tmp_path / "part"), until(5), checkpoint_seconds=0)
    resume_job(tmp_path / "part")
    whole, part = ([{**line, "seconds": 0} for line in open_run(tmp_path / name).history] for name in ("whole", "part"))
    assert part == whole


@pytest.mark.parametrize(
    ("settings", "override", "message"),
    [
        ([], "stop.generations=3", "stop.generations: 3 are over, the run has had 6; give more"),
        ([], "stop.seconds=1e-9", r"stop.seconds: 1e-09 are over, the run has taken \d+\.\d; give more"),
    ],
)
def test_a_limit_that_is_over_is_refused(
    settings: list[str], override: str, message: str, job: Job, tmp_path: Path
) -> None:
    run_job(read_job(tmp_path / "small.yaml", settings), chosen_folder(tmp_path / "run"))
    before = ending(tmp_path / "run")
    with pytest.raises(ConfigError, match=message):
        resume_job(tmp_path / "run", overrides=[override])
    assert ending(tmp_path / "run") == before


def test_an_extension_that_is_cut_short_is_not_taken_for_finished(job: Job, tmp_path: Path) -> None:
    folder = chosen_folder(tmp_path / "run")
    run_job(job, folder)

    def fail(progress: Progress) -> None:
        if progress.generation == 8:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        resume_job(folder, fail, overrides=["stop.generations=9"])
    assert read_result(folder).stopped_by == "interrupted"
    assert resume_job(folder).generations == 9


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evolution.population=21", "evolution.population: is 21, and was 20 when the run began"),
        ("seed=1", "seed: is 1, and was 0"),
        ("fitness.loss=mae", 'fitness.loss: is "mae", and was "mse"'),
        ("data.generate.rows=7", "the data have changed"),
    ],
)
def test_other_settings_are_refused(override: str, message: str, job: Job, tmp_path: Path) -> None:
    run_job(job, chosen_folder(tmp_path / "run"), until(2))
    for _ in range(2):
        with pytest.raises(ShineError, match=message):
            resume_job(tmp_path / "run", overrides=[override])
        shutil.rmtree(tmp_path / "run/checkpoints", ignore_errors=True)  # the result says the same


def test_other_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,y\n1,2.5\n2,4\n3,6\n4,9\n")
    (tmp_path / "c.yaml").write_text("data: {path: d.csv, target: y}\nevolution: {population: 9, seeding: 0.0}")
    run_job(read_job(tmp_path / "c.yaml"), chosen_folder(tmp_path / "run"), until(2))
    (tmp_path / "d.csv").write_text("a,y\n1,2.5\n2,4\n3,6\n4,9.000000000000002\n")
    with pytest.raises(DataError, match="the data have changed since the run began; only these rows can go on"):
        resume_job(tmp_path / "run")


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="holds no run to go on with"):
        resume_job(tmp_path)


def test_a_run_has_one_process_at_a_time(job: Job, tmp_path: Path) -> None:
    folder = chosen_folder(tmp_path / "run")

    def meddle(progress: Progress) -> None:
        with pytest.raises(ExportError, match="another process is writing this run"):
            resume_job(folder)

    assert run_job(job, folder, meddle).generations == 6
    assert resume_job(folder, overrides=["stop.generations=7"]).generations == 7


def test_an_interrupt_while_the_result_is_written_comes_too_late(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, interrupts = chosen_folder(tmp_path / "run"), [KeyboardInterrupt]

    def write_text(path: Path, text: str) -> None:
        if path.name == "front.csv" and interrupts:
            raise interrupts.pop()
        written(path, text)

    monkeypatch.setattr(jobs, "write_text", write_text)
    assert run_job(job, folder).stopped_by == "generations"
    assert (folder / "front.csv").exists()
    assert not interrupts


def test_a_run_with_only_damaged_checkpoints_is_refused(job: Job, tmp_path: Path) -> None:
    folder = chosen_folder(tmp_path / "run")
    run_job(job, folder, until(4), checkpoint_seconds=0)
    for path in Shelf(folder).paths:
        path.write_bytes(b"")
    with pytest.raises(ExportError, match="has no other checkpoint"):
        resume_job(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "error"),
    mostly_slow(
        [(call, error) for call, errors in FAULTS.items() for error in errors],
        fast=[(call, errors[0]) for call, errors in FAULTS.items()],
    ),
)
def test_a_failure_to_write_costs_nothing_that_was_written(call: str, error: int, job: Job, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(SMALL)
    expected = list(run_job(job, chosen_folder(tmp_path / "whole")).rows())
    for lasting in (False, True):
        system = FaultySystem(call, 3, error, lasting)
        assert write_fault(tmp_path, expected, system) == ""
        assert system.failed
        shutil.rmtree(tmp_path / "run")


def test_a_full_disk_is_told_of_once_and_again_in_the_end(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, told = chosen_folder(tmp_path / "run"), list[Notice]()

    def fill(progress: Progress) -> bool:
        if progress.generation == 2:
            for module in (files, keeping):
                monkeypatch.setattr(module, "os", FaultySystem("write", 1, errno.ENOSPC, lasting=True))
        return False

    result = run_job(job, folder, fill, tell=told.append, checkpoint_seconds=0)
    assert (result.generations, result.stopped_by) == (6, "generations")
    assert all(notice.failed and "No space left on device" in notice.text for notice in told)
    assert "the run goes on without it, and keeps trying" in told[0].text
    missing = {notice.text.split(":")[0].rsplit("/", 1)[1] for notice in told[1:]}
    assert missing == {"result.json", "front.csv", "log.jsonl", "checkpoints"}
    assert newest_good(folder) == 2


def test_by_default_python_warns(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chosen_folder(tmp_path / "run")
    monkeypatch.setattr(keeping, "os", FaultySystem("write", 1, errno.EIO, lasting=True))
    with pytest.warns(RuntimeWarning) as caught:
        run_job(job, folder)
    first, last = (str(warning.message) for warning in caught)
    assert "log.jsonl: cannot be written: Input/output error; the run goes on without" in first
    assert "log.jsonl: cannot be written: Input/output error; it is missing, or not the latest" in last


def test_a_folder_that_cannot_be_written_in_the_beginning_is_an_error(job: Job, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="gone: cannot be written: No such file"):
        run_job(job, tmp_path / "gone")


def test_the_documentation_names_everything_in_a_checkpoint(job: Job, tmp_path: Path) -> None:
    run_job(job, chosen_folder(tmp_path / "run"))
    checkpoint = checkpoints.read_checkpoint(Shelf(tmp_path / "run").paths[0])
    text = (Path(__file__).parents[4] / "docs" / "checkpoints.md").read_text()
    named = [*checkpoint.header, *checkpoint.header["islands"][0], *(name.split(".")[1] for name in checkpoint.arrays)]
    assert [name for name in named if f"`{name}`" not in text and f".{name}`" not in text] == []
    assert {name.split(".")[0] for name in checkpoint.arrays} == {"islands", "archive", "past", "parts", "known"}
