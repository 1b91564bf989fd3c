"""The 100 equations from the Feynman lectures: how many does an engine recover, and how near does it come to the rest?

`python experiments/feynman.py --budget 10 --noise 0.01 --seeds 3 --engine shine` draws 1000 rows of each equation to
learn from and 1000 held out, uniformly within the ranges of the Feynman Symbolic Regression Database (Udrescu and
Tegmark 2020). Download its file FeynmanEquations.csv from https://space.mit.edu/home/tegmark/aifeynman.html and name it
with `--data`, or put it at shared/data/feynman.csv, inside or beside the repository. quality/recovery.py defines when a
formula counts as recovered. Run again, the command goes on where it was interrupted.
"""

from __future__ import annotations

import csv
from pathlib import Path

from quality.command import arguments, main
from quality.formulas import parse_formula
from quality.problems import FormulaProblem, Uniform
from quality.summary import recovery_table

ROOT = Path(__file__).resolve().parents[1]
PLACES = (ROOT / "shared/data/feynman.csv", ROOT.parent / "shared/data/feynman.csv")
ROWS = 1000
INEXPRESSIBLE = ("I.26.2", "I.30.5")
"""Equations with an arcsin, which the primitives of the engines cannot express."""


def read_equations(path: Path) -> list[FormulaProblem]:
    """Equations of a file as the Feynman database has it.

    Columns: Filename, Number, Output, Formula, # variables, and name, low and high of each variable.

    Raises
    ------
    SystemExit
        If a line cannot be read.
    """
    problems = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line in csv.DictReader(file):
            if not line.get("Filename"):  # the published file ends with empty lines
                continue
            try:
                problems.append(_equation(line))
            except (KeyError, TypeError, ValueError) as error:
                raise SystemExit(f"{path}: the line of {line['Filename']} cannot be read: {error!r}") from None
    return problems


def _equation(line: dict[str, str]) -> FormulaProblem:
    """The problem one line describes."""
    # The count of variables is wrong in five lines of the published file; their names are not.
    numbers = [i for i in range(1, 11) if (line.get(f"v{i}_name") or "").strip()]
    names = tuple(line[f"v{i}_name"].strip() for i in numbers)
    where = Uniform(tuple((float(line[f"v{i}_low"]), float(line[f"v{i}_high"])) for i in numbers), ROWS)
    name = line["Filename"].strip()
    parse_formula(line["Formula"], names)  # fail here, and not in a run, if it cannot be read
    return FormulaProblem(name, names, line["Formula"], where, where, name not in INEXPRESSIBLE)


def find(path: Path | None) -> Path:
    """The file of the equations; SystemExit if there is none."""
    places = PLACES if path is None else (path,)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SystemExit(
            f"the table of equations is not at {' or '.join(map(str, places))}; download FeynmanEquations.csv of the "
            "Feynman Symbolic Regression Database (https://space.mit.edu/home/tegmark/aifeynman.html) and name it "
            "with --data"
        )
    return found


if __name__ == "__main__":
    parser = arguments(__doc__, "feynman", rows=str(ROWS))
    parser.add_argument("--data", type=Path, help="the database's FeynmanEquations.csv")
    options = parser.parse_args()
    main(options, lambda: read_equations(find(options.data)), recovery_table)
