"""Inference from very many rows: by a large sample of them, then by sums over all of them.

A covariance is carried over by the normal equations of both: ``T C T'`` with ``T A T' = B``, where A and B are the
inverse normal matrices of the sample and of all rows. If the covariance trusts the weights of the rows, the result is
that of all rows; a robust one keeps the unevenness of the noise that the sample shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.evaluate.inference.constants import Form, with_values
from shine.evaluate.inference.covariance import Kind
from shine.evaluate.inference.curvature import Curvature
from shine.evaluate.inference.inference import FAR_AWAY, ROUNDED, Basis, Inference, rounded_notes
from shine.evaluate.inference.likelihood import Likelihood
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.evaluate.losses.form import Loss
from shine.evaluate.protocols import Linearizer
from shine.evaluate.tiers.gradients import MOST_CONSTANTS, MachineLinearizer
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tape_from_tree
from shine.lang.forms.tree import Tree
from shine.lang.population import Population

CLOSE = 0.1
"""Most standard errors of a step that is as good as exact: the errors are all but quadratic over it."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over some rows at some constants of a formula.

    Parameters
    ----------
    values : ndarray of shape (n_constants,)
        The constants.
    errors : float
    normal : ndarray of shape (n_constants, n_constants)
        Of the products of the derivatives by any two constants.
    slope : ndarray of shape (n_constants,)
        Of the products of the residual and a derivative.
    """

    values: Floats
    errors: float
    normal: Floats
    slope: Floats

    @classmethod
    def of(cls, values: Floats, errors: float, matrix: Floats, columns: Floats, first: int) -> Self:
        """The sums of normal equations (see `shine.evaluate.protocols.NormalEquations`).

        Parameters
        ----------
        values : ndarray of shape (n_constants,)
        errors : float
        matrix : ndarray of shape (first + n_on_the_tape, first + n_on_the_tape)
        columns : ndarray of shape (n_constants, n_on_the_tape)
            Occurrences of each constant on the tape, with its sign.
        first : int
            Column of the first constant; that of the residual is 0.
        """
        own = slice(first, first + columns.shape[1])
        return cls(values, errors, columns @ matrix[own, own] @ columns.T, columns @ matrix[0, own])

    def step(self) -> tuple[Floats, float]:
        """The step to the least sum of errors, and that sum, if the errors are quadratic."""
        if not len(self.slope) or not (np.isfinite(self.normal).all() and np.isfinite(self.slope).all()):
            return np.zeros(len(self.slope)), self.errors
        scale = np.sqrt(np.diagonal(self.normal))
        scale = np.where(scale > 0, scale, 1.0)
        step = np.linalg.lstsq(self.normal / scale / scale[:, None], self.slope / scale, rcond=None)[0] / scale
        return step, max(self.errors - float(step @ self.slope), 0.0)


def with_all_rows(
    sampled: Inference, sample: Sums, all_rows: Sums, rows: float, ranges: Mapping[str, tuple[float, float]]
) -> Uncertainty:
    """The uncertainty by all rows.

    Parameters
    ----------
    sampled : Inference
        By a sample of the rows.
    sample, all_rows : Sums
        At the same constants.
    rows : float
        Effective number of all rows.
    ranges : mapping of str to (float, float)
        Of the features, over all rows.
    """
    known, curved = sampled.uncertainty, sampled.found.determined
    if curved is not None and curved.curvature.smoothed:
        # Errors with kinks have a curvature only in the mean over the noise, which the sample tells.
        mean = curved.curvature.hessian / 2
        sample, all_rows = replace(sample, normal=mean), replace(all_rows, normal=mean * (rows / known.rows))
    # Both steps are approximate where errors are not squares: what they miss cancels.
    (before_step, before_least), (step, least) = sample.step(), all_rows.step()
    total = least * (known.total / before_least if before_least > 0 else 1.0)
    freedom = known.freedom if math.isinf(known.freedom) else max(rows - (known.rows - known.freedom), 0.0)
    before = known.total / known.freedom if known.likelihood is None and known.freedom > 0 else 1.0
    now = total / freedom if known.likelihood is None and freedom > 0 else 1.0
    noise = now / before if before > 0 and math.isfinite(now / before) else 1.0
    turn = _transport(sample.normal, all_rows.normal, known.rows / rows)
    covariance = noise * turn @ known.covariance @ turn.T
    with np.errstate(invalid="ignore"):
        close = bool((np.abs(step) <= CLOSE * np.sqrt(np.diagonal(covariance))).all())
    moved = all_rows.values + step if close else known.best + step - before_step
    best = np.where(known.undetermined, known.best, moved)
    with np.errstate(all="ignore"):
        grown = np.diagonal(all_rows.normal) / np.diagonal(sample.normal)
    information = known.information * np.where(np.isfinite(grown), grown, rows / known.rows) / noise
    notes = [note for note in known.notes if not note.startswith((ROUNDED, FAR_AWAY))]
    away = known.away * math.sqrt(rows / known.rows)
    return replace(
        known,
        best=best,
        covariance=(covariance + covariance.T) / 2,
        rows=rows,
        freedom=freedom,
        total=total,
        information=information,
        scale=known.scale * math.sqrt(noise),
        residuals=known.residuals * math.sqrt(noise),
        ranges={name: ranges[name] for name in known.ranges},
        away=away,
        notes=(*notes, *rounded_notes(known.names, known.values, best, covariance, known.undetermined, away)),
        profiles={},
    )


def _transport(sample: Floats, all_rows: Floats, share: float) -> Floats:
    """The matrix T above; where there is none, that of so many times the same rows."""
    try:
        scale = np.sqrt(np.diagonal(all_rows))
        before, now = (np.linalg.cholesky(each / scale / scale[:, None]) for each in (sample, all_rows))
        turn: Floats = np.linalg.solve(now.T, before.T) / scale[:, None] * scale
        if np.isfinite(turn).all():
            return turn
    except np.linalg.LinAlgError:
        pass
    return math.sqrt(share) * np.eye(len(all_rows))


SAMPLED_ROWS = 1 << 17
"""Rows of the sample."""

STEPS = 2
"""Steps over all rows to the most likely constants; a formula's own are a few standard errors away from them."""


class InferenceOfManyRows(Inference):
    """Inference from very many rows (see `Inference`).

    Parameters
    ----------
    form : Form
    basis : Basis
    kind : {"auto", "model", "robust"}
    everywhere, here : Sums, optional
        Over all rows, if the basis has a sample of them; and over the sample, at the same constants.
    """

    def __init__(
        self,
        form: Form,
        basis: Basis,
        kind: Kind = "auto",
        everywhere: Sums | None = None,
        here: Sums | None = None,
    ) -> None:
        super().__init__(form, basis, kind)
        self._everywhere, self._here = everywhere, here

    @cached_property
    @np.errstate(all="ignore")
    def uncertainty(self) -> Uncertainty:
        """The uncertainty without profiles."""
        rows, form = self.basis.rows, self.form
        few = replace(self.basis, rows=rows.sampled(SAMPLED_ROWS, np.random.default_rng(0)))
        sampled = Inference(form, few, self._kind)
        everywhere = self._everywhere or least_sums([form], self.basis)[0]
        here = self._here or sums_of([form], few, [everywhere.values])[0]
        count = float(rows.effective_rows) if self.basis.of is None else self.basis.of
        return with_all_rows(sampled, here, everywhere, count, rows.ranges)


def sums_of(forms: Sequence[Form], basis: Basis, values: Sequence[Floats]) -> list[Sums]:
    """The sums of each formula at some constants; squared errors of several formulas share one pass over the rows.

    Other errors have half their curvature as normal matrix.
    """
    forms = [replace(form, values=own) for form, own in zip(forms, values, strict=True)]
    together = [form for form in forms if basis.error.follows_from_moments and _has_tape(form)]
    # The code of a machine takes longer to load than one formula's own pass.
    shared = _sums_together(together, basis) if len(together) > 1 else []
    known = dict(zip(map(id, together), shared, strict=False))
    found = []
    for form in forms:
        sums = known.get(id(form))
        if sums is None or not math.isfinite(sums.errors):  # rows of weight 0 need no value
            near = Likelihood(form, basis.rows, basis.error).local(form.values)
            sums = Sums(form.values, near.total, near.curvature / 2, -near.gradient / 2)
        found.append(sums)
    return found


def _has_tape(form: Form) -> bool:
    """Whether the machine that fits constants takes a formula, with all of its constants."""
    try:
        tree = with_values(form, form.values)
        tape = tape_from_tree(tree, _primitives([tree], tree.parameters))
    except (UnsupportedSyntaxError, ValueError):
        return False
    return int(np.count_nonzero(tape.codes == CONSTANT)) <= MOST_CONSTANTS


def _primitives(trees: Sequence[Tree], features: tuple[str, ...]) -> PrimitiveSet:
    table = {name: function for tree in trees for name, function in tree.functions.items()}
    return PrimitiveSet(select(table, sorted({name for tree in trees for name in functions_of(tree)})), features)


def _sums_together(forms: Sequence[Form], basis: Basis) -> list[Sums]:
    used = {name for form in forms for name in form.tree.used_parameters}
    rows = basis.rows.without([name for name in basis.rows.features[1:] if name not in used])
    linearizer = MachineLinearizer(rows, Loss(basis.error.name, basis.error), processors())

    def tapes(trees: Sequence[Tree]) -> Population:
        trees = [replace(tree, parameters=rows.features) for tree in trees]
        return Population.from_trees(trees, _primitives(trees, rows.features))

    return sums_by(linearizer, forms, tapes)


def sums_by(linearizer: Linearizer, forms: Sequence[Form], tapes: Callable[[Sequence[Tree]], Population]) -> list[Sums]:
    """Sums of errors and the normal equations of each formula by the constants of its form, in one pass.

    Parameters
    ----------
    linearizer : Linearizer
    forms : sequence of Form
    tapes : callable
        Formulas -> individuals over the features of the linearizer's rows.
    """
    # Numbers that no formula has tell the places: a constant in a shared part has several.
    marks = [np.ldexp(1.0 + np.arange(len(form.names)), -1000) for form in forms]
    marked = tapes([with_values(form, own) for form, own in zip(forms, marks, strict=True)])
    ones, limits = np.ones(len(forms)), np.full(len(forms), np.inf)
    found = linearizer.normal_equations(
        tapes([with_values(form, form.values) for form in forms]), ones, 0 * ones, limits
    )
    sums = []
    for at, (form, own) in enumerate(zip(forms, marks, strict=True)):
        matrix, tape = found.matrices[at], marked.tape(at)
        numbers = tape.values[tape.codes == CONSTANT][: len(matrix) - FIXED_COLUMNS]
        columns = (own[:, None] == numbers).astype(np.float64) - (own[:, None] == -numbers)
        sums.append(Sums.of(form.values, float(found.errors[at]), matrix, columns, FIXED_COLUMNS))
    return sums


def least_sums(forms: Sequence[Form], basis: Basis) -> list[Sums]:
    """The sums next to the least sum of errors: after steps from each formula's constants, as long as errors fall."""
    found, rows = sums_of(forms, basis, [form.values for form in forms]), basis.rows
    squared = basis.error.follows_from_moments
    means: dict[int, Floats] = {}
    if not squared:
        few = rows.sampled(SAMPLED_ROWS, np.random.default_rng(0))
        for at, form in enumerate(forms):
            sampled = Curvature.of(Likelihood(form, few, basis.error), form.values)
            if sampled.smoothed:  # errors with kinks have a curvature only in the mean over the noise
                means[at] = sampled.hessian / 2 * (rows.effective_rows / few.effective_rows)
    going = list(range(len(forms)))
    for _ in range(STEPS):
        values = {at: _further(found[at], means.get(at), squared, rows) for at in going}
        trials = {at: own for at, own in values.items() if own is not None}
        further = sums_of([forms[at] for at in trials], basis, list(trials.values()))
        better = {at: new for at, new in zip(trials, further, strict=True) if new.errors < found[at].errors}
        found = [better.get(at, old) for at, old in enumerate(found)]
        going = list(better)
    return found


def _further(found: Sums, mean: Floats | None, squared: bool, rows: Dataset) -> Floats | None:
    """Constants after a step from those of some sums; None if these are as good."""
    step, least = (found if mean is None else replace(found, normal=mean)).step()
    if not (np.isfinite(step).all() and least < found.errors):
        return None
    # A standard error is at least that with all other constants known.
    near = squared and (step**2 * np.diagonal(found.normal) <= CLOSE**2 * least / rows.effective_rows).all()
    return None if near else found.values + step


@dataclass(frozen=True, eq=False)
class SumsOfForm:
    """Sums over all rows next to the most likely constants, for a model that has a sample of the rows.

    Parameters
    ----------
    sums : Sums
    redundant : tuple of int
        Places of simple numbers that are no constants (see `shine.evaluate.inference.determined`).
    here : Sums, optional
        Over the sample, if they were made in the same way.
    """

    sums: Sums
    redundant: tuple[int, ...]
    here: Sums | None = None

    @classmethod
    def of(cls, form: Form, basis: Basis) -> Self:
        """The sums of a formula over the rows of a basis."""
        return cls(least_sums([form], basis)[0], tuple(sorted(form.held.places)))
