"""Every parameter of every face has a row in the table of promises, and every row keeps its promise."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from promises import (
    rows_of_agents,
    rows_of_commands,
    rows_of_files,
    rows_of_formulas,
    rows_of_losses,
    rows_of_many_runs,
    rows_of_motion,
    rows_of_searches,
    rows_of_templates,
)
from promises.faces import ESTIMATORS, OTHERS, parameters
from promises.table import ABSENT, ROWS

MODULES = (
    *(rows_of_formulas, rows_of_losses, rows_of_searches, rows_of_motion, rows_of_files),
    *(rows_of_commands, rows_of_many_runs, rows_of_agents, rows_of_templates),
)
"""What is imported puts its rows into the table."""
FACES = (*ESTIMATORS, "evolve", "config", *OTHERS)
IN_ROWS = {name for row in ROWS for name in row.names}


def absent(face: str, name: str) -> bool:
    return any(face == where and fnmatchcase(name, pattern) for where, pattern in ABSENT)


@pytest.mark.parametrize("face", FACES)
def test_every_parameter_has_a_row_or_a_reason_to_have_none(face):
    without = {name for name in parameters(face) if (face, name) not in IN_ROWS and not absent(face, name)}
    assert not without


@pytest.mark.parametrize("face", FACES)
def test_every_row_and_every_reason_has_a_parameter(face):
    known = parameters(face)
    settings = {name.removeprefix("evolution.") for name in parameters("config") if name.startswith("evolution.")}
    known |= settings if face == "evolve" else set()
    assert not {name for where, name in IN_ROWS if where == face} - known
    assert not [
        pattern for where, pattern in ABSENT if where == face and not any(fnmatchcase(n, pattern) for n in known)
    ]


def cases():
    for row in ROWS:
        for face in row.faces:
            # One code serves all faces: the estimator of most users runs by default, and the others are slow.
            quick = "SymbolicRegressor" if "SymbolicRegressor" in row.faces else row.faces[0]
            marks = [pytest.mark.slow] if row.slow or face != quick else []
            yield pytest.param(row.effect, face, marks=marks, id=f"{row.effect.__name__}-{face}")


@pytest.mark.parametrize(("effect", "face"), [*cases()])
def test_a_promise_holds(effect, face, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    effect(face)
