"""Systems whose equations share terms and constants: flows from one state to another, and one law for several states.

Equations are found apart, each with constants of its own. Here they are written as sums. Terms of one shape in several
equations may have the same constants, or coefficients of a simple ratio as in a reaction of two molecules of one kind,
and so may equations that an exchange of states turns into each other have the same: those that a fit does not tell
apart become one. What an equation shares with an earlier one is described once; if the readings do
not object, the description becomes shorter. Integration judges it as any other system.

Exact equations get short numbers: 10 where a fit to clean readings has left 10.00000000005.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.named_numbers import short
from shine.lang.parse import parse
from shine.search.dynamics.equations import KNOWN, Equation
from shine.search.dynamics.known_parts import bare
from shine.search.dynamics.summands import NoSum, Product, exchanged, exchanges, summands, written
from shine.search.dynamics.system import SystemModel

WORSE, ROUNDING = 4.0, 1e-16
"""Factor by which short numbers may raise the error, and the error that is rounding."""


def with_short_numbers(system: SystemModel, fit: Callable[[Sequence[Equation]], SystemModel]) -> SystemModel:
    """An exact system with short decimals for its constants, if its rollouts follow the readings as well.

    Parameters
    ----------
    system : SystemModel
    fit : callable
        Equations -> the system with the initial states that fit best, and constants without a name as given.
    """
    # Error of rollouts, as a share of the variance, of readings without noise.
    if not system.error < 1e-12 or any(tree.assignments for tree in system.trees):
        return system
    # Digits of a constant that readings without noise tell, at least, though errors grow along a run.
    models = [
        replace(model, tree=with_numbers(model.tree, [short(each, 8) for each in with_named_constants(model.tree)[1]]))
        for model in system.equations
    ]
    counts = [len(with_named_constants(model.tree)[1]) for model in models]
    fewer = sum(counts) < len(system.constants)  # an exponent has become whole, and is no constant
    names = [None if fewer else (KNOWN,) * count for count in counts]
    found = fit([Equation(*pair) for pair in zip(models, names, strict=True)])
    if not found.error <= max(WORSE * system.error, ROUNDING) or np.array_equal(found.constants, system.constants):
        return system
    if fewer:
        return with_short_numbers(found, fit)
    pairs = zip(system.equations, found.trees, strict=True)
    equations = tuple(replace(model, tree=tree) for model, tree in pairs)
    return replace(system, equations=equations, losses=found.losses, starts=found.starts, noise=found.noise)


ALIKE = (5.0, 2.0)
"""Standard errors of their difference up to which two constants become one: the shorter description is taken. Errors
are known roughly."""

RATIOS = tuple(Fraction(*each) for each in ((2, 1), (1, 2), (3, 1), (1, 3), (3, 2), (2, 3)))
"""Ratios of the coefficients of one term in two equations, as numbers of molecules give them."""

Fit = Callable[[Sequence[Equation]], SystemModel]
"""Fits the system of some equations to the trajectories."""


def with_sharing(system: SystemModel, fit: Fit) -> SystemModel | None:
    """The system with shared constants, and with coefficients of 0 and 1 where the errors allow it.

    Parameters
    ----------
    system : SystemModel
        Fitted, with constants of its own in each equation.
    fit : callable

    Returns
    -------
    SystemModel or None
        None if there is nothing to share and nothing simpler.
    """
    try:
        sums = [summands(system.equations[place].tree) for place in system.sought]
        apart = _System.of(system, sums, fit)
        simpler = apart.simpler(fit)
    except NoSum:
        return None
    best = simpler if simpler is not None and simpler.fitted.nats < apart.fitted.nats else apart
    shared = [fit(own) for own in best.shared()]
    found = min([*shared, *([best.fitted] if best is simpler else [])], key=lambda each: each.nats, default=None)
    return found if found is not None and math.isfinite(found.nats) else None


@dataclass(frozen=True, eq=False)
class _Term:
    """A summand of an equation.

    Parameters
    ----------
    equation : int
        Its number among those that were sought.
    product : Product
    places : range
        Of its constants among those of the system.
    inner : int
        How many of them, the last ones, are in the factors.
    sizes : tuple of int
        Nodes of the term and of its factors.
    """

    equation: int
    product: Product
    places: range
    inner: int
    sizes: tuple[int, int]


Pair = tuple[_Term, _Term]

Name = tuple[int, Fraction]
"""A constant as another one times a factor."""


@dataclass(frozen=True, eq=False)
class _System:
    """A fitted system of sums.

    Parameters
    ----------
    fitted : SystemModel
    terms : tuple of tuple of _Term
        By equation that was sought.
    saved : tuple of int
        Nodes of each equation that another way of writing saves.
    """

    fitted: SystemModel
    terms: tuple[tuple[_Term, ...], ...]
    saved: tuple[int, ...]

    @classmethod
    def of(cls, system: SystemModel, sums: Sequence[Sequence[Product]], fit: Fit) -> _System:
        """Fit the equations of a system, those that were sought written as sums."""
        equations, terms, saved, total = [Equation(model) for model in system.equations], [], [], 0
        for number, (place, own) in enumerate(zip(system.sought, sums, strict=True)):
            before = system.equations[place]
            parameters = before.tree.parameters
            tree = parse(written(own, positive=True), parameters)
            saved.append(max(tree.size - bare(before.tree).size, 0))
            equations[place] = Equation(replace(before, tree=tree, digits=None), saved=saved[-1])
            found = []
            for product in own:
                size = replace(product, coefficient=abs(product.coefficient))
                trees = [parse(text, parameters) for text in (written([size]), product.text or "1.0")]
                counts = [len(with_named_constants(each)[1]) for each in trees]
                places = range(total, total + counts[0])
                sizes = (trees[0].size, trees[1].size)
                found.append(_Term(number, product, places, counts[1] if product.powers else 0, sizes))
                total += counts[0]
            terms.append(tuple(found))
        fitted = fit(equations)
        if total != len(fitted.constants) or fitted.covariance is None or not math.isfinite(fitted.nats):
            raise NoSum("not fitted")
        return cls(fitted, tuple(terms), tuple(saved))

    def simpler(self, fit: Fit) -> _System | None:
        """The system without coefficients that may be 0 or 1; None if it has none."""
        errors, constants = self.fitted.standard_errors(), self.fitted.constants
        sums = []
        for own in self.terms:
            found = []
            for term in own:
                if len(term.places) == term.inner:
                    found.append(term.product)
                    continue
                # Standard errors up to which a coefficient may be 0 or 1.
                value, error = float(constants[term.places[0]]), 2.0 * float(errors[term.places[0]])
                if abs(value) > error or len(own) == 1:
                    whole = 1.0 if term.product.powers and abs(value - 1) <= error else value
                    sign = math.copysign(1.0, term.product.coefficient)
                    found.append(replace(term.product, coefficient=sign * whole))
            sums.append(found or [each.product for each in own])
        before = [[_written(term.product) for term in own] for own in self.terms]
        return None if [list(map(_written, own)) for own in sums] == before else _System.of(self.fitted, sums, fit)

    def shared(self) -> Iterator[list[Equation]]:
        """Equations in which constants that the fit does not tell apart are one."""
        alike = [pair for pair in self._exchanged() if pair[0].equation < pair[1].equation]
        pairs = [*self._same(), *alike]
        tried = [[(place, Fraction(1)) for place in range(len(self.fitted.constants))]]
        for bound in ALIKE if pairs else ():
            names = self._names(pairs, bound)
            for own in (names, self._with_ratios(names, bound)):
                saved = self._saved(own, alike)
                if own not in tried and list(self.saved) != saved:
                    yield self._equations(own, saved)
                tried.append(own)

    def _same(self) -> list[Pair]:
        """Terms of one shape in different equations."""
        found: dict[str, list[_Term]] = {}
        for term in (each for own in self.terms for each in own if each.product.powers):
            found.setdefault(term.product.shape, []).append(term)
        return [
            (one, other)
            for own in found.values()
            for one, other in combinations(own, 2)
            if one.equation != other.equation
        ]

    def _exchanged(self) -> Iterator[Pair]:
        """Terms that become each other where an exchange of states turns each equation into that of its image."""
        counts = [len(own) for own in self.terms]
        for order, images in exchanges(self.fitted.states, len(counts)):
            if any(counts[at] != counts[image] for at, image in enumerate(order)):
                continue
            renamed = [[_shape(exchanged(term.product, images)) for term in own] for own in self.terms]
            shapes = [[_shape(term.product) for term in self.terms[image]] for image in order]
            if list(map(Counter, renamed)) != list(map(Counter, shapes)):
                continue
            for at, image in enumerate(order):
                for term, shape in zip(self.terms[at], renamed[at], strict=True):
                    partners = zip(self.terms[image], shapes[at], strict=True)
                    yield from ((term, other) for other, own in partners if own == shape and at != image)

    def _names(self, pairs: Sequence[Pair], bound: float) -> list[Name]:
        """For each constant the one that it is."""
        names = [(place, Fraction(1)) for place in range(len(self.fitted.constants))]
        for one, other in pairs:
            for first, second in zip(one.places, other.places, strict=False):
                if self._distance(first, second, Fraction(1)) <= bound:
                    names = _joined(names, first, second, Fraction(1))
        return names

    def _with_ratios(self, names: list[Name], bound: float) -> list[Name]:
        """The names if coefficients of a simple ratio become one, too, where the factors of their terms are one."""
        for one, other in self._same():
            inner = [[names[place] for place in term.places[len(term.places) - term.inner :]] for term in (one, other)]
            if len(one.places) > one.inner and len(other.places) > other.inner and inner[0] == inner[1]:
                first, second = one.places[0], other.places[0]
                distance, ratio = min((self._distance(first, second, ratio), ratio) for ratio in RATIOS)
                if names[first][0] != names[second][0] and distance <= bound:
                    names = _joined(names, first, second, ratio)
        return names

    def _distance(self, first: int, second: int, ratio: Fraction) -> float:
        """Standard errors between a constant times a ratio and another constant; inf if they are not known."""
        constants, covariance, times = self.fitted.constants, self.fitted.covariance, float(ratio)
        assert covariance is not None
        variance = times**2 * covariance[first, first] + covariance[second, second]
        error = math.sqrt(max(variance - 2 * times * covariance[first, second], 0.0))
        apart = abs(float(constants[first]) * times - float(constants[second]))
        # Share of a constant that steps of the integrator leave of clean readings, which know no such error.
        error += 1e-8 * abs(float(constants[second]))
        return apart / error if 0 < error < math.inf else math.inf

    def _saved(self, names: Sequence[Name], alike: Sequence[Pair]) -> list[int]:
        """Nodes of each equation that need no description: those of a term or of its factors that an earlier equation
        has, or all but the constants that it does not share with an earlier equation that it is like."""
        known, found = set[tuple[object, ...]](), []
        for at, own in enumerate(self.terms):
            tree, fresh = self.fitted.equations[self.fitted.sought[at]].tree, set[tuple[object, ...]]()
            # A minus sign before the first number is part of it.
            saved = tree.size - parse(written(term.product for term in own), tree.parameters).size
            for term in (each for each in own if each.product.powers):
                marks = tuple(names[place] for place in term.places)
                whole = (term.product.shape, term.sizes, marks)
                # A ratio is a number and a product.
                multiple = (term.product.shape, term.sizes, tuple(name for name, _ in marks))
                factors = (term.product.shape, marks[len(marks) - term.inner :])
                sizes = (whole, term.sizes[0] - 1), (multiple, term.sizes[0] - 3), (factors, term.sizes[1] - 1)
                saved += max((size for mark, size in sizes if mark in known), default=0)
                fresh |= {whole, multiple, factors}
            known |= fresh
            for earlier in {one.equation for one, other in alike if other.equation == at}:
                shared = {
                    place
                    for one, other in alike
                    if (one.equation, other.equation) == (earlier, at)
                    for first, place in zip(one.places, other.places, strict=False)
                    if names[first] == names[place]
                }
                saved = max(saved, tree.size - 1 - (sum(len(term.places) for term in own) - len(shared)))
            found.append(max(saved, self.saved[at]))
        return found

    def _equations(self, names: Sequence[Name], saved: Sequence[int]) -> list[Equation]:
        """The equations, whose constants of one name begin with their mean."""
        values = np.array(self.fitted.constants)
        factors = np.array([float(factor) for _, factor in names])
        for name in {name for name, _ in names}:
            own = [place for place, each in enumerate(names) if each[0] == name]
            values[own] = factors[own] * (np.add.reduce(values[own] / factors[own]) / len(own))
        equations = [Equation(model) for model in self.fitted.equations]
        firsts = (0, *self.fitted.compiled.ends[:-1])
        for number, place in enumerate(self.fitted.sought):
            model, part = self.fitted.equations[place], slice(firsts[place], self.fitted.compiled.ends[place])
            tree = with_numbers(model.tree, values[part])
            texts = tuple(f"shared.{name}" for name, _ in names[part])
            own_factors = tuple(factors[part].tolist())
            equations[place] = Equation(replace(model, tree=tree, digits=None), texts, saved[number], own_factors)
        return equations


def _joined(names: list[Name], first: int, second: int, ratio: Fraction) -> list[Name]:
    """The names if the second constant is the first times a ratio."""
    (kept, factor), (gone, other) = names[first], names[second]
    if kept == gone:
        return names
    times = factor * ratio / other
    if gone < kept:
        kept, gone, times = gone, kept, 1 / times
    return [(kept, own * times) if name == gone else (name, own) for name, own in names]


def _written(product: Product) -> tuple[str, bool]:
    """The factors, and whether a coefficient is written before them."""
    return product.text, abs(product.coefficient) != 1


def _shape(product: Product) -> tuple[str, bool]:
    return product.shape, product.coefficient < 0
