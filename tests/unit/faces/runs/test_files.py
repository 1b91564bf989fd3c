"""Folders of runs, and files that are written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shine.base import files
from shine.base.errors import ExportError
from shine.runs import chosen_folder, default_folder, write_text


def test_default_folders_are_numbered(tmp_path: Path) -> None:
    made = [default_folder(Path("configs/x.yaml"), tmp_path / "runs") for _ in range(3)]
    assert [folder.name for folder in made] == ["x", "x-2", "x-3"]
    assert all(folder.is_dir() for folder in made)


def test_a_chosen_folder_must_be_new_or_empty(tmp_path: Path) -> None:
    assert chosen_folder(tmp_path / "a" / "b").is_dir()
    assert chosen_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    with pytest.raises(FileExistsError, match="is not empty; choose another folder"):
        chosen_folder(tmp_path / "a")
    (tmp_path / "a" / "result.json").touch()
    with pytest.raises(FileExistsError, match="already holds the result of a run"):
        chosen_folder(tmp_path / "a")


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(ExportError, match="cannot be written: Not a directory"):
        default_folder(Path("x.yaml"), tmp_path / "runs")
    with pytest.raises(ExportError, match="is a file; choose a new or empty folder"):
        chosen_folder(tmp_path / "runs")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "f", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "f", "\ud800")
    assert (tmp_path / "f").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_write_that_takes_only_a_part_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def write(self, descriptor: int, content: memoryview) -> int:
            return os.write(descriptor, content[:3])

    monkeypatch.setattr(files, "os", Slow())
    write_text(tmp_path / "f", "some text of more letters")
    assert (tmp_path / "f").read_text() == "some text of more letters"
