"""The command line: usage, exit codes, what goes to stdout and stderr, and the files of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shine.cli import main
from shine.cli.display import front_table
from shine.runs import ModelRecord, ResultRecord, read_result, versions

ROOT = Path(__file__).resolve().parents[1]
SMALL = """
data: {generate: {rows: 20, features: {a: {uniform: {low: 1, high: 2}}, b: {uniform: {low: 1, high: 2}}}, target: a*b}}
evolution: {population: 50, max_size: 5}
fitness: {tier: reference}
stop: {generations: 5}
"""
PRODUCTS = ("a*b", "b*a")


def shine(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return Path("small.yaml")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["evolve", "--help"], ["config", "check", "--help"]])
def test_help_is_printed(arguments: list[str]) -> None:
    result = shine(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


def test_help_does_not_import_what_searches() -> None:
    code = "import sys; from shine.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([name for name in ('pydantic', 'yaml', 'tqdm') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_printed() -> None:
    result = shine("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("shine ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evolve"], "error: Missing argument 'CONFIG'; see 'main evolve --help'\n"),
        (["nonsense"], "error: No such command 'nonsense'; see 'main --help'\n"),
        (["evolve", "c.yaml", "--sede", "3"], "error: No such option '--sede'"),
        (["evolve", "c.yaml", "--seed", "x"], "error: Invalid value for '--seed': 'x' is not a valid integer range"),
        (["evolve", "c.yaml", "--seed", "-1"], "error: Invalid value for '--seed': -1 is not in the range"),
        (["evolve", "none.yaml"], "error: none.yaml: cannot be read: No such file or directory\n"),
        (["config", "check", "none.yaml"], "error: none.yaml: cannot be read: No such file or directory\n"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr(arguments: list[str], message: str) -> None:
    result = shine(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


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


def test_the_schema_is_json() -> None:
    assert json.loads(shine("config", "schema").stdout)["title"] == "Config"


def test_a_run_prints_the_front_and_keeps_it(small: Path) -> None:
    result = shine("evolve", small)
    assert result.exit_code == 0, result.stderr
    record = read_result("runs/small")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["complexity", "loss", "r2", "formula"]
    assert [line.split()[-1] for line in lines if line.startswith("*")] == [record.best.expression]
    assert record.best.expression in PRODUCTS
    assert lines[-1] == "result.json, front.csv, log.jsonl and config.yaml are in runs/small"
    assert result.stderr == ""


def test_a_second_run_overwrites_nothing(small: Path) -> None:
    for folder in ("runs/small", "runs/small-2"):
        assert shine("evolve", small).stdout.endswith(f" are in {folder}\n")


def test_out_names_the_folder_which_must_be_new_or_empty(small: Path) -> None:
    assert shine("evolve", small, "--out", "here").exit_code == 0
    before = Path("here/result.json").read_bytes()
    again = shine("evolve", small, "--out", "here")
    assert again.exit_code == 2
    assert again.stderr == "error: --out here: already holds the result of a run; choose another folder\n"
    assert Path("here/result.json").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_a_failure(small: Path) -> None:
    Path("runs").touch()
    result = shine("evolve", small)
    assert (result.exit_code, result.stderr) == (1, "error: runs/small: cannot be written: Not a directory\n")


def test_quiet_prints_the_formula_alone(small: Path) -> None:
    result = shine("evolve", small, "--quiet")
    assert result.stdout.strip() in PRODUCTS
    assert result.stderr == ""


def test_seed_and_set_are_kept_in_the_configuration_of_the_run(small: Path) -> None:
    assert shine("evolve", small, "--seed", "9", "--set", "stop.generations=1", "--set", "seed=3").exit_code == 0
    kept = Path("runs/small/config.yaml").read_text()
    assert "\nseed: 9\n" in kept
    assert "  generations: 1\n" in kept
    assert read_result("runs/small").seed == 9


def test_the_kept_configuration_repeats_the_run(small: Path) -> None:
    shine("evolve", small, "--seed", "5", "--out", "one")
    shine("evolve", "one/config.yaml", "--out", "two")
    assert Path("one/front.csv").read_text() == Path("two/front.csv").read_text()
    assert Path("one/config.yaml").read_text() == Path("two/config.yaml").read_text()


def test_an_interrupted_run_keeps_and_prints_what_it_found(small: Path) -> None:
    command = [sys.executable, "-m", "shine", "evolve", str(small), "--set", "stop={generations: 1000000, loss: 0}"]
    command += ["--set", "data.generate.target=sin(a*b)"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = Path("runs/small/log.jsonl")
    patience = time.monotonic() + 20
    while not (log.exists() and log.stat().st_size) and time.monotonic() < patience:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "stopped by the user" in output
    assert "Traceback" not in errors
    assert read_result("runs/small").stopped_by == "interrupted"


def test_a_reader_that_leaves_early_is_no_error(small: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "shine", "config", "schema"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(20) == 1
    process.stderr.close()


def test_the_module_runs_as_the_command_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shine", "evolve", "none.yaml"],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.yaml: cannot be read: No such file or directory\n"


def test_the_table_fits_the_terminal_and_is_whole_elsewhere() -> None:
    long = ModelRecord(expression="a*" * 60 + "a", loss=0.5, complexity=121, r2=-0.0)
    record = ResultRecord(
        schema_version=1, best=long, front=(long,), generations=1, evaluations=1, seconds=1, seed=0, stopped_by="loss",
        versions=versions(),
    )  # fmt: skip
    assert [len(line) for line in front_table(record, 80).splitlines()][1:] == [80]
    assert front_table(record).splitlines()[1] == f"* {121:>10}  {0.5:>11}   0.000000  {long.expression}"
