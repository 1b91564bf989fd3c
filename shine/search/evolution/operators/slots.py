"""Individuals of several formulas: a tape with one formula in each slot, and then numbers that belong to none.

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
