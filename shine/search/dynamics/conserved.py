"""Conserved quantities of a system: sums of simple terms of its states that the motion leaves as they are.

The rate of a term is its slope times the rate of its state. Where the rates of some terms are linearly dependent at
states drawn from the range of the readings, not along them alone, the sum of these terms is conserved: elimination by
columns, those with the largest rest first, leaves one dependence for each column without a rest. Sums of states may be
conserved to within the errors of constants; sums of other terms, which are nearly dependent on small ranges, must be
exact.

Planes that the states of all runs stay on are such sums of the data: there other equations fit as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import apply, log
from shine.data.trajectories import Trajectories
from shine.lang.forms.library import STANDARD
from shine.lang.parse import parse
from shine.search.dynamics.known_parts import written_out
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model

STATES, LEAST_REST, MOST_REST = 400, 1e-9, 0.02
"""States that are drawn, and bounds of the rest, as a share of a column, that counts as none."""

SMALL = 1e-3
"""Share of the largest term below which a term is left out, if the rest allows it."""


@dataclass(frozen=True)
class Conserved:
    """A conserved quantity.

    Parameters
    ----------
    formula : str
        In terms of the states.
    drift : float
        Root mean square of its rate, as a share of the rates of its terms.
    """

    formula: str
    drift: float

    def __str__(self) -> str:
        return f"{self.formula}, to within {self.drift:.1g}"


@np.errstate(all="ignore")
def conserved_quantities(model: SystemModel, readings: Trajectories) -> list[Conserved]:
    """The conserved quantities among sums of powers, products, logarithms, sines and cosines of the states.

    Parameters
    ----------
    model : SystemModel
        Of differential equations without controls and the time; others have none here.
    readings : Trajectories
        Those of the fit: the system is asked in the range of its rollouts along them.
    """
    if model.is_map or model.time is not None or model.controls:
        return []
    rolled = [model.simulate(start, run.times) for start, run in zip(model.starts, readings.runs, strict=True)]
    every = np.concatenate(rolled)
    every = every[np.isfinite(every).all(axis=1)]
    if not len(every):
        return []
    low, high = every.min(axis=0), every.max(axis=0)
    states = low + (high - low) * np.random.default_rng(0).random((STATES, len(low)))
    speeds = model.rates(states)
    texts, rates, of = _terms(model, states, speeds)
    # Sums of states first, as the errors of constants allow; a state in one is no further variable then.
    limit, count = _rest(model), len(model.states)
    linear = _sums(texts[:count], rates[:, :count], limit)
    gone = {place for place, _ in linear}
    others = [place for place, own in enumerate(of) if not gone.intersection(own)]
    found = _sums([texts[place] for place in others], rates[:, others], LEAST_REST)
    return [each for _, each in (*linear, *found)]


def _sums(texts: list[str], rates: Floats, limit: float) -> list[tuple[int, Conserved]]:
    """Sums of terms whose rates are nothing, each with the last column that it needs."""
    sizes = np.sqrt(np.add.reduce(np.where(np.isfinite(rates), rates, 0.0) ** 2))
    whole = np.isfinite(rates).all(axis=0)
    found = [(place, Conserved(texts[place], 0.0)) for place in np.flatnonzero(whole & (sizes == 0)).tolist()]
    kept = np.flatnonzero(whole & (sizes > 0))
    columns = rates[:, kept] / sizes[kept]
    for column, weights in dependences(columns, limit):
        weights = np.where(np.abs(weights) > SMALL * np.abs(weights).max(), weights, 0.0)
        own = columns * weights
        drift = float(np.sqrt(np.add.reduce(np.add.reduce(own, axis=1) ** 2) / np.add.reduce((own**2).ravel())))
        if drift <= 2 * limit and weights[column]:
            places = np.flatnonzero(weights)
            terms = [texts[kept[place]] for place in places]
            found.append((int(kept[places].max()), Conserved(sum_text(terms, (weights / sizes[kept])[places]), drift)))
    return found


def _rest(model: SystemModel) -> float:
    """The share of a column that counts as no rest."""
    errors, constants = model.standard_errors(), model.constants
    known = np.isfinite(errors) & (constants != 0)
    worst = float(np.abs(errors[known] / constants[known]).max(initial=0.0))
    # Three times the largest relative standard error of a constant is the rest that counts as none.
    return min(max(3.0 * worst, LEAST_REST), MOST_REST)


def _terms(model: SystemModel, states: Floats, rates: Floats) -> tuple[list[str], Floats, list[tuple[int, ...]]]:
    """Texts of the terms, simple ones first; their rates, shape (n_states drawn, n_terms); and the states in them."""
    sine, cosine = (apply(STANDARD[name], states) for name in ("sin", "cos"))
    logarithm = np.where(states > 0, log(np.where(states > 0, states, 1.0)), np.nan)
    kinds = [
        ("{}", np.ones_like(states)),
        ("log({})", np.where(np.isnan(logarithm), np.nan, 1 / states)),
        ("{}**2", 2 * states),
        ("cos({})", -sine),
        ("sin({})", cosine),
        ("{}**3", 3 * states**2),
        ("{}**4", 4 * states * states**2),
    ]
    texts = [form.format(name) for form, _ in kinds for name in model.states]
    of: list[tuple[int, ...]] = [(place,) for _ in kinds for place in range(len(model.states))]
    columns = [(slopes * rates)[:, place] for _, slopes in kinds for place in range(len(model.states))]
    for first, second in combinations(range(len(model.states)), 2):
        texts.append(f"{model.states[first]}*{model.states[second]}")
        columns.append(states[:, first] * rates[:, second] + states[:, second] * rates[:, first])
        of.append((first, second))
    return texts, np.stack(columns, axis=1), of


def dependences(columns: Floats, limit: float) -> list[tuple[int, Floats]]:
    """Columns that are sums of others, with the weights of all that make nothing; columns have the length 1."""
    count = columns.shape[1]
    rest, shares = columns.copy(), np.eye(count)
    free = list(range(count))
    while free:
        lengths = np.sqrt(np.add.reduce(rest[:, free] ** 2))
        place = int(lengths.argmax())
        if lengths[place] <= limit:
            break
        pivot = free.pop(place)
        for other in free:
            share = np.add.reduce(rest[:, pivot] * rest[:, other]) / np.add.reduce(rest[:, pivot] ** 2)
            rest[:, other] -= share * rest[:, pivot]
            shares[other] -= share * shares[pivot]
    return [(column, shares[column]) for column in free]


def sum_text(terms: list[str], coefficients: Floats) -> str:
    """A sum whose first coefficient is 1."""
    shown = [f"{value:.4g}" for value in (coefficients / coefficients[0]).tolist()]
    signs = {"1": "", "-1": "-"}
    parts = [signs.get(number, f"{number}*") + term for number, term in zip(shown, terms, strict=True)]
    return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Plane:
    """A sum of states that is constant along the runs.

    Parameters
    ----------
    weights : mapping of str to float
        Of the states in it; the first is 1.
    value : float
    """

    weights: Mapping[str, float]
    value: float

    def __str__(self) -> str:
        total = sum_text(list(self.weights), np.array(list(self.weights.values())))
        return f"{total} is {self.value:.4g} along these runs"

    def others(self, system: SystemModel) -> Iterator[tuple[Model, ...]]:
        """The equations with each state of the plane written by its others."""
        for name, own in self.weights.items():
            terms = [f"{-weight / own!r}*{other}" for other, weight in self.weights.items() if other != name]
            text = " + ".join([repr(self.value / own), *terms])
            given = {name: parse(text, [*self.weights]).result}
            if any(name in tree.used_parameters for tree in system.trees):
                yield tuple(replace(each, tree=written_out(each.tree, given)) for each in system.equations)


def planes_of(states: Floats, names: Sequence[str]) -> list[Plane]:
    """The planes that states, shape (n_times, n_states), stay on to within rounding, without fixed states."""
    means = np.add.reduce(states) / len(states)
    lengths = np.sqrt(np.add.reduce((states - means) ** 2))
    moving = np.flatnonzero(lengths > LEAST_REST * np.abs(states).max(axis=0, initial=0.0))
    found = []
    for _, shares in dependences((states[:, moving] - means[moving]) / lengths[moving], LEAST_REST):
        kept = np.flatnonzero(np.abs(shares) > SMALL * np.abs(shares).max())
        weights = (shares / lengths[moving])[kept]
        weights = np.array([float(f"{weight:.9g}") for weight in weights / weights[0]])
        value = float(np.add.reduce(weights * means[moving[kept]]))
        own = {names[moving[place]]: weight for place, weight in zip(kept, weights.tolist(), strict=True)}
        found.append(Plane(own, float(f"{value:.9g}")))
    return found
