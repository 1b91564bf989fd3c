"""A population: many tapes in one struct of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from shine.base.lazy import cached_property
from shine.base.typing import Codes, Floats, Indices, Mask
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import Tape, functions_of, tape_from_tree, tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.growth import Terminals, grown_tapes
from shine.lang.parse import Source, natural_order, parse
from shine.lang.vocabulary import PrimitiveSource, primitive_table

_LOOKED_AT = 1 << 12
"""Individuals checked at a time, to save memory."""


@dataclass(frozen=True, eq=False)
class Population:
    """Individuals of one primitive set, their tapes padded to a common width.

    Parameters
    ----------
    codes : ndarray of shape (n_individuals, width), int16
        Codes of `primitives` in postfix order: 0 is a constant, 1, 2, ... are the features, the functions follow. Cells
        after the end of a tape are 0.
    values : ndarray of shape (n_individuals, width), float64
        Values of the constants; 0 elsewhere.
    sizes : ndarray of shape (n_individuals,), int64
        Number of nodes of each individual.
    primitives : PrimitiveSet
    """

    codes: Codes
    values: Floats
    sizes: Indices
    primitives: PrimitiveSet

    @classmethod
    def from_tapes(cls, tapes: Sequence[Tape], primitives: PrimitiveSet, width: int | None = None) -> Self:
        """Population of given tapes. `width` reserves room for longer tapes."""
        sizes = np.array([len(tape.codes) for tape in tapes], dtype=np.int64)
        width = max([width or 0, *sizes.tolist()])
        codes = np.zeros((len(tapes), width), dtype=np.int16)
        values = np.zeros((len(tapes), width), dtype=np.float64)
        for i, tape in enumerate(tapes):
            codes[i, : len(tape.codes)] = tape.codes
            values[i, : len(tape.codes)] = tape.values
        return cls(codes, values, sizes, primitives)

    @classmethod
    def from_sources(
        cls,
        sources: Sequence[Source],
        features: Sequence[str] | None = None,
        primitives: Sequence[str | Callable[..., object]] = (),
    ) -> Self:
        """Population of given formulas.

        Parameters
        ----------
        sources : sequence of str, function, ast node or Tree
        features : sequence of str, optional
            Names of the columns, in their order. The default is all names in the formulas, in natural order.
        primitives : sequence of str or function
            Further functions of the primitive set, in addition to those in the formulas.

        Raises
        ------
        UnsupportedSyntaxError
            If a formula is not part of the language, or uses a name other than the features.

        Examples
        --------
        >>> Population.from_sources(["x0*x1 + 1", "sqrt(x0)"], features=("x0", "x1")).sizes.tolist()
        [5, 2]
        """
        table, extra = primitive_table(primitives)
        trees = [parse(source, features, table) for source in sources]
        if features is None:
            features = sorted({name for tree in trees for name in tree.parameters}, key=natural_order)
        used = {name for tree in trees for name in functions_of(tree)}
        names = list(dict.fromkeys([*extra, *(name for name in table if name in used)]))
        return cls.from_trees(trees, PrimitiveSet(select(table, names), tuple(features)))

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], primitives: PrimitiveSet, width: int | None = None) -> Self:
        """Population of given trees."""
        return cls.from_tapes([tape_from_tree(tree, primitives) for tree in trees], primitives, width)

    @classmethod
    def random(
        cls,
        count: int,
        primitives: Sequence[PrimitiveSource] = ("add", "sub", "mul", "div"),
        features: int | Sequence[str] = 1,
        max_size: int = 30,
        rng: np.random.Generator | None = None,
        *,
        max_depth: int = 1000,
        constant_share: float = 0.3,
    ) -> Self:
        """Random individuals, their sizes drawn uniformly from 1 to `max_size` (PTC2, Luke 2000).

        Parameters
        ----------
        count : int
        primitives : sequence of str, function or Primitive
            Names of Shine's primitives, plain Python functions in the restricted language, or results of
            `shine.primitive_from_llvm`.
        features : int or sequence of str
            Number of columns, called ``x0, x1, ...``; or their names.
        max_size, max_depth : int
            Limits in nodes and levels; they always hold.
        rng : numpy.random.Generator, optional
            A fresh one, not reproducible, by default.
        constant_share : float
            Share of leaves that are constants, drawn from -5 to 5.

        Raises
        ------
        ValueError
            If a primitive is unknown, `count` is negative, or a limit is less than 1.
        """
        if count < 0 or max_size < 1 or max_depth < 1:
            raise ValueError("count must be at least 0, max_size and max_depth at least 1")
        table, names = primitive_table(primitives)
        columns = tuple(f"x{i}" for i in range(features)) if isinstance(features, int) else tuple(features)
        primitive_set = PrimitiveSet(select(table, names), columns)
        generator = np.random.default_rng() if rng is None else rng
        targets, depths = generator.integers(1, max_size + 1, count), np.full(count, max_depth)
        terminals = Terminals((-5.0, 5.0), constant_share)
        tapes = grown_tapes(primitive_set, max_size, targets, depths, terminals, generator)
        return cls(*tapes, primitive_set)

    @classmethod
    def concatenate(cls, populations: Sequence[Self]) -> Self:
        """Join populations of the same primitive set and width, in order."""
        first, *others = populations
        if not others:
            return first
        return cls(
            np.concatenate([p.codes for p in populations]),
            np.concatenate([p.values for p in populations]),
            np.concatenate([p.sizes for p in populations]),
            first.primitives,
        )

    @cached_property
    def is_valid(self) -> bool:
        """Whether every tape is one formula in postfix order of known codes; checked once for each population.

        Shine's own populations are valid. The machine does not check tapes, so check any other populations.
        """
        individuals, width = self.codes.shape
        if self.values.shape != self.codes.shape or self.sizes.shape != (individuals,):
            return False
        if (self.sizes < 1).any() or (self.sizes > width).any():
            return False
        parts = (slice(start, start + _LOOKED_AT) for start in range(0, individuals, _LOOKED_AT))
        return all(_well_formed(self.codes[part], self.sizes[part], self.primitives.arities) for part in parts)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Greatest number of nodes that an individual has room for."""
        return int(self.codes.shape[1])

    @property
    def constants(self) -> Mask:
        """Which cells are constants, shape (n_individuals, width)."""
        return np.asarray((self.codes == CONSTANT) & (np.arange(self.width) < self.sizes[:, None]))

    def take(self, indices: ArrayLike) -> Population:
        """The individuals with given indices, or those that a mask selects."""
        at = np.asarray(indices)
        at = np.flatnonzero(at) if at.dtype == np.bool_ else at  # NumPy takes rows faster by indices
        return Population(
            self.codes.take(at, axis=0), self.values.take(at, axis=0), self.sizes.take(at), self.primitives
        )

    def tape(self, index: int) -> Tape:
        """One individual's tape."""
        size = self.sizes[index]
        return Tape(self.codes[index, :size], self.values[index, :size])

    def tree(self, index: int) -> Tree:
        """One individual's tree."""
        tape = self.tape(index)
        return tree_from_tape(tape.codes, tape.values, self.primitives)


def _well_formed(codes: Codes, sizes: Indices, arities: Indices) -> bool:
    """Whether each tape is one formula, for sizes between 1 and the width."""
    inside = np.arange(codes.shape[1]) < sizes[:, None]
    known = np.where(inside, codes, 0)
    if (known < 0).any() or (known >= len(arities)).any():
        return False
    heights = np.cumsum(np.where(inside, 1 - arities[known], 0), axis=1)
    # The operands of a function must be on the stack: the height below it is the height after it, minus one.
    return bool((heights >= 1).all() and (heights[:, -1] == 1).all())
