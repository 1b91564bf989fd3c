"""Templates without a search: formulas over columns and parameters, given as text, as individuals of a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import functions_of, tape_from_tree
from shine.lang.forms.tree import Primitive
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.search.templates.composition import Composed
from shine.search.templates.template import Parameter, Template


@dataclass(frozen=True)
class TextComposer:
    """Individuals are complete formulas; a parameter is a name in them.

    An individual's own tape is its number, as a feature, then the constants of its formulas, then the leaves of the
    parameters, then a root.
    """

    formulas: Sequence[Sequence[str]]
    parameters: tuple[Parameter, ...]
    features: tuple[str, ...]
    n_groups: int = 0
    groups: str | None = None

    @property
    def template(self):
        outputs = tuple(parse("1", ()) for _ in self.formulas[0])
        return Template((), self.parameters, outputs, calls={}, groups=self.groups)

    @property
    def counts(self):
        return tuple(self.n_groups if each.by_group else 1 for each in self.parameters)

    @property
    def offsets(self):
        return tuple(sum(self.counts[:j]) for j in range(len(self.counts)))

    @property
    def n_leaves(self):
        return sum(self.counts)

    @property
    def _names(self):
        return (*self.features, *(each.name for each in self.parameters))

    @property
    def _primitives(self):
        trees = [parse(text, self._names) for texts in self.formulas for text in texts]
        used = {name for tree in trees for name in functions_of(tree)}
        return PrimitiveSet(tuple(STANDARD[name] for name in sorted(used)), self._names)

    def _tapes(self, index):
        return [tape_from_tree(parse(text, self._names), self._primitives) for text in self.formulas[index]]

    def population(self, starts: Sequence[float] | None = None) -> Population:
        """All formulas, as individuals with the constants of the texts; parameters start from 1, or as given."""
        leaves = np.ones(self.n_leaves) if starts is None else np.array(starts, float)
        rows = []
        for index in range(len(self.formulas)):
            own = [tape.values[tape.codes == CONSTANT] for tape in self._tapes(index)]
            rows.append(np.concatenate([[np.nan], *own, leaves, [0.0]]))
        sizes = np.array([len(row) for row in rows])
        width = sizes.max()
        codes, values = np.zeros((len(rows), width), np.int16), np.zeros((len(rows), width))
        for i, row in enumerate(rows):
            values[i, : len(row)] = np.nan_to_num(row)
            codes[i, 0], codes[i, len(row) - 1] = 1 + i, 1 + len(rows)
        primitives = PrimitiveSet((Primitive("root", 1),), tuple(f"formula{i}" for i in range(len(rows))))
        return Population(codes, values, sizes, primitives)

    def composed(self, population: Population) -> tuple[Composed, ...]:
        found = [[] for _ in self.formulas[0]]
        for i in range(len(population)):
            first, place = int(population.sizes[i]) - 1 - self.n_leaves, 1
            for output, tape in enumerate(self._tapes(int(population.codes[i, 0]) - 1)):
                codes, values = tape.codes.copy(), tape.values.copy()
                sources, grouped = np.full(len(codes), -1), np.zeros(len(codes), bool)
                for cell, code in enumerate(tape.codes.tolist()):
                    number = code - 1 - len(self.features)
                    if code == CONSTANT:
                        sources[cell], place = place, place + 1
                    elif 0 <= number < len(self.parameters):
                        codes[cell], sources[cell] = CONSTANT, first + self.offsets[number]
                        grouped[cell] = self.parameters[number].by_group
                    elif number >= 0:
                        codes[cell] -= len(self.parameters)
                    if sources[cell] >= 0:
                        values[cell] = population.values[i, sources[cell]]
                found[output].append((codes, values, sources, grouped))
        return tuple(self._stacked(each) for each in found)

    def _stacked(self, tapes) -> Composed:
        sizes = np.array([len(each[0]) for each in tapes])
        width = sizes.max(initial=1)
        blank = (np.zeros(0, np.int16), np.zeros(0), np.full(0, -1), np.zeros(0, bool))
        padded = []
        for k, fill in enumerate((0, 0.0, -1, False)):
            rows = np.full((len(tapes), width), fill, blank[k].dtype)
            for i, each in enumerate(tapes):
                rows[i, : len(each[k])] = each[k]
            padded.append(rows)
        primitives = PrimitiveSet(self._primitives.functions, self.features)
        return Composed(Population(padded[0], padded[1], sizes, primitives), padded[2], padded[3])


def grouped_rows(
    columns: Mapping[str, np.ndarray], target: np.ndarray, weights: np.ndarray | None = None, loss_columns=None
) -> Dataset:
    """A data set of named columns."""
    table = np.column_stack(list(columns.values()))
    return Dataset.from_arrays(table, target, sample_weight=weights, features=list(columns), loss_columns=loss_columns)
