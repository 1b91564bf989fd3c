"""Callbacks that keep a search in MLflow or TensorBoard; `report=` of `shine.evolve` and `callbacks=` of estimators."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from shine.base.errors import ExportError, needing
from shine.faces.runs.keeping import Thinning
from shine.faces.runs.records import front_csv
from shine.lang.forms.names import cut
from shine.search.evolution.observers import Progress
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings

__all__ = ["MLflow", "TensorBoard"]


def __dir__() -> list[str]:
    return sorted(__all__)


def parameters(settings: SearchSettings) -> dict[str, str]:
    """The settings by the names that they have in configurations, as text."""
    return dict(_flat(settings, ""))


def curves(progress: Progress) -> dict[str, float]:
    """Figures of a generation; those that are not finite are left out."""
    size = float(progress.front.sizes[-1]) if len(progress.front) else math.nan
    figures = {"loss": progress.best_loss, "size": size, "evaluations": float(progress.evaluations)}
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def final(result: Result) -> dict[str, float]:
    """Figures of the chosen formula; those that are not finite are left out."""
    best = result.best
    figures = {"final_loss": best.loss, "final_r2": best.r2, "final_complexity": float(best.complexity)}
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for each in fields(value):
        inner, name = getattr(value, each.name), f"{prefix}{each.name}"
        if is_dataclass(inner) and each.name in ("evolution", "fitness", "stop", "constraints"):
            yield from _flat(inner, f"{name}.")
        elif each.name == "primitives":
            yield name, ", ".join(getattr(one, "__name__", str(one)) for one in inner)
        else:
            yield name, str(inner)


PAUSE = 1.0
"""Least seconds between two generations that are logged: a tracking server must not slow down the search."""

_LONGEST = 6000
"""Most characters of a parameter in MLflow."""
_BATCH = 100
"""Most parameters that MLflow takes at once."""


class MLflow:
    """Keeps each search as a run of MLflow: parameters, loss and size by generation, the chosen formula, the front.

    The environment says where runs are kept, as for all of MLflow: ``MLFLOW_TRACKING_URI``.

    Parameters
    ----------
    experiment : str, optional
        By default ``MLFLOW_EXPERIMENT_NAME``, or ``shine``. It is made if there is none.
    name : str, optional
        Name of the run; MLflow invents one.
    tags : mapping of str to str, optional

    Attributes
    ----------
    run_id : str
        The latest run; empty before the first.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.

    Examples
    --------
    >>> shine.evolve(X, y, report=MLflow("plants"))  # doctest: +SKIP
    """

    def __init__(
        self, experiment: str | None = None, *, name: str | None = None, tags: Mapping[str, str] | None = None
    ) -> None:
        with needing("keeping a run in MLflow", "mlflow", "mlflow"):
            import mlflow  # noqa: F401
        self.experiment, self.name, self.tags = experiment, name, dict(tags or {})
        self.run_id = ""
        self._client: Any = None
        self._last: Progress | None = None
        self._due, self._lost = 0.0, False

    def __getstate__(self) -> dict[str, Any]:
        """Estimators are copied and pickled with their callbacks, but a connection stays where it is."""
        return {**self.__dict__, "_client": None, "_last": None}

    def begin(self, settings: SearchSettings) -> None:
        """Begin a run with the settings as its parameters."""
        self._last, self._due, self._lost = None, 0.0, False
        try:
            self._begin(settings)
        except Exception as error:
            from mlflow import get_tracking_uri

            place = get_tracking_uri()
            raise ExportError(
                f"MLflow keeps no runs in {place}: {cut(error)}. Set MLFLOW_TRACKING_URI to a server, or install all "
                "of MLflow: pip install mlflow"
            ) from None

    def _begin(self, settings: SearchSettings) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        # A client of its own, not MLflow's current run: searches may follow or contain one another.
        self._client = MlflowClient()
        experiment = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "shine"
        known = self._client.get_experiment_by_name(experiment)
        number = self._client.create_experiment(experiment) if known is None else known.experiment_id
        self.run_id = self._client.create_run(number, run_name=self.name, tags=self.tags).info.run_id
        given = [Param(key, value[:_LONGEST]) for key, value in parameters(settings).items()]
        for start in range(0, len(given), _BATCH):
            self._client.log_batch(self.run_id, params=given[start : start + _BATCH])

    def __call__(self, progress: Progress) -> None:
        """Log a generation, at most one every `PAUSE` seconds, and the last."""
        self._last = progress
        if time.monotonic() >= self._due:
            self._log(curves(progress), progress.generation)
            self._last, self._due = None, time.monotonic() + PAUSE

    def end(self, result: Result | None) -> None:
        """Log the front and the chosen formula, and end the run."""
        if self._last is not None:
            self._log(curves(self._last), self._last.generation)
        if result is not None:
            self._log(final(result), result.generations)
            self._try("log_text", front_csv(result), "front.csv")
            self._try("log_text", f"{result.best.expression}\n", "formula.txt")
            self._try("set_tag", "formula", result.best.formula()[:_LONGEST])
            self._try("set_tag", "stopped_by", result.stopped_by)
        status = "FAILED" if result is None else "KILLED" if result.stopped_by == "interrupted" else "FINISHED"
        self._try("set_terminated", status)

    def _log(self, figures: Mapping[str, float], generation: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, generation) for name, value in figures.items()]
        self._try("log_batch", metrics)

    def _try(self, action: str, *arguments: Any) -> None:
        """Do something with the run; a server that does not answer never stops a search."""
        if self._lost:
            return
        try:
            getattr(self._client, action)(self.run_id, *arguments)
        except Exception as error:
            self._lost = True
            warnings.warn(f"MLflow: {cut(error)}; the search goes on without it", RuntimeWarning, stacklevel=2)


class TensorBoard:
    """Writes each search for TensorBoard: loss and size by generation, formulas as they improve, settings, the front.

    Parameters
    ----------
    folder : path
        Where ``tensorboard --logdir`` looks; every search has a folder of its own in it: ``1``, ``2``, ...

    Raises
    ------
    MissingExtraError
        If tensorboardX is not installed.

    Examples
    --------
    >>> shine.evolve(X, y, report=TensorBoard("runs/tensorboard"))  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path = "runs/tensorboard") -> None:
        with needing("keeping a run for TensorBoard", "tensorboardX", "tensorboard"):
            import tensorboardX  # noqa: F401
        self.folder = Path(folder)
        self._writer: Any = None
        self._formula = ""
        self._thinning = Thinning()
        self._last: Progress | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Estimators are copied and pickled with their callbacks, but an open file stays where it is."""
        return {**self.__dict__, "_writer": None, "_last": None}

    def begin(self, settings: SearchSettings) -> None:
        """Begin a search with its settings as a table."""
        from tensorboardX import SummaryWriter

        self._formula = ""
        self._thinning, self._last = Thinning(), None
        self._writer = SummaryWriter(str(_new(self.folder)))
        self._writer.add_text("settings", _table(("setting", "value"), list(parameters(settings).items())))

    def __call__(self, progress: Progress) -> None:
        """Write a generation if `Thinning` takes it; the last is written at the end."""
        if not self._thinning.takes(progress.generation, progress.best_loss):
            self._last = progress
            return
        self._last = None
        self._write(progress)

    def _write(self, progress: Progress) -> None:
        for name, value in curves(progress).items():
            self._writer.add_scalar(name, value, progress.generation)
        formula = progress.formula
        if formula != self._formula:
            self._writer.add_text("formula", f"`{formula}`", progress.generation)
            self._formula = formula

    def end(self, result: Result | None) -> None:
        """Write the last generation, the front and the chosen formula."""
        if self._last is not None:
            self._write(self._last)
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
