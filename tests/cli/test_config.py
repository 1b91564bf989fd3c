"""``shine config``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.commandline import shine

SEVERAL = {
    "data: {path: none.csv, target: y, missing: foo}": ["none.csv: no such file", "data.missing: must be one of"],
    "data: {path: m.csv, target: x, features: [p, q]}\nconstraints: {limits: {sinn: 1}}": ["'p'", "'q'", "sinn"],
    "data: {path: m.csv}\ndynamics: {time: tt, states: [x, w, z]}": ["'tt'", "'w'", "'z'"],
    "data: {path: m.csv, target: x}\ndynamics: {time: t, statess: [x]}": ["data.target", "dynamics.statess"],
    "data: {path: bad.csv}\ndynamics: {time: t}": ["bad.csv:3: column 'x': 'u'", "bad.csv:4: column 'Größe': 'w'"],
    "data: {path: m.csv}\ndynamics: {time: t}\nfitness: 5\nunits: 3": ["fitness:", '"constraints.units" or "dynamics.'],
}


@pytest.mark.parametrize("text", SEVERAL)
def test_no_mistake_hides_another(text: str, small: Path) -> None:
    rows = ["t,x,Größe", *(f"{row},{row**2},{3 - row}" for row in range(6))]
    Path("m.csv").write_text("\n".join(rows), encoding="utf-8")
    Path("bad.csv").write_text("\n".join([*rows[:2], "1,u,3", "2,1,w", *rows[4:]]), encoding="utf-8")
    small.write_text(text)
    checked = shine("config", "check", small)
    told = checked.stderr.splitlines()
    assert checked.exit_code == 2 and len(told) == len(SEVERAL[text])
    assert all(any(each in line for line in told) for each in SEVERAL[text])


def test_check_names_values_that_look_like_missing_ones(small: Path) -> None:
    rows = [f"{-999 if row < 3 else row + 0.5},{row},{2 * row}" for row in range(20)]
    Path("marked.csv").write_text("\n".join(["a,b,y", *rows]))
    told = shine("config", "check", small, "--set", "data={path: marked.csv, target: y}").stdout
    assert "note: column 'a': -999 in 3 rows is far from all other values" in told


def test_a_table_without_features_is_named(small: Path) -> None:
    Path("alone.csv").write_text("y\n1\n2\n")
    told = shine("config", "check", small, "--set", "data={path: alone.csv, target: y}")
    assert told.exit_code == 2 and told.stderr.rstrip().endswith("alone.csv: no column is left to be a feature")
