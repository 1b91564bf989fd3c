"""Common factors of extreme size, taken out of individuals: a scale belongs to the line, not to the formula.

Constants that multiply a whole individual may drift to any size, because its line makes up for them. They are divided
by powers of two, so that no bit of a mantissa changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.base.typing import Codes, Floats
from shine.compiler.tapes import Subtrees
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population

ORDINARY = 2.0**64
"""Factors up to this, 2e19, and down to its inverse stay: most constants of nature, and squares of numbers."""


def without_common_factors(population: Population) -> Population:
    """The individuals with factors beyond `ORDINARY` divided by powers of two; the same object if there is none."""
    sizes = np.abs(population.values)
    extreme = (sizes > ORDINARY) | ((sizes < 1 / ORDINARY) & (sizes > 0))
    rows = np.flatnonzero((extreme & population.constants & np.isfinite(sizes)).any(axis=1))
    if not len(rows):
        return population
    some, values = population.take(rows), population.values.copy()
    subtrees, functions = Subtrees.of(some).sizes, {code: name for name, code in some.primitives.function_codes.items()}
    for place, row in enumerate(rows.tolist()):
        length = int(some.sizes[place])
        factors = _Factors(some.codes[place, :length], values[row, :length], subtrees[place], functions)
        factors.divide(length - 1, factors.exponents[length - 1])
    return replace(population, values=values)


class _Factors:
    """The power of two that each subtree of a tape can give away, and has of its own to give.

    Attributes
    ----------
    exponents : list of int
        Exponent of the factor of each subtree; 0 if it is ordinary.
    """

    def __init__(self, codes: Codes, values: Floats, subtrees: Floats, functions: dict[int, str]) -> None:
        self._kinds = [functions.get(code, "constant" if code == CONSTANT else "feature") for code in codes.tolist()]
        self._values, self._subtrees = values, subtrees.tolist()
        self.exponents = [0] * len(codes)
        self._gives = [False] * len(codes)
        for at, kind in enumerate(self._kinds):
            if kind == "constant":
                size = abs(float(values[at]))
                self._gives[at] = True
                if np.isfinite(size) and size > 0 and not 1 / ORDINARY <= size <= ORDINARY:
                    self.exponents[at] = int(np.frexp(size)[1]) - 1
            elif kind in ("mul", "div"):
                left, right = self._arguments(at)
                self._gives[at] = self._gives[left] or self._gives[right]
                self.exponents[at] = self._of_factors(kind, left, right)
            elif kind in ("add", "sub"):
                left, right = self._arguments(at)
                self._gives[at] = self._gives[left] and self._gives[right]
                own = sorted((self.exponents[left], self.exponents[right]), key=abs)
                self.exponents[at] = own[0] if self._gives[at] and own[0] * own[1] > 0 else 0
            elif kind == "neg":
                self._gives[at], self.exponents[at] = self._gives[at - 1], self.exponents[at - 1]

    def divide(self, at: int, exponent: int) -> None:
        """Divide the subtree that ends at a position by a power of two, as far as it can be divided."""
        waiting = [(at, exponent)]
        while waiting:
            at, exponent = waiting.pop()
            kind = self._kinds[at]
            if kind == "constant":
                self._values[at] = np.ldexp(self._values[at], -exponent)
            elif kind == "neg":
                waiting.append((at - 1, exponent))
            elif kind in ("mul", "div"):
                left, right = self._arguments(at)
                if exponent == self._of_factors(kind, left, right):
                    waiting += [(left, self.exponents[left]), (right, self.exponents[right])]
                elif self._gives[left]:
                    waiting.append((left, exponent))
                else:
                    waiting.append((right, exponent if kind == "mul" else -exponent))
            elif kind in ("add", "sub") and self._gives[at]:
                waiting += [(each, exponent) for each in self._arguments(at)]

    def _arguments(self, at: int) -> tuple[int, int]:
        """Positions of the two arguments of a function."""
        return at - 1 - self._subtrees[at - 1], at - 1

    def _of_factors(self, kind: str, left: int, right: int) -> int:
        """Exponent of a product or quotient."""
        own, other = self.exponents[left], self.exponents[right]
        return own + other if kind == "mul" else own - other
