"""Runs of fields on the command line: a long table, `kind: pde`, and what the other commands do with the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import shine
from helpers.known_fields import burgers, known_fields

from shine.search.dynamics.fields import run

X, T = np.linspace(-8, 8, 97), np.linspace(0, 2, 33)
"""Nothing happens at the edges."""

FIELD = burgers(X, T + 1)

CONFIG = """\
data: {path: waves.csv}
dynamics: {kind: pde, time: t in s, space: [x in m], states: [height]}
stop: {seconds: 5}
"""


def long_table(path: str, rows: list[int] | None = None) -> None:
    """A row for each time and point, with coordinates of five decimals."""
    times, places = np.meshgrid(T, X, indexing="ij")
    columns = times.ravel().tolist(), places.ravel().tolist(), FIELD.ravel().tolist()
    every = [f"{t:.5f},{x:.5f},{value!r}" for t, x, value in zip(*columns, strict=True)]
    chosen = every if rows is None else [every[row] for row in rows]
    Path(path).write_text("\n".join(["t in s,x in m,height", *chosen, ""]))


@pytest.fixture
def waves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name of a run of shocks, in ``runs``."""
    monkeypatch.chdir(tmp_path)
    law = "0.2*height_xx - 0.9*height*height_x"
    monkeypatch.setattr(run, "find_fields", known_fields("0.5*height_xx", law))
    long_table("waves.csv", list(np.random.default_rng(0).permutation(X.size * T.size)))
    Path("waves.yaml").write_text(CONFIG)
    found = shine("evolve", "waves.yaml")
    assert found.exit_code == 0, found.stderr
    assert "height_t = " in found.stdout
    return "waves"


def test_the_fields_of_a_start_are_integrated(waves: str) -> None:
    long_table("start.csv", list(range(X.size)))
    lines = shine("predict", waves, "start.csv", "--times", "0:2:0.0625").stdout.splitlines()
    assert lines[0] == "t in s,x in m,height"
    rows = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    np.testing.assert_allclose(rows[:, 0], np.repeat(T, X.size))
    np.testing.assert_allclose(rows[:, 1], np.tile(X, T.size), atol=1e-5)
    np.testing.assert_allclose(rows[:, 2].reshape(T.size, X.size), FIELD, atol=0.02)


@pytest.mark.slow
def test_a_program_of_the_run_integrates_it(waves: str) -> None:
    pytest.importorskip("scipy")
    found = shine("export", waves, "--to", "python", "--name", "waves", "--out", "waves.py")
    assert found.exit_code == 0, found.stderr
    np.save("start.npy", FIELD[0])
    subprocess.run([sys.executable, "waves.py", "start.npy", "2", "0.0625", "later.npy"], check=True)
    np.testing.assert_allclose(np.load("later.npy")[:, 0], FIELD, atol=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("space: [x in m]", "space: []"), "names the coordinates of fields, which kind: pde needs"),
        (("kind: pde", "kind: ode"), "which kind: pde needs, and no other kind has"),
        (("states: [height]", "states: [height], run: id"), "is not for fields; leave it out"),
        (("states: [height]", "states: [height], autonomous: false"), "rates of fields do not depend on the time"),
        (("height]", "x in m]"), "a column is used twice"),
    ],
)
def test_settings_that_fields_do_not_have_are_told(waves: str, change: tuple[str, str], message: str) -> None:
    Path("other.yaml").write_text(CONFIG.replace(*change))
    found = shine("evolve", "other.yaml")
    assert found.exit_code != 0 and message in found.stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, *range(X.size * T.size)], "the table has 3202 rows; at t in s = 0, x in m = -8 there are 2"),
        (range(1, X.size * T.size), "3200 rows; at t in s = 0, x in m = -8 there are 0"),
        ([5, 3 * X.size + 2, 9 * X.size + 1], "needs a row for each of 3 x 3 values of t in s, x in m"),
    ],
)
def test_a_table_that_is_no_grid_is_told_in_one_line(waves: str, rows: list[int], message: str) -> None:
    long_table("waves.csv", list(rows))
    found = shine("evolve", "waves.yaml")
    assert found.exit_code != 0 and message in found.stderr.replace("\n", " ")


def test_what_a_start_lacks_is_told(waves: str) -> None:
    long_table("start.csv", list(range(0, X.size, 2)))
    assert "has steps of 0.333333, and the system is for 0.166667" in shine(
        "predict", waves, "start.csv", "--times", "0:1:0.5"
    ).stderr.replace("\n", " ")
    assert "fields need --times" in shine("predict", waves, "start.csv").stderr
    assert "there is no export c of fields" in shine("export", waves, "--to", "c").stderr


def test_fields_are_checked_and_have_a_summary(waves: str) -> None:
    assert "waves.yaml: valid; height at 33 times and 97 points" in shine("config", "check", "waves.yaml").stdout
    text = shine("summary", waves).stdout
    assert "height_t[0]" in text and text.rstrip().endswith("standard errors of the weak form")
