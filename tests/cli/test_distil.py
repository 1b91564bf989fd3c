"""``shine distil`` writes samples, a run for each output, and fidelities."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commandline import shine
from helpers.markers import mostly_slow

NETWORK = """module @network
func @main: (<8 x f64>, <8 x f64>) -> (<8 x f64>, <8 x f64>) {
'entry(%a: <8 x f64>, %b: <8 x f64>):
    %product = mul %a: <8 x f64>, %b: <8 x f64>
    %total = add %a: <8 x f64>, %b: <8 x f64>
    return %product: <8 x f64>, %total: <8 x f64>
}
"""
QUICK = ["--set", "evolution={population: 50, max_size: 5, seeding: 0}", "--set", "stop.generations=3"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("network.txt").write_text(NETWORK)
    return Path("network.txt")


@pytest.mark.slow
def test_each_output_is_a_run_and_fidelities_are_kept(model: Path):
    Path("rows.csv").write_text("a,b,measured\n" + "".join(f"{i},{i % 3 + 1},{i * (i % 3 + 1)}\n" for i in range(20)))
    result = shine("distil", model, "--data", "rows.csv", "--target", "measured", "--output", "product", *QUICK)
    assert result.exit_code == 0, result.output
    assert "formula to network: R2 1," in result.stdout and "network to data:    R2 1," in result.stdout
    kept = json.loads(Path("runs/network/fidelity.json").read_text())
    assert kept["outputs"]["product"]["to_data"]["rows"] == 20 and kept["dropped"] == 0
    both = shine("distil", model, "--inputs", "a=1:2,b=1:2", "--out", "both", "--quiet", *QUICK)
    assert both.exit_code == 0 and len(both.stdout.splitlines()) == 2
    printed = shine("distil", model, "--inputs", "a=1:2,b=1:2", "--out", "again", "--json", *QUICK).stdout
    assert json.loads(printed) == json.loads(Path("again/fidelity.json").read_text())
    assert json.loads(printed)["outputs"]["product"]["formula"] in both.stdout
    assert Path("both/samples.csv").read_text().startswith("a,b,product,total\n")
    assert [each["name"] for each in json.loads(shine("runs", "--in", "both", "--json").stdout)] != []
    assert shine("predict", "both/total", "rows.csv").exit_code == 0
    assert shine("resume", "both/total", "--set", "stop.generations=4").exit_code == 0


WRONG = [
    ([], "say where to sample"),
    (["--inputs", "c=1:2"], "or 2 of a batch, and 1 are given"),
    (["--inputs", "a=2:1,b=1:2"], "the range of a is 2 to 1; the least value comes first"),
    (["--inputs", "a=nan:1,b=1:2"], "the range of a has the end nan"),
    (["--inputs", "a=1,b=1:2"], "write the range of a as a=-2:2"),
    (["--inputs", "a=1:2,a=1:2"], "name each input once"),
    (["--inputs", "a=1:2,b"], "a range for each input, or for none"),
    (["--inputs", "a=1:2,b=1:2", "--layer", "c"], "there is no layer 'c'"),
    (["--inputs", "a=1:2,b=1:2", "--output", "c"], "there are product, total"),
    (["--inputs", "a=1:2,b=1:2", "--target", "c"], "--target names a column of --data"),
    (["--data", "network.txt"], "--data needs --target"),
    (["--inputs", "a=1:2,b=1:2", "--shape", "a=1"], "--shape is for graphs of"),
]


@pytest.mark.parametrize(("options", "message"), mostly_slow(WRONG, fast=[WRONG[0], WRONG[2], WRONG[7]]))
def test_wrong_use_is_one_line(model: Path, options: list[str], message: str):
    result = shine("distil", model, *options)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("runs").exists()
