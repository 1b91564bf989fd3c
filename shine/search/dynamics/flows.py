"""Polynomial rates by the flow from each reading to the next: readings may be too far apart for rates of their own.

One step of the flow, ``x[k+1] = flow(x[k]; c)``, is an equation for the coefficients, exact however long the step is:
multiple shooting with every reading a node (Bock 1983). Integrals of the monomials along polynomials through the
readings, whose equations are linear in the coefficients, give a start; then terms leave by the steps' description.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import COMPILED, Regression, combined, dot, least_squares, log
from shine.data.trajectories import Trajectories
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.forms.named_numbers import short
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.simplify.tidy import tidy

DEGREES = (2, 3)
"""Degrees of the polynomials, one after the other, until the steps are exact."""

ROUNDING, RIGHT = 1e-10, 9
"""Error of a step, as a share of a state's spread, that the integrator leaves; and right digits of exact coefficients,
at least."""

NOISE = 3e-3
"""Largest root mean square error of a step, as a share of a state's spread: nothing says yet that flows tell
more than rates where there is more noise."""

LOST = 1.0
"""Largest error of a step that counts, as a share of a state's spread: a wrong flow may explode."""

STEPS, DAMPINGS = 20, 8
"""Most steps of a fit, and dampings that are tried in each."""

_NODES = np.array([-0.9324695142031521, -0.6612093864662645, -0.2386191860831969])
_WEIGHTS = np.array([0.17132449237917036, 0.3607615730481386, 0.46791393457269104])
"""Gauss's quadrature with six nodes, which are symmetric, over an interval of length 2."""


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps between readings of all states, in units of the spread of each.

    Parameters
    ----------
    starts, ends : ndarray of shape (n_steps, n_states)
    lengths : ndarray of shape (n_steps,)
    inside : ndarray of shape (n_steps, n_nodes, n_states)
        On the polynomial through the nearest readings.
    """

    starts: Floats
    ends: Floats
    lengths: Floats
    inside: Floats

    @classmethod
    def of(cls, trajectories: Trajectories, spread: Floats) -> _Steps:
        parts: list[list[Floats]] = []
        shares = (np.concatenate([_NODES, -_NODES[::-1]]) + 1) / 2
        for run in trajectories.runs:
            known = ~np.isnan(run.states).any(axis=1)
            times, states = run.times[known], run.states[known] / spread
            if len(times) < 2:
                continue
            count = min(6, len(times))  # readings of a polynomial between two of them
            first = np.clip(np.arange(len(times) - 1) - count // 2 + 1, 0, len(times) - count)
            near = first[:, None] + np.arange(count)
            asked = times[:-1, None] + np.diff(times)[:, None] * shares
            weights = np.ones((*asked.shape, count))
            for own in range(count):
                for other in range(count):
                    if own != other:
                        apart = times[near[:, own]] - times[near[:, other]]
                        weights[..., own] *= (asked - times[near[:, other], None]) / apart[:, None]
            inside = np.add.reduce(weights[..., None] * states[near][:, None], axis=2)
            parts.append([states[:-1], states[1:], np.diff(times), inside])
        if not parts:
            nothing = np.zeros((0, len(spread)))
            return cls(nothing, nothing, np.zeros(0), nothing[:, None])
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def integrals(self, monomials: Sequence[tuple[int, ...]]) -> Floats:
        """Integral of each monomial over each step, shape (n_monomials, n_steps)."""
        weights = np.concatenate([_WEIGHTS, _WEIGHTS[::-1]]) / 2
        return np.stack([dot(_product(self.inside, own), weights) * self.lengths for own in monomials])


@dataclass(frozen=True, eq=False)
class _Flow:
    """Polynomials of one degree, whose coefficients are the constants of a compiled system."""

    monomials: Sequence[tuple[int, ...]]
    states: int
    steps: _Steps
    system: CompiledSystem
    late: Callable[[], bool]

    @classmethod
    def of(cls, degree: int, states: int, steps: _Steps, late: Callable[[], bool]) -> _Flow:
        monomials = [own for order in range(degree + 1) for own in combinations_with_replacement(range(states), order)]
        names = [f"x{place}" for place in range(states)]
        # No constant is 1 or a short number: then it would not be one.
        terms = ["*".join([f"1.{37 + place}", *(names[at] for at in own)]) for place, own in enumerate(monomials)]
        tree = parse(" + ".join(terms), tuple(names))
        return cls(monomials, states, steps, CompiledSystem([tree] * states, names), late)

    def start(self) -> Floats:
        """Coefficients by the integrals between the readings, shape (n_states * n_monomials,)."""
        integrals, changes = self.steps.integrals(self.monomials), self.steps.ends - self.steps.starts
        return np.concatenate([least_squares(integrals, change) for change in changes.T])

    def errors(self, constants: Floats) -> tuple[Floats, Floats]:
        """Errors of the steps, shape (n_steps * n_states,), at most `LOST`, and slopes by the constants."""
        steps = self.steps
        scaled = constants * steps.lengths[:, None]
        found = self.system.rollout(
            steps.starts, np.array([0.0, 1.0]), scaled, sensitivities=True, tolerance=ROUNDING / 10, most_steps=1000
        )
        assert found.by_constants is not None
        errors = steps.ends - found.states[:, 1]
        slopes = found.by_constants[:, 1] * steps.lengths[:, None, None]
        rows = np.concatenate([errors, slopes.reshape(len(errors), -1)], axis=1)
        usable = np.isfinite(rows).all(axis=1)
        usable &= (np.abs(np.where(usable[:, None], errors, 0.0)) < LOST).all(axis=1)
        errors = np.where(usable[:, None], errors, LOST)
        slopes = np.where(usable[:, None, None], slopes, 0.0)
        return errors.reshape(-1), np.ascontiguousarray(slopes.reshape(-1, len(constants)).T)

    def fitted(self, constants: Floats, kept: Indices) -> tuple[Floats, Floats, Floats]:
        """Constants that fit the steps best, the others 0, with the errors and slopes there (Levenberg, Marquardt)."""
        constants = np.where(np.isin(np.arange(len(constants)), kept), constants, 0.0)
        errors, slopes = self.errors(constants)
        damping = 1e-3
        for _ in range(STEPS):
            square, own = float(dot(errors, errors)), slopes[kept]
            sizes = np.sqrt(dot(own, own)) + 1e-300
            for _ in range(DAMPINGS):
                columns = np.concatenate([own / sizes[:, None], np.sqrt(damping) * np.eye(len(kept))], axis=1)
                change = least_squares(columns, np.concatenate([errors, np.zeros(len(kept))])) / sizes
                further = constants.copy()
                further[kept] += change
                found = self.errors(further)
                if float(dot(found[0], found[0])) < square:
                    break
                damping = 5 * damping
            else:
                return constants, errors, slopes
            constants, (errors, slopes), damping = further, found, max(damping / 10, 1e-14)
            if self.late() or float(dot(errors, errors)) > square * (1 - 1e-6):
                break
        return constants, errors, slopes

    def needed(self, constants: Floats, errors: Floats, slopes: Floats, kept: Indices) -> Indices:
        """The terms of the shortest description, where flows are linear in the constants: others leave one by one."""
        view = errors + combined(constants[kept], slopes[kept])
        best, shortest = kept, np.inf
        while len(kept):
            regression = Regression.of(slopes[kept])
            rest = regression.rest(view)
            length = self.nats(rest, len(kept))
            if length <= shortest:
                best, shortest = kept, length
            lost = np.where(regression.kept, regression.coefficients(view) ** 2 / regression.variances, 0.0)
            kept = np.sort(kept[np.argsort(lost, kind="stable")[max(1, len(kept) // 8) :]])
        return best

    def nats(self, errors: Floats, terms: int) -> float:
        """Length of the description of the steps, up to a constant."""
        square = np.array(max(float(dot(errors, errors)) / len(errors), ROUNDING**2))
        return float(len(errors) / 2 * log(square)) + 6.0 * terms  # nats of a term: some nodes and a constant


def flow_equations(
    trajectories: Trajectories, features: Sequence[Sequence[str]], spread: Floats, late: Callable[[], bool]
) -> list[Tree] | None:
    """Polynomial rates of the states whose flow leads from each reading to the next.

    Parameters
    ----------
    trajectories : Trajectories
        Without controls; steps between readings of all states count.
    features : sequence of sequence of str
        Parameters of the tree of each state; all states are among them.
    spread : ndarray of shape (n_states,)
        Typical size of each state.
    late : callable
        Says whether the time is over.

    Returns
    -------
    list of Tree, or None
        None if there are too few steps, too many states or too much noise.
    """
    steps, states = _Steps.of(trajectories, spread), len(spread)
    found: tuple[float, Floats, Sequence[tuple[int, ...]]] | None = None
    shortest, exact = math.inf, False
    for degree in DEGREES:
        flow = _Flow.of(degree, states, steps, late)
        terms = len(flow.monomials)
        # Most coefficients of all states: a step has the slope of each.
        # Steps that each coefficient of a state needs
        if states * terms > 90 or len(steps.lengths) < 2 * terms or late():
            break
        kept, constants = np.arange(states * terms), flow.start()
        while True:
            constants, errors, slopes = flow.fitted(constants, kept)
            fewer = flow.needed(constants, errors, slopes, kept)
            if len(fewer) == len(kept) or late():
                break
            kept = fewer
        length, error = flow.nats(errors, len(kept)), math.sqrt(float(dot(errors, errors)) / len(errors))
        if length < shortest:
            shortest, found = length, (error, constants.reshape(states, terms), flow.monomials)
        exact = error <= 10 * ROUNDING
        if exact:
            break
    if found is None or not found[0] <= NOISE:
        return None
    _, table, monomials = found
    table = table * spread[:, None] / np.stack([np.multiply.reduce(spread[list(own)]) for own in monomials])
    if exact:
        table = np.vectorize(partial(short, digits=RIGHT), otypes=[np.float64])(table)
    return [_tree(own, monomials, trajectories.states, names) for own, names in zip(table, features, strict=True)]


def _tree(row: Floats, monomials: Sequence[tuple[int, ...]], states: Sequence[str], names: Sequence[str]) -> Tree:
    """A polynomial of the states."""
    terms = [
        "*".join([repr(value), *(states[place] for place in own)])
        for value, own in zip(row.tolist(), monomials, strict=True)
        if value
    ]
    return tidy(parse(" + ".join(terms) or "0.0", tuple(names)), functions=COMPILED)


def _product(values: Floats, places: Sequence[int]) -> Floats:
    """Products of some columns."""
    found = np.ones(values.shape[:-1])
    for place in places:
        found = found * values[..., place]
    return found
