"""The index: always what the folders say, whatever happened to it or to them."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.past_runs import model, past_run
from hypothesis import given, settings
from hypothesis import strategies as st

import shine as installed
from shine.errors import ExportError
from shine.runs import Found, find
from shine.runs.index import FILE

CLOCK = itertools.count()

FRONTS = [(model("x"),), (model("exp(x)"), model("x*x", 0.1)), (model("log(x) + 'quoted\"; DROP TABLE runs'"),)]


def everything(folder: Path) -> list[Found]:
    """All formulas of all runs, by the index."""
    return [*find(folder, sort="name"), *find(folder, formulas=True, sort="name")]


def anew(folder: Path) -> list[Found]:
    """The same by an index that is made anew, beside another name of the folder."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(FILE))
    try:
        return [each._replace(folder=str(folder / each.name)) for each in everything(copy)]
    finally:
        shutil.rmtree(copy)


def changed(folder: Path, change: tuple[str, str, int]) -> None:
    """Change a run as other processes do."""
    kind, name, number = change
    run = folder / name
    if kind == "remove":
        shutil.rmtree(run, ignore_errors=True)
    elif kind == "write":
        # Files that change have another time, a second later each.
        settings = {
            "seed": number,
            "population": 100 * number,
            "data_hash": None,
            "date": 1_700_000_000.0 + next(CLOCK),
        }
        past_run(run, *FRONTS[number % 3], **settings)
    elif kind == "settings" and run.exists():
        (run / "config.yaml").write_text(f"evolution: {{population: {number}}}\n")
    elif kind == "unfinish" and run.exists():
        (run / "result.json").unlink(missing_ok=True)
    elif kind == "damage" and run.exists():
        (run / "result.json").write_text("{" * number)


CHANGES = st.tuples(
    st.sampled_from(["write", "write", "remove", "settings", "unfinish", "damage"]),
    st.sampled_from(["a", "b", "sweep/1", "sweep/2", "größe 'x'"]),
    st.integers(0, 4),
)


@settings(max_examples=15)
@given(st.lists(st.lists(CHANGES, max_size=3), min_size=1, max_size=4))
def test_an_index_that_is_kept_equals_one_that_is_made_anew(rounds: list[list[tuple[str, str, int]]]):
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "runs"
        folder.mkdir()
        for changes in rounds:
            for change in changes:
                changed(folder, change)
            assert everything(folder) == anew(folder)


def garbage(path: Path) -> None:
    """Replace the middle of a file."""
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 4)
        stream.write(b"\xff\x07" * (path.stat().st_size // 4))


def other_tables(path: Path) -> None:
    """An index of another version."""
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (something)")
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def same_version_other_tables(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (something)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("this is no database" * 100),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5000]),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "garbage": garbage,
    "other version": other_tables,
    "other tables": same_version_other_tables,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_made_anew(damage: Callable[[Path], object], tmp_path: Path):
    for number in range(30):
        past_run(tmp_path / f"run-{number}", *FRONTS[number % 3], population=number)
    before = everything(tmp_path)
    damage(tmp_path / FILE)
    assert everything(tmp_path) == before
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_without_a_file_that_can_be_written_the_folders_are_read_each_time(tmp_path: Path):
    past_run(tmp_path / "a")
    (tmp_path / FILE).mkdir()
    assert [each.name for each in find(tmp_path)] == ["a"]
    past_run(tmp_path / "b")
    assert {each.name for each in find(tmp_path)} == {"a", "b"}


def test_a_named_pipe_in_place_of_the_index_is_left_alone(tmp_path: Path):
    past_run(tmp_path / "a")
    os.mkfifo(tmp_path / FILE)
    assert len(find(tmp_path)) == 1
    assert stat.S_ISFIFO((tmp_path / FILE).stat().st_mode)


@pytest.mark.slow
def test_a_locked_index_is_read_beside_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shine.runs.index.BUSY", 0.01)
    past_run(tmp_path / "a")
    find(tmp_path)
    past_run(tmp_path / "b")
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        assert {each.name for each in find(tmp_path)} == {"a", "b"}
    finally:
        holder.close()


def test_an_unchanged_run_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    past_run(tmp_path / "a")
    before = find(tmp_path)
    monkeypatch.setattr("shine.runs.index.read_entry", lambda folder: pytest.fail(f"{folder} was read"))
    assert find(tmp_path) == before


@pytest.mark.slow
def test_processes_that_refresh_at_once_see_every_run(tmp_path: Path):
    for number in range(60):
        past_run(tmp_path / f"run-{number}", population=number)
    code = f"from shine.runs import find; print(len(find({str(tmp_path)!r})), len(find({str(tmp_path)!r}, uses='exp')))"
    environment = {**os.environ, "PYTHONPATH": str(Path(installed.__file__).parents[1])}
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0].split() for process in started] == [["60", "60"]] * 3
    assert len(find(tmp_path)) == 60


def test_links_within_the_folder_are_no_second_runs(tmp_path: Path):
    past_run(tmp_path / "runs/a")
    past_run(tmp_path / "elsewhere/b")
    (tmp_path / "runs/latest").symlink_to("a")
    (tmp_path / "runs/self").symlink_to(".")
    (tmp_path / "runs/up").symlink_to("..")
    (tmp_path / "runs/far").symlink_to(tmp_path / "elsewhere")
    assert [each.name for each in find(tmp_path / "runs", sort="name")] == ["a", "far/b"]


def test_hidden_folders_and_files_are_no_runs(tmp_path: Path):
    past_run(tmp_path / ".trash/a")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    assert find(tmp_path) == []


def test_a_missing_folder_is_told(tmp_path: Path):
    with pytest.raises(ExportError, match="no such folder; name the folder that holds the runs"):
        find(tmp_path / "none")


def test_settings_that_no_run_has_any_more_are_forgotten(tmp_path: Path):
    past_run(tmp_path / "a", population=123)
    find(tmp_path)
    past_run(tmp_path / "a", population=456, date=1_800_000_000)
    find(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT count(*) FROM choices").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM settings WHERE value = 123").fetchone() == (0,)
    connection.close()
