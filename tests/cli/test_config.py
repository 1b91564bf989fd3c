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


def test_check_names_values_that_look_like_missing_ones(small: Path) -> None:
    rows = [f"{-999 if row < 3 else row + 0.5},{row},{2 * row}" for row in range(20)]
    Path("marked.csv").write_text("\n".join(["a,b,y", *rows]))
    told = shine("config", "check", small, "--set", "data={path: marked.csv, target: y}").stdout
    assert "note: column 'a': -999 in 3 rows is far from all other values" in told


def test_a_folder_is_not_a_configuration(tmp_path: Path) -> None:
    result = shine("config", "check", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {tmp_path}: is not a file\n"
