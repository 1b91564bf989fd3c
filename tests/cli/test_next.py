"""``shine next``, and ties in the texts of other commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import SMALL, shine

from shine.runs import open_run


@pytest.fixture(scope="module")
def tied_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose rows leave several formulas: few rows, much noise; one column has texts, one whole numbers."""
    folder = tmp_path_factory.mktemp("tied")
    rng = np.random.default_rng(0)
    metals = ["iron", "tin", "zinc"]
    lines = ["t [s],metal,count,y"]
    for at in range(15):
        t, metal = rng.uniform(0.5, 2), metals[at % 3]
        y = 3 * t / (1 + 0.4 * t) + (metal == "tin") + rng.normal(0, 0.1)
        lines.append(f"{t:.4f},{metal},{1 + at % 4},{y:.4f}")
    (folder / "rows.csv").write_text("\n".join(lines))
    text = SMALL.splitlines()
    text[1] = f"data: {{path: {folder / 'rows.csv'}, target: y, categories: one-hot}}"
    text[2] = "evolution: {population: 400, max_size: 12, seeding: 0}"
    (folder / "tied.yaml").write_text("\n".join(text))
    done = shine("evolve", folder / "tied.yaml", "--out", folder / "run")
    assert done.exit_code == 0, done.stderr
    return folder / "run"


def test_without_the_data_a_note_says_so(tied_run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tied_run, tmp_path / "run"))
    text = (copy / "config.yaml").read_text().replace("rows.csv", "gone.csv")
    (copy / "config.yaml").write_text(text)
    done = shine("next", copy, "--box", "t [s]=0.5:10", "--box", "count=1:4")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("note: without the run's data, all numbers count as continuous: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--box", "x=1:2"), "box has 'x', which is no feature; there are t [s], metal, count"),
     (("--box", "metal=gold"), "'metal' has no label 'gold'; it has iron, tin, zinc"),
     (("--box", "t [s]=3:1"), "the lower limit comes first"),
     (("--box", "t [s]=nan:1"), "its limits are finite numbers"),
     (("--box", "t [s]"), "is not NAME=LOW:HIGH"),
     (("--box", "count=1", "--box", "count=2"), "'count' is there twice"),
     (("-n", "0"), "n is 0; it is a number of points from 1"),
     (("--cost", "-1"), "prices are positive numbers")],
)  # fmt: skip
def test_wrong_options_are_told_in_a_line(tied_run: Path, options: tuple[str, ...], message: str) -> None:
    done = shine("next", tied_run, *options)
    assert done.exit_code == 2 and message in done.stderr and len(done.stderr.splitlines()) <= 4


def test_formulas_without_their_uncertainty_are_told(run: Path) -> None:
    path = run / "result.json"
    record = json.loads(path.read_text())
    for model in (record["best"], *record["front"]):
        del model["uncertainty"]
    path.write_text(json.dumps(record))
    done = shine("next", run)
    assert done.exit_code == 1 and "does not say how sure the constants of all formulas are" in done.stderr


def test_ties_stand_below_the_summary_and_in_the_report(tied_run: Path, tmp_path: Path) -> None:
    ties = open_run(tied_run).result.ties_text
    assert "cannot be told apart" in ties
    assert shine("summary", tied_run).stdout.splitlines()[-1] == f"ties: {ties}"
    assert shine("report", tied_run, "--out", tmp_path / "page.html").exit_code == 0
    assert f"{ties[0].upper()}{ties[1:]}." in (tmp_path / "page.html").read_text(encoding="utf-8")
