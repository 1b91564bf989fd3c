"""Runs beside each other: the settings that differ, and their fronts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shine.base.errors import ExportError
from shine.faces.runs.entries import Entry, FormulaEntry, read_entry


@dataclass(frozen=True)
class Comparison:
    """Several runs beside each other.

    Parameters
    ----------
    folders : tuple of Path
    runs : tuple of Entry
        What the folders tell.
    """

    folders: tuple[Path, ...]
    runs: tuple[Entry, ...]

    @property
    def settings(self) -> dict[str, tuple[Any, ...]]:
        """The value of each run, by setting, of the settings that differ; None where a run does not have one."""
        keys = dict.fromkeys(key for run in self.runs for key in run.settings)
        values = {key: tuple(run.settings.get(key) for run in self.runs) for key in keys}
        return {key: each for key, each in values.items() if any(value != each[0] for value in each)}

    @property
    def same_data(self) -> bool | None:
        """Whether all searched in the same names and numbers; None if not all of them noted that."""
        hashes = {run.data_hash for run in self.runs}
        return None if "" in hashes else len(hashes) == 1

    @property
    def fronts(self) -> dict[int, tuple[FormulaEntry | None, ...]]:
        """The formula of each run, by number of nodes: None where its front has none of this size."""
        sizes = sorted({each.nodes for run in self.runs for each in run.formulas if each.nodes is not None})
        by_size = [{each.nodes: each for each in reversed(run.formulas)} for run in self.runs]
        return {size: tuple(front.get(size) for front in by_size) for size in sizes}


def compare(folders: Sequence[str | Path]) -> Comparison:
    """Runs beside each other.

    Parameters
    ----------
    folders : sequence of path

    Returns
    -------
    Comparison

    Raises
    ------
    ExportError
        If a folder holds no run.
    """
    paths = tuple(Path(folder) for folder in folders)
    for path in paths:
        if not any((path / name).exists() for name in ("config.yaml", "result.json")):
            raise ExportError(f"{path}: holds no run; a run has a config.yaml, and a result.json once it has ended")
    return Comparison(paths, tuple(map(read_entry, paths)))
