"""docs/cli.md: its commands run, and it has all commands."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from cli.commandline import ROOT, shine

from shine.faces.cli.commands import shine as group
from shine.faces.cli.output import FAILURE, INTERRUPTED, USAGE

TEXT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_commands_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "configs", "configs")
    Path("data.csv").write_text("a,b\n3,4\n5,12\n")
    lines = [line for block in re.findall(r"^```\n(.*?)^```$", TEXT, re.M | re.S) for line in block.splitlines()]
    assert len(lines) > 5
    for line in lines:
        program, *words = shlex.split(line)
        result = shine(*words)
        assert (program, result.exit_code) == ("shine", 0), line
        assert "error: " not in result.stderr and "note: " not in result.stderr, line
    assert [float(row) for row in Path("predicted.csv").read_text().splitlines()[1:]] == [5, 13]


def test_every_command_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z]+)", TEXT, re.M)
    assert set(rows) == set(group.commands)


def test_the_exit_codes_are_those_that_are_used() -> None:
    assert re.findall(r"^\| (\d+) \|", TEXT, re.M) == [str(code) for code in (0, FAILURE, USAGE, INTERRUPTED)]
