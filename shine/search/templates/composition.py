"""A template bound to data: what its individuals are, and their formulas over the columns of the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import DataError, placed
from shine.base.lazy import cached_property
from shine.base.typing import Codes, Floats, Indices, Mask
from shine.lang.forms.grammar import NAMED_CONSTANTS, ExpressionVerifier
from shine.lang.forms.names import listed, shown
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tree_from_tape
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.population import Population
from shine.lang.vocabulary import PrimitiveSource, primitive_table
from shine.search.evolution.operators.slots import Slot, SlottedSet, ends_of_slots
from shine.search.templates.body import Call, Expression, Fixed, Leaf, plan
from shine.search.templates.derivatives import derivatives, functions_of_derivatives
from shine.search.templates.tapes import Tapes, joined, substituted
from shine.search.templates.template import Parameter, Template, Unknown


@dataclass(frozen=True, eq=False)
class Composed:
    """The formulas of one output, over the columns of the data.

    Parameters
    ----------
    population : Population
    sources : ndarray of shape (n_individuals, width), int64
        Position on the individual's own tape of the constant at each position; -1 if there is none. Several positions
        may have one source.
    grouped : ndarray of shape (n_individuals, width), bool
        Whether that is the first leaf of a parameter by group: the leaf of group g is g positions later.
    """

    population: Population
    sources: Indices
    grouped: Mask

    def take(self, which: Indices) -> Composed:
        """The formulas of some individuals."""
        return Composed(self.population.take(which), self.sources[which], self.grouped[which])


@dataclass(frozen=True, eq=False)
class Composition:
    """A template bound to data.

    Parameters
    ----------
    template : Template
    features : tuple of str
        Columns of the data, in their order. That of the groups holds the number of the group, from 0.
    n_groups : int
        Number of groups; 0 without groups.
    genome : SlottedSet
        Primitive set of the individuals: one slot for each unknown function, and the leaves of the parameters.
    primitives : PrimitiveSet
        Primitive set of the composed formulas.
    parameters : tuple of Parameter
        Those with leaves: all but fixed ones.
    """

    template: Template
    features: tuple[str, ...]
    n_groups: int
    genome: SlottedSet
    primitives: PrimitiveSet
    parameters: tuple[Parameter, ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of leaves of each parameter: one, or one for each group."""
        return tuple(self.n_groups if each.by_group else 1 for each in self.parameters)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Place of each parameter's first leaf among all leaves."""
        return tuple(sum(self.counts[:j]) for j in range(len(self.counts)))

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all parameters."""
        return sum(self.counts)

    @property
    def starts(self) -> Floats:
        """Values that the leaves start from, shape (n_leaves,)."""
        return self.genome.start

    def with_genome(self, genome: SlottedSet) -> Composition:
        """The same with other functions in the slots."""
        known = self.primitives.table
        more = functions_of_slots(self.template, genome.slots)
        added = tuple(function for name, function in more.items() if name not in known)
        primitives = PrimitiveSet((*self.primitives.functions, *added), self.primitives.features)
        return replace(self, genome=genome, primitives=primitives)

    def composed(self, population: Population) -> tuple[Composed, ...]:
        """The formulas of individuals, one `Composed` for each output.

        Individuals whose formula has more than `shine.search.templates.tapes.LONGEST` nodes are NaN.
        """
        composing = _Composing(self, population)
        found = []
        for expression in self.plans:
            tapes = composing.tapes(expression)
            formulas = Population(tapes.codes, tapes.values, tapes.sizes, self.primitives)
            found.append(Composed(formulas, tapes.sources, tapes.grouped))
        return tuple(found)

    def functions_of(self, individual: Population) -> Callable[[str, tuple[int, ...]], Tree]:
        """Writer of the unknown functions of one individual, and their derivatives, as formulas of their arguments.

        The function takes the name of the unknown function, and the arguments to differentiate by.
        """
        composing = _Composing(self, individual)
        slots = {slot.name: (number, slot.primitives.features) for number, slot in enumerate(self.genome.slots)}

        def written(name: str, by: tuple[int, ...]) -> Tree:
            slot, arguments = slots[name]
            tapes = composing.formulas(slot, by)
            own = PrimitiveSet(self.primitives.functions, arguments)
            # Arguments have negative codes there; functions follow the features in both sets.
            codes = tapes.codes[0, : tapes.sizes[0]].astype(np.int64)
            shift = len(arguments) - len(self.features)
            codes = np.where(codes < 0, -codes, np.where(codes > 0, codes + shift, 0))
            return tree_from_tape(codes.astype(np.int16), tapes.values[0, : tapes.sizes[0]], own)

        return written

    @cached_property
    def plans(self) -> tuple[Expression, ...]:
        """The known part of each output."""
        slots = {slot.name: number for number, slot in enumerate(self.genome.slots)}
        calls = {name: (slots[unknown], by) for name, (unknown, by) in self.template.calls.items()}
        leaves: dict[str, Leaf] = {
            each.name: float(each.value) for each in self.template.parameters if each.value is not None
        }
        for parameter, offset in zip(self.parameters, self.offsets, strict=True):
            leaves[parameter.name] = offset, parameter.by_group
        return tuple(plan(tree, self.primitives, calls, leaves) for tree in self.template.outputs)

    @cached_property
    def codes_in_formulas(self) -> tuple[Codes, ...]:
        """Code in composed formulas of each code of the genome, for each slot; -1, -2, ... for its arguments."""
        found, first = [], 1
        for slot in self.genome.slots:
            codes = np.zeros(len(self.genome.arities), np.int16)
            own = len(slot.primitives.features)
            codes[first : first + own] = -1 - np.arange(own)
            for function in slot.primitives.functions:
                codes[self.genome.function_codes[function.name]] = self.primitives.function_codes[function.name]
            found.append(codes)
            first += own
        return tuple(found)


def functions_of_slots(template: Template, slots: Sequence[Slot]) -> dict[str, Primitive]:
    """Functions that the unknown functions and their derivatives consist of, by name."""
    orders: dict[str, int] = {}
    for name, by in template.calls.values():
        orders[name] = max(orders.get(name, 0), len(by))
    found: dict[str, Primitive] = {}
    for slot in slots:
        own = {function.name: function for function in slot.primitives.functions}
        found |= functions_of_derivatives(own.values(), orders[slot.name]) if orders.get(slot.name) else own
    return found


class _Composing:
    """The composition of one population."""

    def __init__(self, composition: Composition, population: Population) -> None:
        self.composition, self.population = composition, population
        self.leaves = population.sizes - 1 - composition.n_leaves
        self.ends = ends_of_slots(population)
        self.found: dict[object, Tapes] = {}

    def tapes(self, expression: Expression) -> Tapes:
        """The parts of a tape that an expression is."""
        if expression not in self.found:
            self.found[expression] = joined([self._part(part) for part in expression])
        return self.found[expression]

    def _part(self, part: Fixed | Call) -> Tapes:
        if part in self.found:
            return self.found[part]
        if isinstance(part, Fixed):
            self.found[part] = self._fixed(part)
        else:
            arguments = [self.tapes(argument) for argument in part.arguments]
            self.found[part] = substituted(self.formulas(part.slot, part.by), arguments)
        return self.found[part]

    def _fixed(self, part: Fixed) -> Tapes:
        n, width = len(self.population), len(part.codes)
        leaves, grouped = np.array(part.leaves), np.tile(np.array(part.grouped), (n, 1))
        sources = np.where(leaves >= 0, self.leaves[:, None] + leaves, -1)
        own = self.population.values[np.arange(n)[:, None], np.maximum(sources, 0)]
        values = np.where(leaves >= 0, own, np.array(part.values).astype(np.float64))
        codes = np.tile(np.array(part.codes, np.int16), (n, 1))
        return Tapes(codes, values, sources, grouped, np.full(n, width))

    def formulas(self, slot: int, by: tuple[int, ...]) -> Tapes:
        """The formulas in a slot, or their derivatives."""
        key = slot, by
        if key not in self.found:
            if by:
                before = self.formulas(slot, by[:-1])
                self.found[key] = derivatives(before, by[-1], self.composition.primitives)
            else:
                self.found[key] = self._slot(slot)
        return self.found[key]

    def _slot(self, slot: int) -> Tapes:
        ends = self.ends[:, slot]
        begins = self.ends[:, slot - 1] + 1 if slot else np.zeros(len(ends), np.int64)
        sizes = ends + 1 - begins
        positions = np.arange(int(sizes.max(initial=1)))
        inside = positions < sizes[:, None]
        at = np.where(inside, begins[:, None] + positions, 0)
        rows = np.arange(len(sizes))[:, None]
        own = self.population.codes[rows, at]
        codes = np.where(inside, self.composition.codes_in_formulas[slot][own], 0).astype(np.int16)
        constant = inside & (own == CONSTANT)
        values = np.where(constant, self.population.values[rows, at], 0.0)
        return Tapes(codes, values, np.where(constant, at, -1), np.zeros(at.shape, np.bool_), sizes)


def bound(
    template: Template,
    features: Sequence[str],
    n_groups: int,
    primitives: Sequence[PrimitiveSource],
    max_size: int,
    max_depth: int,
) -> Composition:
    """The composition of a template.

    Parameters
    ----------
    template : Template
    features : sequence of str
        Columns of the data.
    n_groups : int
        Number of groups; 0 without groups.
    primitives : sequence of str, function or Primitive
        Functions of unknown functions that have none of their own.
    max_size, max_depth : int
        Limits of unknown functions that have none of their own.

    Raises
    ------
    DataError
        If the data lack a column.
    UnsupportedSyntaxError, TypeError, ValueError
        If a primitive cannot be used.
    """
    known = resolved(template, features)
    slots = [_slot(unknown, primitives, max_size, max_depth) for unknown in template.unknowns]
    fitted = tuple(each for each in known.parameters if each.value is None)
    numbers = [each.first for each in fitted for _ in range(n_groups if each.by_group else 1)]
    genome = SlottedSet.of(slots, numbers)
    functions = _functions(template, slots)
    return Composition(
        known, tuple(features), n_groups, genome, PrimitiveSet(tuple(functions.values()), tuple(features)), fitted
    )


def resolved(template: Template, features: Sequence[str]) -> Template:
    """The template for data with some columns: names of columns are no parameters, and no numbers such as pi.

    A `DataError` if the data lack a column.
    """
    missing = [name for name in template.columns if name not in features]
    if missing:
        raise DataError(f"the template needs a column {shown(missing[0])}; the data have {listed(features)}")
    columns = template.open & set(features)
    both = [each.name for each in template.parameters if each.name in features and each.name not in columns]
    if both:
        raise DataError(
            f"{shown(both[0])} is a parameter of the template, and a column of the data; rename one of them"
        )
    parameters = tuple(each for each in template.parameters if each.name not in columns)
    numbers = NAMED_CONSTANTS.keys() - {*features, *(each.name for each in parameters)}
    outputs = tuple(_with_numbers(tree, numbers) for tree in template.outputs)
    return replace(template, parameters=parameters, outputs=outputs)


def _with_numbers(tree: Tree, numbers: Collection[str]) -> Tree:
    """A formula in which some names are the numbers that they stand for."""
    names = tuple(name for name in tree.parameters if name not in numbers)
    read = ExpressionVerifier(tree.functions, {name: name for name in (*names, *dict(tree.assignments))}).visit
    assignments = tuple((name, read(value)) for name, value in tree.assignments)
    return replace(tree, parameters=names, assignments=assignments, result=read(tree.result))


def _slot(unknown: Unknown, primitives: Sequence[PrimitiveSource], max_size: int, max_depth: int) -> Slot:
    place = f"unknown function {unknown.name!r}"
    with placed(place, TypeError), placed(place, ValueError):
        table, names = primitive_table(primitives if unknown.primitives is None else unknown.primitives)
        own = PrimitiveSet(select(table, names), unknown.arguments)
    return Slot(unknown.name, own, unknown.max_size or max_size, unknown.max_depth or max_depth)


def _functions(template: Template, slots: Sequence[Slot]) -> dict[str, Primitive]:
    """Functions of the composed formulas, by name."""
    found = functions_of_slots(template, slots)
    for tree in template.outputs:
        for name in functions_of(tree) - template.calls.keys():
            if found.setdefault(name, tree.functions[name]) != tree.functions[name]:
                raise ValueError(f"the template's function {name!r} has the name of another primitive; rename it")
    return found
