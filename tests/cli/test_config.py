"""``shine config``."""

from __future__ import annotations

from pathlib import Path

from cli.commandline import shine


def test_every_problem_of_a_configuration_is_a_line(small: Path) -> None:
    small.write_text("data: {path: none.csv, target: y}\nsed: 1\n")
    result = shine("evolve", small, "--set", "stop.seconds=0")
    assert result.exit_code == 2
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        ["error", "small.yaml:1:8"],
        ["error", "small.yaml:2:1"],
        ["error", "--set stop.seconds"],
    ]
    assert not Path("runs").exists()


def test_a_folder_is_not_a_configuration(tmp_path: Path) -> None:
    result = shine("config", "check", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {tmp_path}: is not a file\n"
