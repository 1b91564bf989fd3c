"""Constraints on the unknown functions of a template, each on its own formula."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import placed
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.monotonic import Monotonicity
from shine.lang.forms.names import shown
from shine.lang.population import Population
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.constraints.constraints import Constraints, check_constraints
from shine.search.evolution.operators.slot_breeding import formulas_in
from shine.search.evolution.operators.slots import Slot, SlottedSet
from shine.search.templates.composition import Composition
from shine.search.templates.template import Template


def check_unknowns(composition: Composition) -> None:
    """Raise a `ValueError` if the constraints of an unknown function do not fit it."""
    for unknown, slot in zip(composition.template.unknowns, composition.genome.slots, strict=True):
        with placed(f"unknown {unknown.name!r}", ValueError):
            check_constraints(unknown.constraints, slot.primitives.functions, slot.primitives.features, False)
            if unknown.constraints.monotonic:
                _columns_of(composition.template, unknown.name, unknown.constraints)


@dataclass(frozen=True)
class SlotConstraints:
    """The constraints of all unknown functions that have any.

    Parameters
    ----------
    monotonic : mapping of str to Monotonicity
        Measures violations of monotonicity, by unknown function.
    constraints : mapping of str to Constraints
        By unknown function.
    """

    monotonic: Mapping[str, Monotonicity]
    constraints: Mapping[str, Constraints]

    @classmethod
    def of(cls, composition: Composition, rows: Dataset, threads: int) -> SlotConstraints:
        """The constraints of a template, measured on some rows."""
        given = {unknown.name: unknown.constraints for unknown in composition.template.unknowns if unknown.constraints}
        measures = {}
        for name, own in given.items():
            if own.monotonic:
                arguments = _dataset_of(composition, name, own, rows)
                # With a generator of its own, it draws the same pairs however long the search has run.
                measures[name] = Monotonicity(arguments, own.monotonic, threads, np.random.default_rng(0))
        return cls(measures, given)

    def __bool__(self) -> bool:
        return bool(self.constraints)

    def allowed(self, population: Population) -> Mask:
        """Whether each individual keeps the constraints on nodes, shape (n_individuals,), bool."""
        found = np.ones(len(population), np.bool_)
        for number, slot, own in self._slots(population):
            found &= _compiled(own, slot, None).allowed(formulas_in(population, number, slot.max_size))
        return found

    def charged(self, population: Population, losses: Floats) -> Floats:
        """Losses with penalties for the wrong direction; inf for individuals that are not allowed."""
        found = np.where(self.allowed(population), losses, np.inf)
        for number, slot, own in self._slots(population):
            which = np.flatnonzero(np.isfinite(found))
            if own.monotonic and len(which):
                formulas = formulas_in(population.take(which), number, slot.max_size)
                found[which] *= _compiled(own, slot, self.monotonic[slot.name]).penalties(formulas, np.ones(len(which)))
        return found

    def _slots(self, population: Population) -> list[tuple[int, Slot, Constraints]]:
        primitives = population.primitives
        assert isinstance(primitives, SlottedSet)
        return [
            (number, slot, self.constraints[slot.name])
            for number, slot in enumerate(primitives.slots)
            if slot.name in self.constraints
        ]


def _compiled(constraints: Constraints, slot: Slot, measure: Monotonicity | None) -> CompiledConstraints:
    return CompiledConstraints(constraints, slot.primitives, "none", None if measure is None else measure.wrong_shares)


class ConstrainedTemplates:
    """An evaluator that skips individuals that are not allowed (see `shine.search.constraints.compiled`)."""

    def __init__(self, evaluator: PopulationEvaluator, constraints: SlotConstraints) -> None:
        self._evaluator, self._constraints = evaluator, constraints

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Scores whose losses include the penalties; inf for individuals that are not allowed."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        which = np.flatnonzero(self._constraints.allowed(population))
        if not len(which):
            return scores
        some = population.take(which)
        found = self._evaluator.score(some, np.broadcast_to(threshold, n)[which])
        found = replace(found, losses=self._constraints.charged(some, found.losses))
        return scores.replaced(which, found).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Predictions of all individuals, allowed or not."""
        return self._evaluator.predict(population)


def _columns_of(template: Template, name: str, constraints: Constraints) -> dict[str, str]:
    """The column that each argument of an unknown function is in its first call."""
    arguments = next(unknown.arguments for unknown in template.unknowns if unknown.name == name)
    call = next(iter(_calls(template, name)), None)
    columns = {}
    for argument, node in zip(arguments, [] if call is None else call.args, strict=False):
        if isinstance(node, ast.Name):
            columns[argument] = node.id
    own = {each.name for each in template.parameters}
    for argument in constraints.monotonic:
        if argument not in columns or columns[argument] in own:
            raise ValueError(
                f"constraints.monotonic: the argument {shown(argument)} is no column in the first call of {name}, so "
                "that nothing says its range"
            )
    return columns


def _calls(template: Template, name: str) -> list[ast.Call]:
    return [
        node
        for tree in template.outputs
        for part in (*dict(tree.assignments).values(), tree.result)
        for node in ast.walk(part)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def _dataset_of(composition: Composition, name: str, constraints: Constraints, rows: Dataset) -> Dataset:
    """The rows with the arguments of an unknown function as columns; those that are no columns are 1."""
    columns = _columns_of(composition.template, name, constraints)
    arguments = next(unknown.arguments for unknown in composition.template.unknowns if unknown.name == name)
    known = {
        own: rows.columns[rows.features.index(column)] for own, column in columns.items() if column in rows.features
    }
    stacked = [known.get(argument, np.ones(rows.n_rows)) for argument in arguments]
    return Dataset(np.ascontiguousarray(stacked), rows.target, rows.weights, arguments)
