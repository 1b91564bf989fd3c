"""``shine summary``, and the intervals of ``shine predict``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import SMALL, shine

from shine.runs import open_run


@pytest.fixture(scope="module")
def noisy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose data have noise."""
    folder = tmp_path_factory.mktemp("noisy")
    rng = np.random.default_rng(0)
    table = rng.uniform(1, 2, (40, 2))
    rows = np.column_stack([table, 3.21 * table[:, 0] + 1.7 + rng.normal(0, 0.1, 40)])
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,y", comments="")
    text = SMALL.splitlines()
    text[1] = f"data: {{path: {folder / 'rows.csv'}, target: y}}"
    (folder / "noisy.yaml").write_text("\n".join(text))
    done = shine("evolve", folder / "noisy.yaml", "--out", folder / "run")
    assert done.exit_code == 0, done.stderr
    assert "with 95 % intervals: " in done.stdout
    return folder / "run"


def test_it_prints_the_table_of_the_chosen_formula(noisy_run: Path) -> None:
    done = shine("summary", noisy_run)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[2].split() == ["coef", "std", "err", "t", "P>|t|", "[0.025", "0.975]"]
    assert done.stdout == f"{open_run(noisy_run).result.best.summary()}\n"


def _two_constants(folder: Path) -> tuple[str, str]:
    """Place of a formula with two constants at least, and the first of them."""
    front = list(open_run(folder).result.front)
    place = next(at for at, model in enumerate(front) if len(model.form().names) > 1)
    return str(place), repr(abs(float(front[place].form().values[0])))


def test_numbers_that_are_known_are_in_the_formula(noisy_run: Path) -> None:
    done = shine("summary", noisy_run, "--exact", "12345")
    assert done.exit_code == 2
    assert "--exact: exact has 12345, which is no number of" in done.stderr


def test_numbers_that_are_known_need_the_rows_of_the_run(noisy_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(noisy_run, copy)
    place, number = _two_constants(noisy_run)
    table = np.loadtxt(noisy_run.parent / "rows.csv", delimiter=",", skiprows=1)
    table[:, 2] += np.random.default_rng(1).normal(0, 0.2, len(table))
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,y", comments="")
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace(str(noisy_run.parent), str(tmp_path)))
    done = shine("summary", copy, "--index", place, "--exact", number)
    assert done.exit_code == 1
    assert "those of the run's data are others" in done.stderr
    (tmp_path / "rows.csv").unlink()
    done = shine("summary", copy, "--index", place, "--exact", number)
    assert done.exit_code == 1
    assert "--exact needs the run's data: " in done.stderr


def test_a_formula_without_its_uncertainty_is_told(run: Path) -> None:
    path = run / "result.json"
    record = json.loads(path.read_text())
    for model in (record["best"], *record["front"]):
        del model["uncertainty"]
    path.write_text(json.dumps(record))
    done = shine("summary", run)
    assert done.exit_code == 1
    assert "result.json does not say how sure the constants of this formula are" in done.stderr


def test_damaged_details_are_reported(run: Path) -> None:
    path = run / "result.json"
    record = json.loads(path.read_text())
    for model in (record["best"], *record["front"]):
        model["uncertainty"]["details"] = {"names": 3, "redundant": []}
    path.write_text(json.dumps(record))
    done = shine("predict", run, "data.csv")
    assert done.exit_code == 2 and "its uncertainty is damaged" in done.stderr


def test_extrapolation_is_a_note(noisy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n9.0,1.2\n")
    done = shine("predict", noisy_run, tmp_path / "data.csv")
    assert done.stderr.startswith(
        "note: the formula extrapolates: X leaves the range of the rows it was fitted to, of 'a'"
    )
    assert "silence" not in done.stderr and done.exit_code == 0


@pytest.mark.parametrize("level", ["0", "1", "95", "nan", "x"])
def test_a_level_is_a_share(noisy_run: Path, level: str) -> None:
    assert shine("predict", noisy_run, "data.csv", "--interval", level).exit_code == 2
