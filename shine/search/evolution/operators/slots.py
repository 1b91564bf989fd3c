"""Individuals of several formulas: a tape with one formula in each slot, and then numbers that belong to none. And the
sizes, depths and limits of formulas, in slots or not.

The tape of such an individual is ``[formula of slot 0][formula of slot 1]...[numbers][root]``. The root is a function
without a meaning, whose arguments are all of them. So everything that works on tapes works: hashes, archives,
checkpoints, the fit of constants. Variation works on the formulas of one slot at a time, which have a primitive set of
their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Codes, Floats, Indices
from shine.compiler.tapes import Subtrees
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population

ROOT = "(root)"
"""Name of the root, which is no identifier: no formula can call it."""


@dataclass(frozen=True)
class Slot:
    """A place for a formula.

    Parameters
    ----------
    name : str
    primitives : PrimitiveSet
        Its functions, and the names of its arguments as features.
    max_size, max_depth : int
        Most nodes and levels of the formula.
    """

    name: str
    primitives: PrimitiveSet
    max_size: int
    max_depth: int


@dataclass(frozen=True)
class SlottedSet(PrimitiveSet):
    """The primitive set of individuals with slots.

    Its features are the arguments of all slots, its functions those of all slots and the root.

    Parameters
    ----------
    functions : tuple of Primitive
    features : tuple of str
    slots : tuple of Slot
    numbers : tuple of float
        The numbers of a new individual.
    """

    slots: tuple[Slot, ...] = ()
    numbers: tuple[float, ...] = ()

    @classmethod
    def of(cls, slots: Sequence[Slot], numbers: Sequence[float] = ()) -> Self:
        """The set of some slots and numbers.

        Raises
        ------
        ValueError
            If two slots have different functions of one name.
        """
        functions: dict[str, Primitive] = {}
        for slot in slots:
            for function in slot.primitives.functions:
                if functions.setdefault(function.name, function) != function:
                    raise ValueError(f"two slots have different functions called {function.name!r}; rename one")
        root = Primitive(ROOT, len(slots) + len(numbers))
        features = (f"{slot.name}.{name}" for slot in slots for name in slot.primitives.features)
        return cls((*functions.values(), root), tuple(features), tuple(slots), tuple(map(float, numbers)))

    @property
    def root(self) -> int:
        """Code of the root."""
        return len(self.arities) - 1

    @property
    def frame(self) -> int:
        """Nodes of each individual that belong to no formula: the numbers and the root."""
        return len(self.numbers) + 1

    @property
    def width(self) -> int:
        """Most nodes of an individual."""
        return sum(slot.max_size for slot in self.slots) + self.frame

    @property
    def start(self) -> Floats:
        """The numbers of a new individual, shape (n_numbers,)."""
        return np.array(self.numbers, np.float64)

    @cached_property
    def codes_of_slots(self) -> tuple[Codes, ...]:
        """Code in this set of each code of a slot's own set, for each slot."""
        found, first = [], 1
        for slot in self.slots:
            own = slot.primitives
            features = range(first, first + len(own.features))
            functions = (self.function_codes[function.name] for function in own.functions)
            found.append(np.array([0, *features, *functions], np.int16))
            first += len(own.features)
        return tuple(found)


def ends_of_slots(population: Population) -> Indices:
    """Last position of each slot's formula on each tape, shape (n_individuals, n_slots), int64.

    The primitive set of the population is a `SlottedSet`.
    """
    primitives = population.primitives
    assert isinstance(primitives, SlottedSet)
    # Below the numbers, each formula ends before the one that follows begins.
    sizes, end = Subtrees.of(population).sizes, population.sizes - primitives.frame - 1
    ends = np.empty((len(population), len(primitives.slots)), np.int64)
    for slot in reversed(range(len(primitives.slots))):
        ends[:, slot] = end
        end = end - sizes[np.arange(len(population)), end]
    return ends


def width_of(primitives: PrimitiveSet, max_size: int) -> int:
    """Width of the populations of a run: most nodes of an individual."""
    return primitives.width if isinstance(primitives, SlottedSet) else max_size


def formula_limits(primitives: PrimitiveSet, max_size: int, max_depth: int) -> tuple[Indices, Indices]:
    """Most nodes, and most levels, of each formula of an individual, both of shape (n_formulas,)."""
    if not isinstance(primitives, SlottedSet):
        return np.array([max_size]), np.array([max_depth])
    slots = primitives.slots
    return np.array([slot.max_size for slot in slots]), np.array([slot.max_depth for slot in slots])


def formula_sizes(population: Population) -> Indices:
    """Nodes of each formula of each individual, shape (n_individuals, n_formulas), int64."""
    if not isinstance(population.primitives, SlottedSet):
        return population.sizes[:, None]
    return np.diff(ends_of_slots(population), prepend=-1, axis=1)


def formula_depths(population: Population) -> Indices:
    """Levels of each formula of each individual, shape (n_individuals, n_formulas), int64."""
    slotted = isinstance(population.primitives, SlottedSet)
    ends = ends_of_slots(population) if slotted else population.sizes[:, None] - 1
    return np.take_along_axis(Subtrees.of(population).depths, ends, axis=1).astype(np.int64)


def excess(population: Population, max_size: int, max_depth: int) -> tuple[int, str] | None:
    """The individual that exceeds a limit of the run most, and by what, in words; None if all keep the limits."""
    most_nodes, most_levels = formula_limits(population.primitives, max_size, max_depth)
    for unit, setting, limits, found in (
        ("nodes", "max_size", most_nodes, formula_sizes(population)),
        ("levels", "max_depth", most_levels, formula_depths(population)),
    ):
        if not len(limits):
            continue
        worst, formula = divmod(int(np.argmax(found - limits)), found.shape[1])
        if found[worst, formula] > limits[formula]:
            return worst, f"has {found[worst, formula]} {unit}, and {setting} is {limits[formula]}; raise {setting}"
    return None


def at_width(population: Population, width: int) -> Population:
    """A population with room for `width` nodes; no individual may be larger."""
    if width == population.width:
        return population
    codes, values = np.zeros((len(population), width), np.int16), np.zeros((len(population), width))
    shared = min(width, population.width)
    codes[:, :shared], values[:, :shared] = population.codes[:, :shared], population.values[:, :shared]
    return Population(codes, values, population.sizes, population.primitives)
