"""Searches for the rate of one state: smoothed states, controls and the time as features, the rate as target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.trajectories import Trajectories
from shine.lang.forms.names import listed, shown
from shine.search.dynamics.known_parts import Part
from shine.search.dynamics.rate_search import RateSearch
from shine.search.dynamics.session import Session
from shine.search.dynamics.smoothing.smoothing import Smoothed
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result, Searches
from shine.search.problem.settings import SearchSettings
from shine.search.templates.fits.sections import OUTPUT

LEAST_AGAIN = 0.5
"""Seconds from which another search for a state is worth its start."""

EXACT = 1e-12
"""Error of the rollouts, as a share of the variance, of a system that explains all."""

LEAST_EVIDENCE = 8.0
"""Least independent rates that are assumed: with fewer, no formula but a constant would be allowed."""


@dataclass(frozen=True, eq=False)
class RateRows:
    """The rows of a state.

    Parameters
    ----------
    dataset : Dataset
    evidence : float, optional
        Number of independent rates among the rows; None if all are.
    enough : float
        Loss, as a share of the best constant's, of errors as large as those of the rates; 0 if noise leaves more.
    least : float
        Least standard error of a rate.
    """

    dataset: Dataset
    evidence: float | None
    enough: float
    least: float

    @classmethod
    def of(cls, dataset: Dataset, errors: Floats, independent: float) -> RateRows:
        """The rows of a data set, the errors of its rates, and how many of them are independent."""
        expected = 1 / (float(stable_sum(1 / errors**2)) / len(errors))
        variance = dataset.target_square / dataset.weight
        # Factor of the expected loss at which a clean rate is explained.
        share = 2.0 * expected / variance if variance > 0 else 0.0
        # Also where all are independent: nobody has to ask whether their errors follow one another.
        evidence = max(min(independent, dataset.n_rows), LEAST_EVIDENCE) if dataset.n_rows > LEAST_EVIDENCE else None
        # Expected loss, as a share of the rates' variance, below which the first formula that reaches it is right or
        # near.
        return cls(dataset, evidence, share if share < 1e-4 else 0.0, float(errors.min()))

    @property
    def errors(self) -> Floats:
        """Errors of the rates, in their units."""
        assert self.dataset.deviations is not None
        found: Floats = self.dataset.deviations * (self.least / float(self.dataset.deviations.min()))
        return found

    @property
    def clean(self) -> bool:
        """Whether noise leaves so little that the first formula that explains the rates is right or near."""
        return self.enough > 0

    def misfit(self, model: Model) -> float:
        """Mean squared error of an equation in units of the expected one."""
        rows = self.dataset
        errors = (model.kernel(*rows.columns) - rows.target) / self.errors
        return float(stable_sum(errors**2)) / rows.n_rows


def features_of(trajectories: Trajectories, autonomous: bool) -> tuple[str, ...]:
    """Names that the right-hand sides may use."""
    time = () if autonomous else (trajectories.time,)
    return (*trajectories.states, *trajectories.controls, *time)


def feature_columns(smooth: Smoothed, autonomous: bool) -> Floats:
    """Values of the features in all runs, shape (n_rows, n_features)."""
    parts = [
        np.concatenate([run.states, run.controls, *([] if autonomous else [run.times[:, None]])], axis=1)
        for run in smooth.runs
    ]
    return np.concatenate(parts)


def rate_rows(
    trajectories: Trajectories, smooth: Smoothed, column: int, autonomous: bool, without: str | None = None
) -> RateRows:
    """The rows of a state, by its position, without one of the features; rows without a known rate are left out."""
    rates = np.concatenate([run.rates[:, column] for run in smooth.runs])
    errors = np.concatenate([run.rate_errors[:, column] for run in smooth.runs])
    values = feature_columns(smooth, autonomous)
    unsure = np.concatenate([run.state_errors for run in smooth.runs])
    known = np.isfinite(errors) & np.isfinite(unsure).all(axis=1) & np.isfinite(rates)
    if not known.any():
        raise DataError(
            f"no time has all states and the rate of {shown(trajectories.states[column])}; read more together"
        )
    rates, errors, values = rates[known], errors[known], values[known]
    spread = math.sqrt(float(stable_sum((rates - stable_sum(rates) / len(rates)) ** 2)) / len(rates))
    # Share of the rows, those with the least errors, that weigh the same: a few very precise ones would decide alone.
    least = float(np.sort(errors)[int(0.5 * (len(errors) - 1))])
    # Least error of a rate, as a share of the rates' spread: integrators of generated data leave no less.
    errors = np.maximum(errors, max(least, 1e-9 * spread, float(np.finfo(float).tiny)))
    every = features_of(trajectories, autonomous)
    names = tuple(name for name in every if name != without)
    values = values[:, [every.index(name) for name in names]]
    dataset = Dataset.from_arrays(values, rates, features=names).with_deviations(errors)
    independent = float(sum(run.independent[column] for run in smooth.runs))
    return RateRows.of(dataset, errors, independent)


def joined(rows: Sequence[RateRows]) -> RateRows:
    """The rows of states whose equations are found together, with the number of the output beside."""
    if len(rows) == 1:
        return rows[0]
    datasets = [each.dataset for each in rows]
    numbers = np.repeat(np.arange(float(len(rows))), [each.n_rows for each in datasets])
    columns = np.column_stack([np.concatenate([each.columns for each in datasets], axis=1).T, numbers])
    errors = np.concatenate([each.errors for each in rows])
    targets = np.concatenate([each.target for each in datasets])
    dataset = Dataset.from_arrays(columns, targets, features=(*datasets[0].features, OUTPUT)).with_deviations(errors)
    return RateRows.of(dataset, errors, sum(each.evidence or each.dataset.n_rows for each in rows))


def settled(rows: RateRows) -> Dataset:
    """The rows, worth as many as are independent."""
    return rows.dataset if rows.evidence is None else replace(rows.dataset, worth=rows.evidence)


@dataclass
class RateSearches(Searches):
    """One search for each part of a system.

    Parameters
    ----------
    states : tuple of str
    parts : sequence of Part
    rows : sequence of tuple of RateRows
        Those of each state of a part; none if its equations are known.
    settings : SearchSettings
        The first search has the seed, the others the numbers that follow it.
    units : mapping of str to str, by features and by states
    session : Session
    mark : str
        Written after a state for its rate.
    """

    states: tuple[str, ...]
    parts: Sequence[Part]
    rows: Sequence[tuple[RateRows, ...]]
    settings: SearchSettings
    units: tuple[Mapping[str, str], Mapping[str, str]]
    session: Session
    mark: str = "'"

    def __post_init__(self) -> None:
        self.results: list[Result] = []
        self.joined = [joined(rows) if rows else None for rows in self.rows]

    def first(self, until: float) -> None:
        """Search for each part; searches that are not done at the same time share the time that is left."""
        searches = {
            number: self._search(number, rows, rows.enough)
            for number, rows in enumerate(self.joined)
            if rows is not None
        }
        found = dict(zip(searches, self.session.together(list(searches.values()), until), strict=True))
        for number, part in enumerate(self.parts):
            known = found.get(number)
            if known is None:
                front = Front((part.known[0].model,), 0, "known")
                known = Result(front, 0, 0, 0, 0.0, self.settings.seed, "loss")
            self.results.append(known)

    def again(self, until: float, best: Sequence[Model], error: float) -> bool:
        """Search once more for parts whose equations miss the rates or are long; say whether there are any.

        Parameters
        ----------
        until : float
        best : sequence of Model
            The equations of the best system.
        error : float
            Of its rollouts, as a share of the variance.
        """
        own = [[best[self.states.index(state)] for state in part.states] for part in self.parts]
        missed = {
            number: 0.0 if error < EXACT else max(map(RateRows.misfit, rows, own[number]))
            for number, rows in enumerate(self.rows)
            if rows
        }
        # Complexity from which a shorter equation is looked for.
        long = [any(model.complexity > 12 for model in models) for models in own]
        # Mean squared error of an equation, in units of those of the rates, up to which it explains them.
        wanting = [number for number, misfit in missed.items() if misfit > 2.0 or long[number]]
        wanting.sort(key=lambda each: -missed[each])
        searches = []
        for number in wanting:
            rows = self.joined[number]
            assert rows is not None
            searches.append(self._search(number, rows, 0.0, tuple(self.results[number].front)))
        results = self.session.together(searches, until, LEAST_AGAIN)
        for number, result in zip(wanting, results, strict=True):
            self.results[number] = result or self.results[number]
        return any(results)

    def _search(self, number: int, rows: RateRows, enough: float, earlier: Sequence[Model] = ()) -> RateSearch:
        settings = self.settings
        stop = replace(settings.stop, loss=max(settings.stop.loss, enough))
        # Spikes of a rate are no errors of reading.
        fitness = replace(settings.fitness, noise="absolute", outliers="keep", evidence=rows.evidence)
        shift = len(self.states) if earlier else 0
        part = self.parts[number]
        seed = settings.seed + self.states.index(part.states[0]) + shift
        constraints = settings.constraints
        if self.units[0]:
            units = {name: self.units[0][name] for name in rows.dataset.features}
            constraints = replace(constraints, units=units, target_unit=self.units[1][part.states[0]])
        own = replace(settings, stop=stop, fitness=fitness, seed=seed, template=part.template, constraints=constraints)
        rates = listed([f"{state}{self.mark}" for state in part.states])
        return RateSearch(f"{rates} again" if earlier else rates, rows.dataset, own, earlier)
