"""Shorter forms of an equation: those that have an operand less."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shine.base.typing import Codes, Floats
from shine.compiler.arrays import COMPILED
from shine.compiler.tapes import Subtrees
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.finishing.polishing import population_of

NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0}
"""Operations, and the operand that changes nothing; the second one of a difference."""


def without_an_operand(tree: Tree) -> list[Tree]:
    """The formulas that have an operand less of a sum, a difference or a product, the largest left out first.

    A negative factor becomes -1.
    """
    functions = select({**STANDARD, **tree.functions}, sorted(functions_of(tree)))
    population = population_of([tree], PrimitiveSet(functions, tree.parameters))
    tapes = (tree_from_tape(*each, population.primitives) for each in _without_an_operand(population))
    # Sorted terms are shorter, or else expanded.
    forms = ([simplify(each, rounding=rounding, functions=COMPILED) for rounding in (True, False)] for each in tapes)
    found = [min(each, key=lambda form: form.size) for each in forms]
    return [each for each in dict.fromkeys(found) if each.size < tree.size]


def _without_an_operand(population: Population) -> Iterator[tuple[Codes, Floats]]:
    """Tapes of a formula with an operand of a sum, a difference or a product left out, the largest first."""
    codes, values = population.codes[0], population.values[0]
    names = {code: name for name, code in population.primitives.function_codes.items()}
    sizes, count = Subtrees.of(population).sizes[0].tolist(), int(population.sizes[0])
    found: list[tuple[int, int, float]] = []
    for root in range(count):
        neutral = NEUTRAL.get(names.get(int(codes[root]), ""))
        if neutral is not None:
            second = root - 1
            first = second - sizes[second]
            found.append((sizes[second], second, neutral))
            found.append((sizes[first], first, neutral))
    for size, end, neutral in sorted(found, key=lambda each: -each[0]):
        neutral = math.copysign(neutral, values[end]) if codes[end] == CONSTANT and neutral else neutral
        if codes[end] != CONSTANT or values[end] != neutral:
            begin = end + 1 - size
            yield (
                np.concatenate([codes[:begin], [CONSTANT], codes[end + 1 : count]]),
                np.concatenate([values[:begin], [neutral], values[end + 1 : count]]),
            )
