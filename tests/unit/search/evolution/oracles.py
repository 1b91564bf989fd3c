"""Plain recursive definitions to compare the array code with, and small populations."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population
from shine.search.evolution import evolution
from shine.search.evolution.evolution import Start
from shine.search.evolution.observers import Observers
from shine.search.evolution.scoring import Scoring
from shine.search.seeding import Slices

ARITIES = {"neg": 1, "sqrt": 1, "add": 2, "mul": 2, "where": 3}


NO_VARIATION = dict.fromkeys(
    (
        "crossover",
        "subtree_mutation",
        "hoist_mutation",
        "point_mutation",
        "constant_mutation",
        "coefficient_mutation",
    ),
    0.0,
)
"""The shares of offspring that a run can rely on (there may be no useful parts), all 0."""


def primitive_set(functions: str = "neg add mul where", features: str = "x y") -> PrimitiveSet:
    """A primitive set by names."""
    return PrimitiveSet(tuple(Primitive(name, ARITIES[name]) for name in functions.split()), tuple(features.split()))


@dataclass
class Node:
    """A node of a tree, with its position on the tape."""

    position: int
    arguments: list[Node]

    @property
    def size(self) -> int:
        return 1 + sum(argument.size for argument in self.arguments)

    @property
    def depth(self) -> int:
        return 1 + max((argument.depth for argument in self.arguments), default=0)

    def with_levels(self, level: int = 0) -> list[tuple[Node, int]]:
        """This node and all below it, each with its distance from the root."""
        below = [pair for argument in self.arguments for pair in argument.with_levels(level + 1)]
        return [(self, level), *below]


def tree_of(population: Population, index: int) -> Node:
    """One individual as nodes; fails if it is not one formula."""
    stack: list[Node] = []
    for position in range(int(population.sizes[index])):
        code = int(population.codes[index, position])
        arity = int(population.primitives.arities[code])
        assert len(stack) >= arity
        arguments = stack[len(stack) - arity :]
        del stack[len(stack) - arity :]
        stack.append(Node(position, arguments))
    assert len(stack) == 1
    return stack[0]


def assert_valid(population: Population, max_size: int, max_depth: int) -> None:
    """Every individual is one formula within the limits, and all cells behind it are 0."""
    assert population.codes.shape == population.values.shape == (len(population), max_size)
    assert population.codes.dtype == np.int16
    assert population.values.dtype == np.float64
    assert (population.sizes >= 1).all() and (population.sizes <= max_size).all()
    behind = np.arange(max_size) >= population.sizes[:, None]
    assert not population.codes[behind].any()
    assert not population.values[behind | (population.codes != 0)].any()
    for index in range(len(population)):
        assert tree_of(population, index).depth <= max_depth


def assert_same(one: Population, other: Population) -> None:
    """Two populations are equal bit for bit."""
    assert np.array_equal(one.codes, other.codes)
    assert np.array_equal(one.values.view(np.int64), other.values.view(np.int64))
    assert np.array_equal(one.sizes, other.sizes)


def population_of(texts: list[str], primitives: PrimitiveSet, width: int) -> Population:
    """Individuals written in postfix: names of features and functions, and numbers."""
    known = {**primitives.feature_codes, **primitives.function_codes}
    codes, values = np.zeros((len(texts), width), np.int16), np.zeros((len(texts), width))
    for row, text in enumerate(texts):
        for position, word in enumerate(text.split()):
            if word in known:
                codes[row, position] = known[word]
            else:
                values[row, position] = float(word)
    return Population(codes, values, np.array([len(text.split()) for text in texts], np.int64), primitives)


def scores_of(losses: list[float]) -> Scores:
    """Scores with given losses, and distinct slopes and intercepts."""
    n = len(losses)
    return Scores(np.array(losses, float), np.arange(n) + 10.0, np.arange(n) + 20.0)


def scores_without_lines(losses: Sequence[float]) -> Scores:
    """Scores with given losses; the individuals have neither slope nor intercept."""
    n = len(losses)
    return Scores(np.array(losses, float), np.ones(n), np.zeros(n))


class NodeCounter:
    """An evaluator whose loss is the distance from the count of one code to a goal; `seen` keeps the populations."""

    def __init__(self, code: int, goal: int) -> None:
        self.code, self.goal = code, goal
        self.seen: list[Population] = []

    def score(self, population: Population) -> Scores:
        self.seen.append(population)
        inside = np.arange(population.width) < population.sizes[:, None]
        counts = ((population.codes == self.code) & inside).sum(axis=1)
        losses = np.abs(counts - self.goal).astype(np.float64)
        return Scores(losses, np.ones(len(population)), np.zeros(len(population)))


class Mortal(NodeCounter):
    """Kills its process at random moments, as long as there are files in a folder; never that of the test."""

    def __init__(self, code, folder):
        super().__init__(code, 50)
        self.folder, self.parent = str(folder), os.getpid()

    def score(self, population):
        if os.getpid() != self.parent and random.SystemRandom().random() < 0.06:
            for name in os.listdir(self.folder)[:1]:
                with contextlib.suppress(FileNotFoundError):  # another worker took it
                    os.remove(os.path.join(self.folder, name))
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().score(population)


def evolve(evaluator, primitives, settings, stop, rng, *, guesses=None, seeding=None, **options):
    """An evolution from its parts: those of `Scoring`, `Start` and `Observers` by name."""
    own = {name: options.pop(name) for name in ("fitter", "description") if name in options}
    start = Start(primitives, guesses, None if seeding is None else Slices(seeding))
    return evolution.evolve(Scoring(evaluator, **own), start, settings, stop, rng, Observers(**options))
