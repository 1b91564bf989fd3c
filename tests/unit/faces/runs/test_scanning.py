"""The folders that are runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.past_runs import past_run

from shine.base.errors import ExportError
from shine.runs import find


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
