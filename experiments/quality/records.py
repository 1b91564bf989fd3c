"""The CSV file of an experiment: one line for every run, written when it ends, read to go on or to summarize."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar


@dataclass(frozen=True)
class Run:
    """The identity of a run: one engine on one problem. Runs that are equal here are the same run."""

    problem: str
    engine: str
    seed: int
    noise: float
    budget: float
    rows: int
    threads: int


@dataclass(frozen=True)
class Outcome(Run):
    """A run that ended: what the records of all experiments have.

    Parameters
    ----------
    expressible : bool
        Whether the primitives can express the truth.
    error : str
        Why there is no formula; empty if there is one.
    """

    expressible: bool = True
    error: str = ""

    @property
    def run(self) -> Run:
        """What was run."""
        return Run(**{field.name: getattr(self, field.name) for field in fields(Run)})

    @property
    def family(self) -> str:
        """The problem's name up to its last hyphen."""
        return self.problem.rpartition("-")[0]

    @property
    def headline(self) -> str:
        """The outcome in a few words."""
        return f"{self.problem}: {'failed' if self.error else 'done'}"


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


@dataclass(frozen=True)
class Record(Outcome):
    """A run with its outcome; see `quality.scoring.Score` for the columns that occur twice.

    Parameters
    ----------
    rows : int
        Training rows that were asked for; 0 means the problem's own number.
    seconds : float
        Duration of the search alone.
    simplified : str
        SymPy's verdict on the recommended formula, if it was asked: "yes", "no", "timeout" or "failed".
    """

    seconds: float = float("nan")
    recovered: str = ""
    r2_train: float = float("-inf")
    r2_test: float = float("-inf")
    loss: float = float("inf")
    size: int = 0
    expression: str = ""
    simplified: str = ""
    accurate_recovered: str = ""
    accurate_r2_train: float = float("-inf")
    accurate_r2_test: float = float("-inf")
    accurate_loss: float = float("inf")
    accurate_size: int = 0
    accurate_expression: str = ""

    @property
    def headline(self) -> str:
        """The outcome in a few words."""
        if self.error:
            return f"{self.problem}: failed"
        verdict = f"recovered {self.recovered}, " if self.recovered else ""
        return f"{self.problem}: {verdict}1 - R2 {1 - self.accurate_r2_test:.1e}"


READERS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": lambda text: text == "True",
}
"""Reads a column by its type."""


def read_records(path: Path, kind: type[AnyOutcome]) -> list[AnyOutcome]:
    """Records of a file, none if the file does not exist; a truncated line is left out. `kind` is their class.

    Raises
    ------
    ValueError
        If the file has other columns.
    """
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if lines.fieldnames not in (None, _columns(kind)):
            raise ValueError(f"{path} has other columns than this experiment writes; choose another folder")
        return list(_records(lines, kind))


def _columns(kind: type[Outcome]) -> list[str]:
    return [field.name for field in fields(kind)]


def _records(lines: Iterable[dict[str, str]], kind: type[AnyOutcome]) -> Iterator[AnyOutcome]:
    for line in lines:
        try:
            values: dict[str, Any] = {f.name: READERS[str(f.type)](line[f.name]) for f in fields(kind)}
        except (KeyError, TypeError, ValueError):
            continue
        yield kind(**values)


def append_record(path: Path, record: Outcome) -> None:
    """Append a record to a file; the first line has the names of the columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else b""
    with path.open("a", encoding="utf-8", newline="") as file:
        if before and not before.endswith(b"\n"):
            file.write("\n")
        writer = csv.DictWriter(file, _columns(type(record)), lineterminator="\n")
        if not before:
            writer.writeheader()
        writer.writerow(asdict(record))
