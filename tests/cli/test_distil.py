"""``shine distil`` writes samples, a run for each output, and fidelities."""

from __future__ import annotations

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


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("network.txt").write_text(NETWORK)
    return Path("network.txt")


WRONG = [
    ([], "say where to sample"),
    (["--inputs", "c=1:2"], "or 2 of a batch, and 1 are given"),
    (["--inputs", "a=2:1,b=1:2"], "the range of a is 2 to 1; the least value comes first"),
    (["--inputs", "a=1,b=1:2"], "write the range of a as a=-2:2"),
    (["--inputs", "a=1:2,b=1:2", "--target", "c"], "--target names a column of --data"),
    (["--data", "network.txt"], "--data needs --target"),
    (["--inputs", "a=1:2,b=1:2", "--shape", "a=1"], "--shape is for graphs of"),
]


@pytest.mark.parametrize(("options", "message"), mostly_slow(WRONG, fast=WRONG[:3]))
def test_wrong_use_is_one_line(model: Path, options: list[str], message: str):
    result = shine("distil", model, *options)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("runs").exists()
