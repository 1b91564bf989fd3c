"""Fits of parameters by group while everything else is fixed: groups do not depend on one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.data.datasets.dataset import stable_sum
from shine.evaluate.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    MOST_DAMPING,
)
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape, functions_of, tape_from_tree
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.population import Population
from shine.search.templates.composition import Composed
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.shrinkage import inverses
from shine.search.templates.fits.unknowns import Unknowns
from shine.search.templates.law import Law, inlined
from shine.search.templates.template import Parameter, Template


class SeparateFits:
    """Fits of each group by itself (Levenberg-Marquardt, with a damping of its own).

    Parameters
    ----------
    fits : GroupedFits
    composed : sequence of Composed
        Formulas without shared constants that are free.
    unknowns : Unknowns
    prior : ndarray of shape (2, own), optional
        Precisions and centers: each value is charged ``precision * (value - center)^2``.
    """

    def __init__(
        self, fits: GroupedFits, composed: Sequence[Composed], unknowns: Unknowns, prior: Floats | None = None
    ) -> None:
        self._fits, self._composed, self._unknowns = fits, composed, unknowns
        self._lows, self._highs = unknowns.lows[:, None, : unknowns.own], unknowns.highs[:, None, : unknowns.own]
        self._prior = np.zeros((2, unknowns.own)) if prior is None else prior

    def fitted(self, start: Floats, steps: int, tolerance: float, held: Mask) -> tuple[Floats, Floats]:
        """Values of each group, and its errors and charges.

        Parameters
        ----------
        start : ndarray of shape (n_individuals, n_groups, own)
        steps : int
        tolerance : float
            A group's fit has ended if its next step promises to remove less than this share of its error.
        held : ndarray of shape (own,), bool
            Which parameters keep their values.

        Returns
        -------
        values : ndarray of shape (n_individuals, n_groups, own)
        errors : ndarray of shape (n_individuals, n_groups)
            inf where a prediction is not finite.
        """
        values, damping = start, np.full(start.shape[:2], FIRST_DAMPING)
        errors, matrices, slants = self._measured(start)
        with np.errstate(all="ignore"):
            for _ in range(steps):
                diagonals = np.stack([matrices[..., k, k] for k in range(start.shape[2])], axis=-1)
                stays = held | ((values <= self._lows) & (slants < 0)) | ((values >= self._highs) & (slants > 0))
                stays |= ~(np.isfinite(slants) & np.isfinite(diagonals) & (diagonals > 0))
                free = np.where(stays[..., None] | stays[..., None, :] | ~np.isfinite(matrices), 0.0, matrices)
                charges = np.where(stays, 0.0, damping[..., None] * diagonals)
                inverse, pull = inverses(free, charges), np.where(stays, 0.0, slants)
                step = np.add.reduce(inverse * pull[..., None, :], axis=-1)
                promise = np.add.reduce(step * (pull + charges * step), axis=-1)
                going = (promise > tolerance * errors) & np.isfinite(errors)
                if not going.any():
                    break
                moved = np.minimum(np.maximum(values + step, self._lows), self._highs)
                trial = np.where(going[..., None], moved, values)
                found, new_matrices, new_slants = self._measured(trial)
                better = going & (found < errors)
                damping = np.clip(damping * np.where(better, AFTER_BETTER, AFTER_WORSE), LEAST_DAMPING, MOST_DAMPING)
                values, errors = np.where(better[..., None], trial, values), np.where(better, found, errors)
                matrices = np.where(better[..., None, None], new_matrices, matrices)
                slants = np.where(better[..., None], new_slants, slants)
        return values, errors

    def _measured(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Errors, matrices, and products with the residual of each group, charges included."""
        n, _, own = values.shape
        errors, blocks = self._fits.blocks(self._composed, self._unknowns, values.reshape(n, -1))
        precisions, centers = self._prior
        away = centers - values
        matrices, slants = blocks[:, :, :own, :own] + np.diag(precisions), blocks[:, :, :own, -1] + precisions * away
        total = errors + np.add.reduce(precisions * away**2, axis=-1)
        return np.where(np.isfinite(total), total, np.inf), matrices, slants


def separately_fitted(
    fits: SeparateFits, starts: Floats, integers: Mask, steps: int, tolerance: float
) -> tuple[Floats, Floats]:
    """The best value of each parameter for each group from several starts, and each group's errors.

    Parameters
    ----------
    fits : SeparateFits
    starts : ndarray of shape (n_starts, n_groups, own)
    integers : ndarray of shape (own,), bool
        Which parameters are whole numbers; the nearest ones, and their neighbours, are tried.
    steps, tolerance
        See `SeparateFits.fitted`.
    """
    values, errors = _best(*fits.fitted(starts, steps, tolerance, np.zeros(len(integers), np.bool_)))
    if not integers.any():
        return values, errors
    rounded = np.where(integers, np.rint(values), values)
    changes = [np.zeros(len(integers))]
    for k in np.flatnonzero(integers).tolist():
        changes += [sign * np.eye(len(integers))[k] for sign in (1.0, -1.0)]
    trials = np.stack([rounded + change for change in changes] + [rounded] * max(len(starts) - len(changes), 0))
    found = [fits.fitted(np.broadcast_to(each, starts.shape), steps, tolerance, integers) for each in trials]
    return _best(np.concatenate([each for each, _ in found]), np.concatenate([loss for _, loss in found]))


def _best(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The best start of each group."""
    first, everyone = np.argmin(errors, axis=0), np.arange(errors.shape[1])
    return values[first, everyone], errors[first, everyone]


@dataclass(frozen=True, eq=False)
class LawComposer:
    """A law as the individuals of a template (see `shine.search.templates.fits.sections.Composer`): they differ in
    their leaves.

    Parameters
    ----------
    law : Law
    n_groups : int
        Number of groups, which need not be those of the law.
    """

    law: Law
    n_groups: int

    @property
    def template(self) -> Template:
        """The template of the law."""
        return self.law.template

    @property
    def features(self) -> tuple[str, ...]:
        """Columns of the data."""
        return self.law.features

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters by group."""
        return tuple(each for each in self.template.parameters if each.by_group and each.value is None)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of leaves of each parameter."""
        return (self.n_groups,) * len(self.parameters)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Place of each parameter's first leaf among all leaves."""
        return tuple(self.n_groups * position for position in range(len(self.parameters)))

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all parameters."""
        return self.n_groups * len(self.parameters)

    def individuals(self, leaves: Floats) -> Population:
        """Individuals with given values of the leaves, shape (n_individuals, n_leaves)."""
        n, width = len(leaves), self.n_leaves + 1
        codes = np.full((n, width), CONSTANT, np.int16)
        codes[:, -1] = 1
        values = np.concatenate([leaves, np.zeros((n, 1))], axis=1)
        primitives = PrimitiveSet((Primitive("(root)", max(self.n_leaves, 1)),), ())
        return Population(codes, values, np.full(n, width), primitives)

    def composed(self, population: Population) -> tuple[Composed, ...]:
        """The formulas of all outputs, the same ones for each individual."""
        return tuple(self._output(tape, population) for tape in self._tapes)

    @cached_property
    def _trees(self) -> list[Tree]:
        law, free = self.law, {each.name for each in self.parameters}
        definitions = {**law.functions, **law.derivatives}
        called = {name: tree for name, tree in definitions.items() if name in self.template.calls}
        constants = {name: float(value) for name, value in law.constants.items() if name not in free}
        names = (*law.features, *(each.name for each in self.parameters))
        return [inlined(output, called, names, constants) for output in self.template.outputs]

    @cached_property
    def _primitives(self) -> PrimitiveSet:
        table = dict(STANDARD)
        for tree in self._trees:
            table |= tree.functions
        used = sorted({name for tree in self._trees for name in functions_of(tree)})
        return PrimitiveSet(tuple(table[name] for name in used), self.features)

    @cached_property
    def _tapes(self) -> list[tuple[Tape, Indices]]:
        """The tape of each output, and the number of the parameter at each position, or -1."""
        names = (*self.features, *(each.name for each in self.parameters))
        wider = replace(self._primitives, features=names)
        found = []
        for tree in self._trees:
            tape = tape_from_tree(tree, wider)
            number = tape.codes.astype(np.int64) - 1 - len(self.features)
            leaf = (number >= 0) & (number < len(self.parameters))
            functions = number >= len(self.parameters)
            codes = np.where(leaf, CONSTANT, np.where(functions, tape.codes - len(self.parameters), tape.codes))
            found.append((Tape(codes.astype(np.int16), tape.values), np.where(leaf, number, -1)))
        return found

    def _output(self, tape: tuple[Tape, Indices], population: Population) -> Composed:
        (codes, values), numbers = (tape[0].codes, tape[0].values), tape[1]
        n, size = len(population), len(codes)
        offsets = np.array([*self.offsets, 0])
        sources = np.where(numbers >= 0, offsets[numbers], -1)
        formulas = Population(np.tile(codes, (n, 1)), np.tile(values, (n, 1)), np.full(n, size), self._primitives)
        return Composed(formulas, np.tile(sources, (n, 1)), np.tile(numbers >= 0, (n, 1)))


def started(law: Law, parameters: Sequence[Parameter], most: int) -> Floats:
    """Values of the parameters by group to start from, shape (n_starts, n_parameters): those of some groups, their
    medians, and what the template says."""
    known = np.column_stack([np.asarray(law.constants[each.name]) for each in parameters])
    # Groups spread evenly over the order of their first parameter.
    order = known[np.argsort(known[:, 0], kind="stable")]
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(np.int64))]
    middle = np.sort(known, axis=0)[len(known) // 2]
    return np.vstack([middle, [each.first for each in parameters], chosen])


def spread(law: Law, parameters: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Mean and variance of each parameter by group over the groups of a law; variance 0 for fewer than two groups."""
    known = [np.asarray(law.constants[each.name]) for each in parameters]
    count = len(known[0])
    centers = np.array([stable_sum(values) / count for values in known])
    squares = [stable_sum((values - center) ** 2) for values, center in zip(known, centers.tolist(), strict=True)]
    return centers, np.array(squares) / max(count - 1, 1)
