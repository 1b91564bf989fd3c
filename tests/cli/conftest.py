"""A configuration to run, and finished runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cli.commandline import SMALL, shine


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose search is short, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return Path("small.yaml")


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, for all tests of a module."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "small.yaml").write_text(SMALL)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert shine("evolve", "small.yaml", "--out", "run", "--quiet").exit_code == 0
    finally:
        os.chdir(before)
    return folder / "run"


@pytest.fixture
def run(kept_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run, in the current folder; its chosen formula is a*b."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(kept_run, "run"))
