"""A search as curves and texts for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shine.base.errors import ExportError
from shine.faces.callbacks.figures import curves, final, parameters
from shine.search.evolution.observers import Progress
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings


class TensorBoard:
    """Writes each search for TensorBoard: loss and size by generation, formulas as they improve, settings, the front.

    Parameters
    ----------
    folder : path
        Where ``tensorboard --logdir`` looks; every search has a folder of its own in it: ``1``, ``2``, ...

    Raises
    ------
    ExportError
        If tensorboardX is not installed.

    Examples
    --------
    >>> shine.evolve(X, y, report=TensorBoard("runs/tensorboard"))  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path = "runs/tensorboard") -> None:
        try:
            import tensorboardX  # noqa: F401
        except ImportError:
            raise ExportError("tensorboardX is not installed: pip install 'shine[tensorboard]'") from None
        self.folder = Path(folder)
        self._writer: Any = None
        self._formula = ""

    def __getstate__(self) -> dict[str, Any]:
        """Estimators are copied and pickled with their callbacks, but an open file stays where it is."""
        return {**self.__dict__, "_writer": None}

    def begin(self, settings: SearchSettings) -> None:
        """Begin a search with its settings as a table."""
        from tensorboardX import SummaryWriter

        self._formula = ""
        self._writer = SummaryWriter(str(_new(self.folder)))
        self._writer.add_text("settings", _table(("setting", "value"), list(parameters(settings).items())))

    def __call__(self, progress: Progress) -> None:
        """Write a generation."""
        for name, value in curves(progress).items():
            self._writer.add_scalar(name, value, progress.generation)
        formula = progress.formula
        if formula != self._formula:
            self._writer.add_text("formula", f"`{formula}`", progress.generation)
            self._formula = formula

    def end(self, result: Result | None) -> None:
        """Write the front and the chosen formula."""
        if result is not None:
            for name, value in final(result).items():
                self._writer.add_scalar(name, value, result.generations)
            rows = [(str(m.complexity), f"{m.loss:.5g}", f"{m.r2:.6f}", f"`{m.formula()}`") for m in result.front]
            self._writer.add_text("front", _table(("complexity", "loss", "R2", "formula"), rows), result.generations)
            self._writer.add_text("chosen", f"`{result.best.formula()}`", result.generations)
        self._writer.close()


def _new(folder: Path) -> Path:
    """A new folder in a folder."""
    number = 1
    while True:
        try:
            (folder / str(number)).mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder / str(number)


def _table(heading: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
