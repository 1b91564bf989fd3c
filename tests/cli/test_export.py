"""``shine export``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import shine

from shine.formats.write import EXPORTS
from shine.formats.write.systems.system import SYSTEM_EXPORTS


def test_the_help_names_every_format() -> None:
    described = " ".join(shine("export", "--help").stdout.split())
    listed = described.partition("FORMAT is ")[2].partition(". ")[0].replace(" or ", ", ").split(", ")
    assert sorted(listed) == sorted(EXPORTS)
    systems = described.partition("integrates it, in ")[2].partition(". ")[0].replace(" or ", ", ").split(", ")
    assert sorted(systems) == sorted(SYSTEM_EXPORTS)


def test_a_run_that_is_not_there_is_not_taken_for_a_division(run: Path) -> None:
    Path("runs").mkdir()
    result = shine("export", "runs/pythagoras", "--to", "python")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: runs/pythagoras: no such folder")


def test_a_name_that_is_no_run_is_taken_for_a_formula_with_a_warning(run: Path) -> None:
    result = shine("export", "mistyped_run", "--to", "python")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: there is no run 'mistyped_run'; it is taken for a formula of one name")
    assert shine("export", "a + b", "--to", "python").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--to", "fortran"], "error: --to fortran: no such format; use one of "),
        (["a", "--to", "python", "--name", "2x"], "error: --name 2x: is no name of a function"),
        (["a", "--to", "python", "--index", "0"], "error: --index is for runs, and there is no folder 'a'"),
        (["a +", "--to", "python"], "error: 'a +': "),
        (["-a", "--to", "python"], "error: No such option '-a'; write -- before"),
    ],
)
def test_a_formula_that_cannot_be_exported_is_wrong_usage(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = shine("export", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.replace("option: -a;", "option '-a';").startswith(message)  # as click before 8.4


def test_a_file_that_cannot_be_written_is_a_failure(run: Path) -> None:
    result = shine("export", run, "--to", "python", "--out", "none/f.py")
    assert (result.exit_code, result.stderr) == (
        1, "error: none/f.py: cannot be written: No such file or directory\n"
    )  # fmt: skip


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """A run about columns with awkward headings."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (60, 2))
    rows = "\n".join(f"{a},{b},{2.5 * a * b}" for a, b in X.tolist())
    (tmp_path / "flats.csv").write_text(f'my area (m²),"rooms, ""net""",price (€)\n{rows}\n', encoding="utf-8")
    (tmp_path / "c.yaml").write_text(
        "data: {path: flats.csv, target: price (€)}\nevolution: {population: 50}\nstop: {generations: 3}\n"
    )
    result = shine("evolve", tmp_path / "c.yaml", "--out", tmp_path / "priced", "--quiet")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "priced"


def test_the_headings_of_a_file_come_back_in_sql_and_in_the_report(priced: Path) -> None:
    text = shine("export", priced, "--to", "sql", "--dialect", "sqlite").stdout
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute('CREATE TABLE flats ("my area (m²)" REAL, "rooms, ""net""" REAL)')
        base.execute("INSERT INTO flats VALUES (2, 3)")
        assert base.execute(f"SELECT {text} FROM flats").fetchone()[0] == pytest.approx(15)
    assert json.loads((priced / "result.json").read_text())["headings"] == ["my area (m²)", 'rooms, "net"']
    page = Path(shine("report", priced).stdout.strip()).read_text(encoding="utf-8")
    assert "<mtext>my area (m²)</mtext>" in page
    predicted = shine("predict", priced, priced.parent / "flats.csv").stdout.split()
    assert predicted[0] == "prediction" and len(predicted) == 61


def test_a_precision_rounds_and_a_wrong_one_is_refused() -> None:
    assert shine("export", "2.34567*a", "--to", "sql", "--precision", "3").stdout == "2.35 * a\n"
    assert shine("export", "2.34567*a", "--to", "latex", "--precision", "exact").stdout == "f = 2.34567 a\n"
    for wrong in ("0", "-1", "all"):
        result = shine("export", "2*a", "--to", "sql", "--precision", wrong)
        assert result.exit_code == 2 and "significant digits from 1 on, or exact" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--to", "sql", "--dialect", "mysql"],
            "error: --dialect mysql: is unknown; use one of standard, sqlite, postgres, duckdb",
        ),
    ],
)
def test_a_dialect_is_one_of_sql(options: list[str], message: str) -> None:
    result = shine("export", "2*a", *options)
    assert result.exit_code == 2 and result.stderr.startswith(message)
