"""``shine config``."""

from __future__ import annotations

import json
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


def test_check_says_what_the_data_are(small: Path) -> None:
    result = shine("config", "check", small)
    assert (result.exit_code, result.stdout) == (0, "small.yaml: valid; 20 rows of a, b\n")
    assert json.loads(shine("config", "check", small, "--json").stdout) == {
        "valid": True, "rows": 20, "features": ["a", "b"], "notes": [],
    }  # fmt: skip


def test_check_names_values_that_look_like_missing_ones(small: Path) -> None:
    rows = [f"{-999 if row < 3 else row + 0.5},{row},{2 * row}" for row in range(20)]
    Path("marked.csv").write_text("\n".join(["a,b,y", *rows]))
    told = shine("config", "check", small, "--set", "data={path: marked.csv, target: y}").stdout
    assert "note: column 'a': -999 in 3 rows is far from all other values" in told


def test_check_lists_the_problems_as_json(small: Path) -> None:
    result = shine("config", "check", small, "--set", "sed=3", "--set", "stop.seconds=0", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    found = json.loads(result.stdout)
    assert found["valid"] is False
    assert [problem.partition(":")[0] for problem in found["problems"]] == ["--set sed", "--set stop.seconds"]


def test_the_schema_is_json() -> None:
    assert json.loads(shine("config", "schema").stdout)["title"] == "Config"
    assert shine("config", "schema", "--json").stdout == shine("config", "schema").stdout


def test_a_folder_is_not_a_configuration(tmp_path: Path) -> None:
    result = shine("config", "check", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {tmp_path}: is not a file\n"
