"""Formulas of an earlier front as guesses for the next search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.subtrees import depths
from shine.lang.vocabulary import PrimitiveSource, primitive_table
from shine.search.problem.lines import without_line


def guesses_within(
    trees: Iterable[Tree],
    features: Sequence[str],
    primitives: Sequence[PrimitiveSource],
    max_size: int,
    max_depth: int,
    linear_scaling: bool,
) -> Iterator[Tree]:
    """The formulas that a search can start from: they use its features and primitives, and keep its limits.

    Parameters
    ----------
    trees : iterable of Tree
    features : sequence of str
    primitives : sequence of str, function or Primitive
    max_size, max_depth : int
    linear_scaling : bool
        Whether the search adds a slope and an intercept to formulas; then those of the trees are removed.
    """
    table, names = primitive_table(primitives)
    primitive_set = PrimitiveSet(select(table, names), tuple(features))
    for tree in trees:
        bare = without_line(tree) if linear_scaling else tree
        if bare.parameters == primitive_set.features and functions_of(bare) <= set(names):
            population = Population.from_trees([bare], primitive_set)
            if population.sizes[0] <= max_size and depths(population)[0] <= max_depth:
                yield bare
