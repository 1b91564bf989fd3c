"""Ranges of the arguments of a template's unknown functions, over all of their calls.

In ``c*f(a) + d``, a factor and a summand of ``f`` say nothing that c and d do not say. Such a constant is replaced by 0
or 1, and all others are fitted again: if that costs nothing, the shorter function stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.protocols import ConstantFitter, FirstLines, Fit, NormalEquations
from shine.lang.forms.primitives import CONSTANT
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population
from shine.lang.simplify.terms import Range
from shine.search.evolution.scoring import places
from shine.search.evolution.snapping import Nats
from shine.search.templates.body import Call, Expression
from shine.search.templates.composition import Composition
from shine.search.templates.fits.linearizer import TemplateLinearizer
from shine.search.templates.law import Groups

NEUTRAL = (0.0, 1.0)
"""Stand-ins for a constant: the neutral elements of sums and products."""

_STEPS, _TOLERANCE = 30, 1e-12
"""Most steps of a fit, and the share of the error that its next step must promise to remove."""


def ranges_of_arguments(
    composition: Composition, rows: Dataset, groups: Groups | None
) -> tuple[Mapping[str, Range], ...]:
    """The least and the greatest value of arguments, by name, of each unknown function.

    Arguments that depend on fitted parameters, on unknown functions, or on the column of groups are left out.

    Parameters
    ----------
    composition : Composition
    rows : Dataset
        All rows, with numbers of groups.
    groups : Groups, optional
        Formulas read the values of their column, which are not those in the rows.
    """
    found: list[dict[str, Range]] = []
    calls = list(chain.from_iterable(map(_calls, composition.plans)))
    # Other calls often have the same argument, and its values are those of all rows.
    known: dict[Expression, Range | None] = {}
    for number, slot in enumerate(composition.genome.slots):
        own = [call.arguments for call in calls if call.slot == number]
        ranges: dict[str, Range] = {}
        for name, expressions in zip(slot.primitives.features, zip(*own, strict=True), strict=False):
            for expression in expressions:
                if expression not in known:
                    known[expression] = _range(expression, composition, rows, groups)
            ends = [known[expression] for expression in expressions]
            inside = [each for each in ends if each is not None]
            if len(inside) == len(ends):
                ranges[name] = min(low for low, _ in inside), max(high for _, high in inside)
        found.append(ranges)
    return tuple(found)


def _calls(expression: Expression) -> Iterator[Call]:
    """The calls of unknown functions in an expression, those in arguments of others too."""
    for part in expression:
        if isinstance(part, Call):
            yield part
            for argument in part.arguments:
                yield from _calls(argument)


def _range(expression: Expression, composition: Composition, rows: Dataset, groups: Groups | None) -> Range | None:
    """The range of an argument; None if it is not known."""
    if len(expression) != 1:
        return None
    (known,) = expression
    if isinstance(known, Call) or any(leaf >= 0 for leaf in known.leaves):
        return None
    features = composition.features
    used = {features[code - 1] for code in known.codes if 1 <= code <= len(features)}
    if groups is not None and groups.column in used:
        return None
    if len(known.codes) == 1 and used:
        ends = rows.ranges.get(used.pop(), (np.nan, np.nan))
    elif rows.all_rows is None and rows.known_ranges is None:
        codes, values = np.array(known.codes, np.int16), np.array([float(value) for value in known.values])
        result = evaluate_tape(codes, values, composition.primitives, list(rows.columns), COMPILED)
        ends = float(result.min()), float(result.max())
    else:  # these are some of the rows, and others may have other values
        return None
    return ends if np.isfinite(ends).all() else None


@np.errstate(all="ignore")
def without_redundant(
    population: Population, fitter: ConstantFitter, nats: Nats, least_error: float
) -> tuple[Population, bool]:
    """The individuals, each with at most one redundant constant of a function replaced; and whether any was.

    Parameters
    ----------
    population : Population
        Individuals of a template with fitted constants.
    fitter : ConstantFitter
    nats : callable
        Log-likelihood lost between two arrays of sums of errors (see `shine.search.evolution.snapping.snapped`).
    least_error : float
        Sum of errors that counts as rounding.
    """
    before = fitter.fit(population, 1, tolerance=1.0).errors
    individuals, columns, ranks = places(population)
    of_functions = columns < population.sizes[individuals] - population.primitives.frame
    which, at, rank = (np.repeat(each[of_functions], len(NEUTRAL)) for each in (individuals, columns, ranks))
    numbers = np.tile(NEUTRAL, int(of_functions.sum()))
    new = population.values[which, at] != numbers
    which, at, rank, numbers = which[new], at[new], rank[new], numbers[new]
    if not len(which):
        return population, False
    trials = population.take(which)
    everyone = np.arange(len(which))
    trials.values[everyone, at] = numbers
    fixed = np.zeros((len(which), 1 + int(ranks.max())), np.bool_)
    fixed[everyone, rank] = True
    fit = fitter.fit(trials, _STEPS, tolerance=_TOLERANCE, fixed=fixed)
    worse = nats(np.maximum(fit.errors, least_error), np.maximum(before[which], least_error))
    # Zeros first: they remove a whole term.
    accepted = np.flatnonzero(np.isfinite(fit.errors) & (worse <= 0.01))  # nats that the fit may lose
    accepted = accepted[np.argsort(numbers[accepted], kind="stable")]
    chosen, first = np.unique(which[accepted], return_index=True)
    values = population.values.copy()
    values[chosen] = fit.population.values[accepted[first]]
    return replace(population, values=values), bool(len(chosen))


@dataclass(frozen=True)
class SharedConstants:
    """A linearizer of individuals whose parameters by group do not count as constants (see `hidden`)."""

    composition: Composition
    linearizer: TemplateLinearizer

    def hidden(self, population: Population) -> Population:
        """The individuals with the leaves of parameters by group as something else than constants."""
        return self._with_code(population, 1)  # code of a feature: a leaf that is no constant

    def shown(self, population: Population) -> Population:
        """The individuals as they were before `hidden`."""
        return self._with_code(population, CONSTANT)

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Normal equations of the shared constants, those of the groups eliminated."""
        del slopes, intercepts, limits
        return self.linearizer.shared_equations(self.shown(population))

    def fit(
        self,
        population: Population,
        steps: int,
        *,
        tolerance: float,
        lines: FirstLines | None = None,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit all constants, those of the groups too (see `shine.evaluate.protocols.Linearizer`)."""
        whole = self.shown(population)
        held = None if fixed is None else self._of_all(population, whole, fixed)
        fit = self.linearizer.fit(whole, steps, tolerance=tolerance, fixed=held)
        return replace(fit, population=self.hidden(fit.population))

    def _with_code(self, population: Population, code: int) -> Population:
        rows, at = self._leaves(population)
        codes = population.codes.copy()
        codes[rows, at] = code
        return replace(population, codes=codes)

    def _leaves(self, population: Population) -> tuple[Indices, Indices]:
        """Rows and columns of the leaves of parameters by group."""
        composition = self.composition
        own = [
            offset + np.arange(count)
            for parameter, offset, count in zip(
                composition.parameters, composition.offsets, composition.counts, strict=True
            )
            if parameter.by_group
        ]
        offsets = np.concatenate([np.zeros(0, np.int64), *own])
        first = population.sizes - 1 - composition.n_leaves
        return np.arange(len(population))[:, None], first[:, None] + offsets

    @staticmethod
    def _of_all(hidden: Population, whole: Population, fixed: Mask) -> Mask:
        """Mask of all constants that keep their values, from that of the shared ones."""
        held = np.zeros(whole.codes.shape, np.bool_)
        rows, columns, ranks = places(hidden)
        held[rows, columns] = fixed[rows, ranks]
        rows, columns, ranks = places(whole)
        found = np.zeros((len(whole), 1 + int(ranks.max(initial=-1))), np.bool_)
        found[rows, ranks] = held[rows, columns]
        return found
