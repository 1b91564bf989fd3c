"""A search as a run of MLflow."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from typing import Any

from shine.base.errors import ExportError
from shine.faces.callbacks.figures import curves, final, front_csv, parameters
from shine.lang.forms.names import cut
from shine.search.evolution.observers import Progress
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings

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
    ExportError
        If MLflow is not installed.

    Examples
    --------
    >>> shine.evolve(X, y, report=MLflow("plants"))  # doctest: +SKIP
    """

    def __init__(
        self, experiment: str | None = None, *, name: str | None = None, tags: Mapping[str, str] | None = None
    ) -> None:
        try:
            import mlflow  # noqa: F401
        except ImportError:
            raise ExportError("MLflow is not installed: pip install 'shine[mlflow]'") from None
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
