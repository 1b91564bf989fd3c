"""Planes that the states stay on: sums that are constant along the runs, so that other equations fit them as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.lang.parse import parse
from shine.search.dynamics.conserved import LEAST_REST, SMALL, dependences, sum_text
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model


@dataclass(frozen=True)
class Plane:
    """A sum of states that is constant along the runs.

    Parameters
    ----------
    weights : mapping of str to float
        Of the states in it; the first is 1.
    value : float
    """

    weights: Mapping[str, float]
    value: float

    def __str__(self) -> str:
        total = sum_text(list(self.weights), np.array(list(self.weights.values())))
        return f"{total} is {self.value:.4g} along these runs"

    def others(self, system: SystemModel) -> Iterator[tuple[Model, ...]]:
        """The equations with each state of the plane written by its others."""
        for name, own in self.weights.items():
            terms = [f"{-weight / own!r}*{other}" for other, weight in self.weights.items() if other != name]
            text = " + ".join([repr(self.value / own), *terms])
            given = _Written(name, ast.parse(text, mode="eval").body)
            trees = []
            for tree in system.trees:
                written = ast.unparse(given.visit(ast.parse(str(tree), mode="eval")))
                trees.append(parse(written, tree.parameters) if name in tree.used_parameters else tree)
            if trees != list(system.trees):
                yield tuple(replace(model, tree=tree) for model, tree in zip(system.equations, trees, strict=True))


class _Written(ast.NodeTransformer):
    """Puts an expression in the place of a name."""

    def __init__(self, name: str, expression: ast.expr) -> None:
        self.name, self.expression = name, expression

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expression if node.id == self.name else node


def planes_of(states: Floats, names: Sequence[str]) -> list[Plane]:
    """The planes that states, shape (n_times, n_states), stay on to within rounding, without fixed states."""
    means = np.add.reduce(states) / len(states)
    lengths = np.sqrt(np.add.reduce((states - means) ** 2))
    moving = np.flatnonzero(lengths > LEAST_REST * np.abs(states).max(axis=0, initial=0.0))
    found = []
    for _, shares in dependences((states[:, moving] - means[moving]) / lengths[moving], LEAST_REST):
        kept = np.flatnonzero(np.abs(shares) > SMALL * np.abs(shares).max())
        weights = (shares / lengths[moving])[kept]
        weights = np.array([float(f"{weight:.9g}") for weight in weights / weights[0]])
        value = float(np.add.reduce(weights * means[moving[kept]]))
        own = {names[moving[place]]: weight for place, weight in zip(kept, weights.tolist(), strict=True)}
        found.append(Plane(own, float(f"{value:.9g}")))
    return found
