"""A template bound to data: what its individuals are, and their formulas over the columns of the data."""

from __future__ import annotations

from dataclasses import dataclass

from shine.gp.slots import SlottedSet
from shine.lang.lazy import cached_property
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.template.template import Parameter, Template
from shine.typing import Floats, Indices, Mask


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

    def composed(self, population: Population) -> tuple[Composed, ...]:
        """The formulas of individuals, one `Composed` for each output."""
        raise NotImplementedError
