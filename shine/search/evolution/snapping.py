"""Replace constants by the numbers that people write: decimals of few digits, simple fractions, multiples of pi and e.

A constant that the data determine to within sigma costs ``log(|c| / sigma)`` nats and some more to write down; a
shorter number costs less (`shine.lang.numerals` has the prices). A constant is replaced if this saves more than the fit
loses, measured as a log-likelihood: the principle of minimum description length (Rissanen 1978), for one constant at a
time. The others are fitted again after each. What is left is rounded off to the digits that the data determine.

All short numbers of a formula together may cost no more than `MOST_LOST`, beside the same form with all constants free.
So each lies well inside its own interval, and so do the values of the formula. Only zeros, which remove a term, and
whole and half exponents change the form; they need only pay for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import inverse_diagonal
from shine.evaluate.protocols import Fit, Linearizer, NormalEquations
from shine.lang.forms.primitives import CONSTANT
from shine.lang.numerals import LOG_10, cost_as_measured, is_simple, numerals, rounded, rounded_to
from shine.lang.population import Population
from shine.search.evolution.scoring import places

Nats = Callable[[Floats, Floats], Floats]
"""Log-likelihood by which some sums of errors are worse than others."""

MOST_LOST = 1.0
"""Log-likelihood that the short numbers of a formula may cost: each is then at most 1.4 standard errors away from the
most likely one, and so is each value of the formula."""

_SNAPPED_LOST = 0.75 * MOST_LOST
"""Share of it for simple numbers; the rest is for rounding off."""

_STEPS, _MANY_STEPS = 8, 50
"""Most steps that fit the other constants after a replacement, and all constants of a form that changed."""

_NATS = 1e-3
"""Fitting the others ends once a step promises to shorten the description of the residuals by less than this."""

_CAUTION = 2.0
"""Weight of what the fit loses by a number: people keep a digit that is half certain."""

_ROUNDED_OFF = 2 * LOG_10 + 1.0
"""Nats that a constant may lose when it is rounded off: a digit that is begun but not complete, another that is due
because of `_ROUND_CAUTION`, and some of the fit."""

_ROUND_CAUTION = 15.0
"""The same as `_CAUTION` when a constant is rounded off: a digit more is due if the constant would otherwise move by
more than 0.55 standard deviations. So 424 +- 42 becomes 420, not 400, as people write it."""


def snapped(
    population: Population,
    linearizer: Linearizer,
    rows: float,
    least_error: float,
    *,
    nats: Nats,
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
    nats : callable
        Log-likelihood by which the first of two arrays of sums of errors are worse than the second.
    out_of_time : callable
        Says whether to stop, with the constants replaced so far.
    """
    search = _Search(linearizer, rows, least_error, nats, 0.0, _CAUTION, _SNAPPED_LOST)
    return search.replaced(population, _nothing_fixed(population), out_of_time)


def rounded_off(
    population: Population,
    linearizer: Linearizer,
    rows: float,
    least_error: float,
    *,
    nats: Nats,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Population:
    """The individuals, with constants rounded to the digits that the data determine, and the others fitted after each.

    The parameters are those of `snapped`.
    """
    fixed = _nothing_fixed(population)
    for i, column, rank in zip(*(part.tolist() for part in places(population)), strict=True):
        value = float(population.values[i, column])
        # A constant of at most so many digits has been rounded already: a fitted one has more.
        fixed[i, rank] = is_simple(value) or (math.isfinite(value) and value == rounded(value, 8))
    search = _Search(linearizer, rows, least_error, nats, _ROUNDED_OFF, _ROUND_CAUTION, MOST_LOST)
    return search.replaced(population, fixed, out_of_time)


def with_affordable(population: Population, linearizer: Linearizer, rows: float, *, nats: Nats) -> Population:
    """The individuals; those whose numbers cost more than `MOST_LOST` with all constants fitted instead.

    The parameters are those of `snapped`, for all rows if the numbers were found on a sample.
    """
    search = _Search(linearizer, rows, 0.0, nats, 0.0, _CAUTION, MOST_LOST)
    ones = np.ones(len(population))
    errors = linearizer.normal_equations(population, ones, 0 * ones, np.full(len(population), np.inf)).errors
    free = search.freed(population, _STEPS)  # its numbers are near the most likely ones
    with np.errstate(all="ignore"):
        costly = nats(errors, free.errors) > MOST_LOST
    return replace(population, values=np.where(costly[:, None], free.population.values, population.values))


def _nothing_fixed(population: Population) -> Mask:
    at = places(population)
    fixed = np.ones((len(population), 1 + int(at[2].max(initial=-1))), np.bool_)
    fixed[at[0], at[2]] = False
    return fixed


@dataclass(frozen=True)
class _Search:
    """The search for shorter constants, one constant of each individual at a time.

    Parameters
    ----------
    linearizer, rows, least_error, nats
        See `snapped`.
    allowance : float
        Nats that a replacement may cost more than the constant with just the digits that the data determine.
    caution : float
        Weight of what the fit loses.
    most_lost : float
        Nats that all numbers together may cost.
    """

    linearizer: Linearizer
    rows: float
    least_error: float
    nats: Nats
    allowance: float
    caution: float
    most_lost: float

    def replaced(self, population: Population, fixed: Mask, out_of_time: Callable[[], bool]) -> Population:
        """The individuals with all replacements that pay."""
        ones, zeros = np.ones(len(population)), np.zeros(len(population))
        tried: list[set[tuple[int, float]]] = [set() for _ in range(len(population))]
        limits = np.full(len(population), np.inf)
        equations = self.linearizer.normal_equations(population, ones, zeros, limits)
        free = np.fmin(self.freed(population).errors, equations.errors)
        least = np.full(len(population), self.least_error)
        new, ranked = np.arange(len(population)), [_Ranked() for _ in range(len(population))]
        while True:
            # Only individuals that have changed have other numbers to try than before.
            least[new] = _rounding_errors(population, equations, self.least_error, new)
            self.rank(ranked, population, equations, fixed, least, new)
            proposals = {i: found for i, each in enumerate(ranked) if (found := each.next(tried[i]))}
            if not proposals or out_of_time():
                return population
            chosen = np.array(list(proposals), dtype=np.int64)
            trial, held = population.take(chosen), fixed[chosen]
            for row, proposal in enumerate(proposals.values()):
                _set_constant(trial, row, proposal.rank, proposal.number)
                held[row, proposal.rank] = True
            tolerance = 2 * _NATS / max(self.rows, 1.0)
            fit = self.linearizer.fit(trial, _STEPS, tolerance=tolerance, fixed=held)
            floor = least[chosen]
            with np.errstate(all="ignore"):
                worse = self.nats(np.maximum(fit.errors, floor), np.maximum(equations.errors[chosen], floor))
                lost = self.nats(np.maximum(fit.errors, floor), np.maximum(free[chosen], floor))
            kept = _structure(trial)[np.arange(len(trial)), [proposal.rank for proposal in proposals.values()]]
            accepted = worse < np.array([proposal.saving for proposal in proposals.values()])
            accepted &= kept | (lost <= self.most_lost)
            values = population.values.copy()
            values[chosen[accepted]] = fit.population.values[accepted]
            population = replace(population, values=values)
            fixed[chosen[accepted]] = held[accepted]
            for row, (i, proposal) in enumerate(proposals.items()):
                if not accepted[row]:
                    tried[i].add((proposal.rank, proposal.number))
            changed = chosen[accepted & kept]
            if len(changed):
                free[changed] = self.freed(population.take(changed)).errors
            new = chosen[accepted]
            if len(new):
                equations = self.linearizer.normal_equations(population, ones, zeros, limits)

    def freed(self, population: Population, steps: int = _MANY_STEPS) -> Fit:
        """The individuals with all constants fitted that do not belong to their form."""
        tolerance = 2 * _NATS / max(self.rows, 1.0)
        return self.linearizer.fit(population, steps, tolerance=tolerance, fixed=_structure(population))

    def rank(
        self,
        ranked: list[_Ranked],
        population: Population,
        equations: NormalEquations,
        fixed: Mask,
        least: Floats,
        which: Indices,
    ) -> None:
        """Note the numbers that are worth trying in some individuals."""
        deviations = _deviations(equations, fixed, self.rows, least, which)
        for i, own in zip(which.tolist(), deviations, strict=True):
            constants = _constants(population, i) if math.isfinite(equations.errors[i]) else ()
            ranks = np.flatnonzero(~fixed[i, : len(constants)]).tolist()
            ranked[i] = _Ranked([self.proposals(rank, float(constants[rank]), float(own[rank])) for rank in ranks])

    def proposals(self, rank: int, value: float, deviation: float) -> Iterator[_Proposal]:
        """The numbers that would gain something in place of one constant, those that gain most first."""
        if not math.isfinite(value) or value == 0:
            return iter(())
        # A double is never more certain than its rounding.
        deviation = max(deviation, 4e-16 * abs(value))
        candidates = numerals(value)
        savings = cost_as_measured(value, deviation) + self.allowance - candidates.costs
        with np.errstate(all="ignore"):
            # Loss of log-likelihood of each number, to lowest order.
            losses = 0.5 * ((candidates.numbers - value) / deviation) ** 2
        gains = savings - np.where(candidates.numbers == 0, losses, self.caution * losses)
        paying = np.flatnonzero(gains > 0)
        order = paying[np.argsort(-gains[paying], kind="stable")]
        measures = zip(*(each[order].tolist() for each in (candidates.numbers, savings, gains)), strict=True)
        return (_Proposal(rank, *each) for each in measures)


@dataclass
class _Ranked:
    """The proposals for an individual, a series a constant, the best first; most are never looked at."""

    series: list[Iterator[_Proposal]] = field(default_factory=list)
    first: dict[int, _Proposal | None] = field(default_factory=dict)

    def next(self, tried: set[tuple[int, float]]) -> _Proposal | None:
        """The untried number that gains most; zeros first: a term that the data do not need must not carry what others
        lose by rounding."""
        found: list[_Proposal] = []
        for at, each in enumerate(self.series):
            own = self.first[at] if at in self.first else next(each, None)
            while own is not None and (own.rank, own.number) in tried:
                own = next(each, None)
            self.first[at] = own
            found += [] if own is None else [own]
        return max(found, key=lambda proposal: (proposal.number == 0, proposal.gain), default=None)


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
    gain : float
        What is left of them after what the fit probably loses.
    """

    rank: int
    number: float
    saving: float
    gain: float


def _constants(population: Population, individual: int) -> Floats:
    return population.values[individual, _columns(population, individual)]


def _columns(population: Population, individual: int) -> Indices:
    """Positions of the constants of an individual."""
    return np.flatnonzero(population.codes[individual, : population.sizes[individual]] == CONSTANT)


def _structure(population: Population) -> Mask:
    """Constants of the form, shape (n_individuals, n_constants): zeros, and whole and half exponents."""
    rows, columns, ranks = places(population)
    found = _nothing_fixed(population)
    values = population.values[rows, columns]
    after = np.minimum(columns + 1, population.width - 1)
    exponent = population.codes[rows, after] == population.primitives.function_codes.get("pow", -1)
    found[rows, ranks] = (values == 0) | (exponent & (2 * values == np.round(2 * values)))
    return found


def _set_constant(population: Population, individual: int, rank: int, number: float) -> None:
    population.values[individual, _columns(population, individual)[rank]] = number


def _rounding_errors(population: Population, equations: NormalEquations, least_error: float, which: Indices) -> Floats:
    """Sum of errors of some individuals that counts as rounding.

    Terms that are larger than their sum round more than the target does: each constant's share of the values is rounded
    as well as the values themselves.
    """
    least = np.full(len(which), least_error)
    for row, i in enumerate(which.tolist()):
        if not math.isfinite(equations.errors[i]):
            continue
        constants = _constants(population, i)
        squares = np.diag(equations.matrices[i])[3 : 3 + len(constants)]
        with np.errstate(all="ignore"):
            own = float(np.add.reduce(((2.0**-52) * constants) ** 2 * squares))  # relative error of a product
        if math.isfinite(own):
            # Rounding errors of large terms count up to so many times those of the target; a formula with more is
            # chaotic.
            least[row] = max(least_error, min(own, 1e10 * least_error))
    return least


def _deviations(equations: NormalEquations, fixed: Mask, rows: float, least: Floats, which: Indices) -> Floats:
    """Standard deviation of each constant of some individuals given the data, (n, n_constants); inf if not determined.

    Rounding errors of the rows need not be independent. So they move a constant by as much as one change of all rows of
    their size does; noise moves it by less, the more rows there are.
    """
    matrices, errors = equations.matrices, equations.errors
    count = min(matrices.shape[1] - 3, fixed.shape[1])
    deviations = np.full((len(which), fixed.shape[1]), np.inf)
    for row, i in enumerate(which.tolist()):
        if not math.isfinite(errors[i]):
            continue
        squares = np.diag(matrices[i])[3 : 3 + count]
        # A constant without influence on any row must not hide the others.
        free = np.flatnonzero(~fixed[i, :count] & np.isfinite(squares) & (squares > 0))
        own = matrices[i][np.ix_(3 + free, 3 + free)]
        if not len(free) or not np.isfinite(own).all():
            continue
        scale = np.sqrt(squares[free])
        noise = max(errors[i], least[i]) / max(rows - len(free), 1.0) + least[i]
        inverse = inverse_diagonal(own / np.outer(scale, scale))
        with np.errstate(all="ignore"):
            deviations[row, free] = np.sqrt(np.maximum(inverse, 1.0) * noise) / scale
    return deviations


def without_idle_digits(population: Population, linearizer: Linearizer, rows: float, least_error: float) -> Population:
    """The individuals, with constants rounded to the digits that the data determine, and one more; see `snapped`."""
    count = len(population)
    equations = linearizer.normal_equations(population, np.ones(count), np.zeros(count), np.full(count, np.inf))
    values = population.values.copy()
    individuals, columns, ranks = places(population)
    for i, column, rank in zip(individuals.tolist(), columns.tolist(), ranks.tolist(), strict=True):
        square = float(equations.matrices[i, 3 + rank, 3 + rank])
        noise = max(float(equations.errors[i]), least_error) / max(rows, 1.0)
        if not (math.isfinite(noise) and math.isfinite(square) and square > 0 and math.isfinite(values[i, column])):
            continue
        deviation, value = math.sqrt(noise / square), float(values[i, column])
        if not is_simple(value):
            # Share of a constant's deviation that the last digit of a rounded constant may be worth.
            values[i, column] = rounded_to(value, 0.1 * deviation)
    return replace(population, values=values)
