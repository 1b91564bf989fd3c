"""A whole search: data in, the Pareto front of models out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from shine.base.stages import stage
from shine.data.datasets.dataset import Dataset
from shine.search.evolution import renewal
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.kinds.formula import FormulaProblem
from shine.search.kinds.problem import Problem
from shine.search.kinds.template.problem import TemplateProblem
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.names import TranslatedSettings, translated
from shine.search.problem.settings import SearchSettings

Kind = Callable[[Dataset, TranslatedSettings, Observers, np.random.Generator], Problem]
"""Makes a problem of data and settings."""


@np.errstate(all="ignore")
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
    observers, rng = observers.begun(), np.random.default_rng(settings.seed)
    if settings.fitness.evidence is not None:
        dataset = replace(dataset, worth=settings.fitness.evidence)
    if kind is None:
        kind = FormulaProblem if settings.template is None else TemplateProblem
    problem = kind(dataset, translated(settings, dataset), observers, rng)
    if observers.visitor is not None:
        observers.visitor.enter(problem.view())
    outcome = renewal.evolve(
        problem.scoring, problem.interval, problem.start, problem.evolving, problem.stop, rng, problem.watched()
    )
    with stage("refining the best formulas"):
        return problem.finished(outcome, earlier)
