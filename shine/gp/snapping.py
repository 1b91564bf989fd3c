"""Replace constants by the numbers that people write: whole numbers, simple fractions, multiples of pi and e.

A constant that the data determine to within sigma costs ``log(|c| / sigma)`` nats to write down; a simple number costs
much less. A constant is replaced if this saves more than the fit loses, measured as a log-likelihood: the principle of
minimum description length (Rissanen 1978), for one constant at a time. The others are fitted again after each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from shine.arrays import log
from shine.arrays.linear_systems import inverse_diagonal
from shine.fitness.protocols import Linearizer, NormalEquations
from shine.gp.constants import places
from shine.lang.population import Population
from shine.typing import Floats, Mask

_LARGEST_DENOMINATOR = 12
_LARGEST_NUMERATOR = 48
"""Largest terms of the fractions tried: people seldom write larger ones, and chance hits grow with their number."""

_STEPS = 8
"""Most steps that fit the other constants after a replacement."""

_NATS = 1e-3
"""Fitting the others ends once a step promises to shorten the description of the residuals by less than this."""


@dataclass(frozen=True)
class _Simple:
    """Simple numbers, and the cost of writing each down, in nats."""

    numbers: Floats
    costs: Floats


@cache
def _simple_numbers() -> _Simple:
    """Positive fractions, and their products with powers of pi and e, and with square roots of 2, 3, pi and 2 pi."""
    units = {1.0: 0.0, math.pi: 2.0, 1 / math.pi: 2.0, math.e: 3.0, 1 / math.e: 3.0, math.sqrt(2): 3.0}
    units |= {math.sqrt(3): 3.0, math.sqrt(math.pi): 4.0, 1 / math.sqrt(math.pi): 4.0}
    units |= {math.sqrt(2 * math.pi): 4.0, 1 / math.sqrt(2 * math.pi): 4.0, math.pi**2: 4.0, 1 / math.pi**2: 4.0}
    found: dict[float, float] = {}
    for unit, extra in units.items():
        for denominator in range(1, _LARGEST_DENOMINATOR + 1):
            for numerator in range(1, _LARGEST_NUMERATOR + 1):
                if math.gcd(numerator, denominator) == 1:
                    cost = math.log(numerator + 1) + (math.log(denominator + 1) + 1 if denominator > 1 else 0) + extra
                    number = numerator / denominator * unit
                    found[number] = min(cost, found.get(number, math.inf))
    numbers = np.array(sorted(found))
    return _Simple(numbers, np.array([found[number] for number in numbers.tolist()]))


def snapped(
    population: Population,
    linearizer: Linearizer,
    rows: float,
    least_error: float,
    *,
    log_likelihood: float,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Population:
    """The individuals, with constants replaced by simple numbers if the fit hardly suffers.

    Parameters
    ----------
    population : Population
        Complete formulas with fitted constants: linear scaling adds nothing to them.
    linearizer : Linearizer
    rows : float
        Number of rows; with weights, their effective number.
    least_error : float
        Sum of errors that counts as rounding.
    log_likelihood : float
        Factor of the logarithm of the sum of errors in the negative log-likelihood of a row; see
        `shine.fitness.losses.ErrorKind`.
    out_of_time : callable
        Says whether to stop, with the constants replaced so far.
    """
    ones, zeros = np.ones(len(population)), np.zeros(len(population))
    at = places(population)
    count = 1 + int(at[2].max(initial=-1))
    fixed = np.ones((len(population), count), np.bool_)
    fixed[at[0], at[2]] = False
    tried: list[set[tuple[int, float]]] = [set() for _ in range(len(population))]
    limits = np.full(len(population), np.inf)
    equations = linearizer.normal_equations(population, ones, zeros, limits)
    while True:
        proposals = _proposals(population, equations, fixed, tried, rows, least_error)
        if not proposals or out_of_time():
            return population
        chosen = np.array(list(proposals), dtype=np.int64)
        trial, held = population.take(chosen), fixed[chosen]
        for row, proposal in enumerate(proposals.values()):
            _set_constant(trial, row, proposal.rank, proposal.number)
            held[row, proposal.rank] = True
        tolerance = 2 * _NATS / max(rows, 1.0)
        fit = linearizer.fit(trial, ones[chosen], zeros[chosen], _STEPS, tolerance=tolerance, scaled=False, fixed=held)
        before = np.maximum(equations.errors[chosen], least_error)
        with np.errstate(all="ignore"):
            # Loss of log-likelihood, with the scale of the noise estimated from the errors.
            worse = log_likelihood * rows * log(np.maximum(fit.errors, least_error) / before)
        saved = np.array([proposal.saving for proposal in proposals.values()])
        accepted = worse < saved
        values = population.values.copy()
        values[chosen[accepted]] = fit.population.values[accepted]
        population = replace(population, values=values)
        fixed[chosen[accepted]] = held[accepted]
        for row, (i, proposal) in enumerate(proposals.items()):
            if not accepted[row]:
                tried[i].add((proposal.rank, proposal.number))
        equations = linearizer.normal_equations(population, ones, zeros, limits)


@dataclass(frozen=True)
class _Proposal:
    """A simple number in place of a constant.

    Parameters
    ----------
    rank : int
        Which constant of the individual, in the order of the tape.
    number : float
    saving : float
        Nats saved by writing down the number instead of the constant.
    """

    rank: int
    number: float
    saving: float


def _proposals(
    population: Population,
    equations: NormalEquations,
    fixed: Mask,
    tried: Sequence[set[tuple[int, float]]],
    rows: float,
    least_error: float,
) -> dict[int, _Proposal]:
    """The next proposal for each individual that has one, by index of the individual."""
    deviations = _deviations(equations.matrices, equations.errors, fixed, rows, least_error)
    found = {}
    for i in np.flatnonzero(np.isfinite(equations.errors)).tolist():
        proposal = _best_proposal(_constants(population, i), deviations[i], fixed[i], tried[i])
        if proposal is not None:
            found[i] = proposal
    return found


def _constants(population: Population, individual: int) -> Floats:
    tape = population.take(np.array([individual]))
    _, columns, _ = places(tape)
    return tape.values[0, columns]


def _set_constant(population: Population, individual: int, rank: int, number: float) -> None:
    _, columns, _ = places(population.take(np.array([individual])))
    population.values[individual, columns[rank]] = number


def _deviations(matrices: Floats, errors: Floats, fixed: Mask, rows: float, least_error: float) -> Floats:
    """Standard deviation of each constant given the data, (n_individuals, n_constants); inf if not determined."""
    count = min(matrices.shape[1] - 3, fixed.shape[1])
    deviations = np.full(fixed.shape, np.inf)
    for i in range(len(matrices)):
        free = np.flatnonzero(~fixed[i, :count])
        own = matrices[i][np.ix_(3 + free, 3 + free)]
        scale = np.sqrt(np.diag(own))
        if not len(free) or not np.isfinite(own).all() or not (scale > 0).all():
            continue
        noise = max(errors[i], least_error) / max(rows - len(free), 1.0)
        inverse = inverse_diagonal(own / np.outer(scale, scale))
        deviations[i, free] = np.sqrt(np.maximum(inverse, 1.0) * noise) / scale
    return deviations


def _best_proposal(values: Floats, deviations: Floats, fixed: Mask, tried: set[tuple[int, float]]) -> _Proposal | None:
    """The untried proposal that saves most; None if none is worth trying."""
    best: _Proposal | None = None
    simple = _simple_numbers()
    for rank, (value, deviation) in enumerate(zip(values.tolist(), deviations[: len(values)].tolist(), strict=True)):
        if fixed[rank] or not math.isfinite(value) or not math.isfinite(deviation):
            continue
        # A double is never more certain than its rounding.
        deviation = max(deviation, 4e-16 * abs(value))
        now = math.log(max(abs(value) / deviation, 1.0)) + 1.0
        whole = float(round(value))
        numbers = np.append(np.copysign(simple.numbers, value), whole)
        savings = now - np.append(simple.costs, math.log(abs(whole) + 1))
        # Loss of log-likelihood of each number, to lowest order.
        worth = savings > 0.5 * ((numbers - value) / deviation) ** 2
        for position in np.flatnonzero(worth)[np.argsort(-savings[worth], kind="stable")].tolist():
            proposal = _Proposal(rank, float(numbers[position]), float(savings[position]))
            if best is not None and proposal.saving <= best.saving:
                break
            if (proposal.rank, proposal.number) not in tried:
                best = proposal
    return best
