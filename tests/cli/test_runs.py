"""``shine runs`` lists, shows and compares past runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commandline import shine
from helpers.past_runs import model, past_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs in the folder ``runs``."""
    monkeypatch.chdir(tmp_path)
    past_run(Path("runs/plants"), model("x", 1.0, 1, 0.1), model("2.000000001*exp(x)", 0.1, 4, 0.97), seed=4)
    past_run(Path("runs/möbel"), model("x*x", 0.5, 3, 0.5), population=500)
    return Path("runs")


def test_the_table_has_a_line_for_each_run(runs: Path):
    lines = shine("runs").stdout.splitlines()
    assert lines[0].split()[:6] == ["name", "date", "data", "target", "R2", "loss"]
    assert any(line.endswith("2*exp(x)") for line in lines)


def test_nothing_found_is_told(runs: Path):
    assert shine("runs", "--uses", "sin").stdout == "no run meets these conditions\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "seed"], "--set seed: write KEY=VALUE"),
        (["--sort", "foo"], "error: --sort: cannot sort by 'foo'; there are name, date"),
        (["--in", "nowhere"], "nowhere: no such folder; name the folder that holds the runs with --in"),
        (["--in", "runs/plants"], "runs/plants: is a run itself"),
        (["compare", "plants"], "compare needs at least two runs"),
        (["show", "nothing"], "nothing: no such folder"),
    ],
)
def test_wrong_use_is_one_line(runs: Path, options: list[str], message: str):
    result = shine("runs", *options)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1


def test_show_tells_the_settings_that_are_no_defaults(runs: Path):
    text = shine("runs", "show", "plants").stdout
    assert "evolution.population  100" in text and "/data/plants.csv" in text and "2*exp(x)" in text


def test_show_an_unfinished_run(runs: Path):
    (runs / "plants/result.json").unlink()
    (runs / "plants/log.jsonl").write_text(json.dumps({"generation": 1, "loss": 2.0, "size": 1, "formula": "x"}) + "\n")
    assert "so far: x" in shine("runs", "show", "plants").stdout
    assert "unfinished" in shine("runs").stdout
