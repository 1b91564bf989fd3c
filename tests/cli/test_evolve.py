"""``shine evolve`` and ``shine resume``: their output, and the files of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.commandline import ENDLESS, PRODUCTS, shine

from shine.faces.cli.output import front_table
from shine.faces.runs.keeping import Notice
from shine.lang.parse import parse
from shine.runs import read_result
from shine.search.models.model import Model
from shine.search.models.result import Result


def test_a_run_prints_the_front_and_keeps_it(small: Path) -> None:
    result = shine("evolve", small)
    assert result.exit_code == 0, result.stderr
    record = read_result("runs/small")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["index", "complexity", "loss", "r2", "formula"]
    assert [line.split()[0] for line in lines[1 : len(record.front) + 1] if line[0] != "*"] == [
        str(index) for index, model in enumerate(record.front) if model != record.best
    ]
    assert [line.split()[-1] for line in lines if line.startswith("*")] == [record.best.expression]
    assert record.best.expression in PRODUCTS
    assert lines[-1] == "result.json, front.csv, log.jsonl and config.yaml are in runs/small"
    # The machine that fits constants is compiled unless an earlier test has.
    assert result.stderr.startswith("searching, and keeping the run in runs/small\n")


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


STAGNANT = [*ENDLESS, "--set", "stop.generations=null", "--set", "stop.seconds=null", "--set", "stop.stagnation=3"]


@pytest.mark.slow
def test_a_run_that_stagnates_ends_and_goes_on_if_it_may_wait_longer(small: Path) -> None:
    result = shine("evolve", small, "--out", "run", *STAGNANT)
    assert result.exit_code == 0
    assert "stopped by a lack of progress" in result.stdout
    ended = read_result("run").generations
    again = shine("resume", "run")
    assert "is finished, by its limit of stagnation; raise it to go on" in again.stderr
    on = shine("resume", "run", "--set", f"stop.stagnation={ended + 2}")
    assert on.exit_code == 0
    assert read_result("run").generations > ended


def test_a_finished_run_is_printed_again_with_a_note(run: Path) -> None:
    result = shine("resume", run, "--quiet")
    assert (result.exit_code, result.stdout.strip() in PRODUCTS) == (0, True)
    assert result.stderr.startswith("note: run: is finished")


def test_a_failed_write_is_reported_and_fails_at_the_end(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shine.faces.runs as module

    real = module.run_job

    def troubled(*arguments: object, tell: object, **named: object) -> object:
        tell(Notice("log.jsonl: cannot be written: No space left on device", failed=True))  # type: ignore[operator]
        return real(*arguments, tell=tell, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "run_job", troubled)
    result = shine("evolve", small, "--quiet")
    assert result.stdout.strip() in PRODUCTS
    assert (result.exit_code, result.stderr) == (1, "error: log.jsonl: cannot be written: No space left on device\n")


def test_the_table_fits_the_terminal_and_is_whole_elsewhere() -> None:
    long = Model(parse("*".join(["(a + 1.5)"] * 30), ("a",)), 0.5, -0.0)
    result = Result((long,), 0, 1, 1, 1.0, 0, "loss")
    assert max(len(line) for line in front_table(result, 80).splitlines()) <= 80
    assert max(len(line) for line in front_table(result, 20).splitlines()) <= 20
    assert front_table(result).splitlines()[1] == f"*     0  {119:>10}  {0.5:>11}   0.000000  {long.formula()}"
