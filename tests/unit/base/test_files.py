"""Files are written whole, and links of others lead nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from helpers.past_runs import past_run

from shine.base.files import WRITING, remove_leftovers, replacing, target, write_bytes
from shine.data.streams.writers import writer_of
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.faces.runs.jobs import only_writer
from shine.faces.runs.keeping import Log
from shine.formats.native.code import written
from shine.runs import find


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that belongs to somebody, outside the folder that is written to."""
    path = tmp_path / "elsewhere/victim"
    path.parent.mkdir()
    path.write_bytes(b"precious")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that others may write to."""
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o777)
    return path


def test_a_link_in_the_place_of_a_file_is_replaced(folder: Path, victim: Path):
    (folder / "f").symlink_to(victim)
    write_bytes(folder / "f", b"new")
    assert (folder / "f").read_bytes() == b"new" and not (folder / "f").is_symlink()
    assert victim.read_bytes() == b"precious"


def test_emitted_files_replace_links(folder: Path, victim: Path):
    (folder / "f.h").symlink_to(victim)
    written({"f.h": b"new"}, folder)
    assert victim.read_bytes() == b"precious" and (folder / "f.h").read_bytes() == b"new"


def test_a_log_that_is_a_link_is_refused(folder: Path, victim: Path):
    (folder / "log.jsonl").symlink_to(victim)
    log = Log(folder / "log.jsonl")
    with pytest.raises(OSError, match="is not a file"):
        log.begin(0)
    with pytest.raises(OSError):
        log.add({"generation": 0})
    assert victim.read_bytes() == b"precious"


def test_checkpoints_that_are_a_link_are_refused(folder: Path, victim: Path):
    kept = victim.parent / "0000000001.npz"
    kept.write_bytes(b"precious")
    (folder / "checkpoints").symlink_to(victim.parent)
    with pytest.raises(OSError, match="checkpoints is a link"):
        Shelf(folder).put(Checkpoint({"generation": 0}, {}))
    assert kept.read_bytes() == b"precious"


@pytest.mark.parametrize("name", [".shine-runs.sqlite", ".result.json.partial", "result.json.tmp"])
def test_looking_at_runs_writes_nothing(folder: Path, victim: Path, name: str):
    past_run(folder / "a")
    (folder / name).symlink_to(victim)
    before = sorted(path.name for path in folder.rglob("*"))
    assert [each.name for each in find(folder)] == ["a"]
    assert sorted(path.name for path in folder.rglob("*")) == before and victim.read_bytes() == b"precious"


@pytest.mark.parametrize("ending", [".csv", ".npy"])
def test_predictions_are_written_beside_planted_parts(folder: Path, victim: Path, ending: str):
    (folder / f".out.part{ending}").symlink_to(victim)
    with writer_of(folder / f"out{ending}", ("prediction",), 2) as write:
        write({"prediction": np.ones(2)})
    assert victim.read_bytes() == b"precious" and (folder / f"out{ending}").stat().st_size


def test_links_of_the_user_lead_to_the_file(folder: Path, victim: Path):
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to(victim)
    assert target(folder / "one").resolve() == victim.resolve()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others")
def test_links_of_others_are_refused(folder: Path, victim: Path):
    (folder / "f").symlink_to(victim)
    os.chown(folder / "f", 12345, 12345, follow_symlinks=False)
    with pytest.raises(PermissionError, match="f is a link of another user"):
        target(folder / "f")


def test_links_in_a_circle_are_an_error(folder: Path):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        target(folder / "a")


def test_an_error_leaves_the_old_file_and_nothing_else(folder: Path):
    (folder / "f").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(folder / "f") as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("f", b"old")]


def test_what_killed_processes_left_is_removed_by_the_next_writer_of_a_run(folder: Path, victim: Path):
    (folder / "checkpoints").mkdir()
    for place in (folder, folder / "checkpoints"):
        (place / f"{WRITING}0123").write_bytes(b"half")
        (place / f"{WRITING}link").symlink_to(victim)
    with only_writer(folder):
        assert [path.name for path in folder.rglob("*")] == ["checkpoints"]
    assert victim.read_bytes() == b"precious"
    remove_leftovers(folder / "none")
