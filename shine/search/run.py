"""A whole search: data in, the Pareto front of models out; and the callbacks that follow it.

A callback is a function of the `Progress`. If it also has a method ``begin(settings)`` or ``end(result)``, these are
called before the first generation and after the formula has been chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.stages import stage
from shine.data.datasets.dataset import Dataset
from shine.search.evolution.observers import NOBODY, Observers, Progress, ignore, is_true
from shine.search.kinds.formula import FormulaProblem
from shine.search.kinds.problem import Problem
from shine.search.lives import evolved
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.names import TranslatedSettings, translated
from shine.search.problem.settings import SearchSettings

Kind = Callable[[Dataset, TranslatedSettings, Observers, np.random.Generator], Problem]
"""Makes a problem of data and settings."""


def search(
    dataset: Dataset,
    settings: SearchSettings,
    observers: Observers = NOBODY,
    earlier: Sequence[Model] = (),
    kind: Kind | None = None,
) -> Result:
    """Find formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    settings : SearchSettings
    observers : Observers
        If their report has methods ``begin(settings)`` and ``end(result)``, they are called; after an error, the result
        is None.
    earlier : sequence of Model
        The front of an earlier part of the run: it competes with what the search finds.
    kind : callable, optional
        The kind of problem. By default a template if the settings have one, and otherwise a formula.

    Returns
    -------
    Result
        Ctrl-C ends the run early. It then returns what was found so far and skips the slow final fit of all constants.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is invalid.
    """
    result, report = None, observers.report
    _tell(report, "begin", settings)
    try:
        with np.errstate(all="ignore"):
            observers, rng = observers.begun(), np.random.default_rng(settings.seed)
            if settings.fitness.evidence is not None:
                dataset = replace(dataset, worth=settings.fitness.evidence)
            if kind is None:
                kind, dataset = FormulaProblem, dataset if settings.fitness.validation else dataset.merged()
                if settings.template is not None:
                    from shine.search.kinds.template.problem import TemplateProblem as kind  # slow to import
            problem = kind(dataset, translated(settings, dataset), observers, rng)
            if observers.visitor is not None:
                observers.visitor.enter(problem.view())
            outcome = evolved(problem, rng)
            with stage("refining the best formulas"):
                result = problem.finished(outcome, earlier)
    finally:
        _tell(report, "end", result)
    return result


Callback = Callable[[Progress], object]
"""Receives the progress of each generation, and ends the search by returning True."""


@dataclass(frozen=True)
class Several:
    """Several callbacks as one: all are called, also those after one that ends the search."""

    callbacks: tuple[Callback, ...]
    told: Callable[[Progress], Progress] | None = None
    """What they get in place of the progress."""

    def __call__(self, progress: Progress) -> bool:
        """Pass on the progress; True if any callback wants the search to end."""
        progress = progress if self.told is None else self.told(progress)
        return True in [is_true(callback(progress)) for callback in self.callbacks]

    def begin(self, settings: SearchSettings) -> None:
        """Pass on the settings of a search that begins."""
        for callback in self.callbacks:
            _tell(callback, "begin", settings)

    def end(self, result: Result | None) -> None:
        """Pass on the result of a search that has ended."""
        for callback in self.callbacks:
            _tell(callback, "end", result)


def _tell(callback: Callback, method: str, value: object) -> None:
    (getattr(callback, method, None) or ignore)(value)
