"""Reduce phases of periodic functions: a fit may end at ``sin(x - 19.85)``, which is ``sin(x - 1)``."""

from __future__ import annotations

import math
from dataclasses import replace

from shine.lang.forms.facts import FACTS
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population
from shine.lang.subtrees import Subtrees

PERIODS = {name: facts.period for name, facts in FACTS.items() if facts.period is not None}
"""Period of each periodic function."""


def reduced_phases(population: Population) -> Population:
    """The individuals, with every constant added inside a periodic function reduced to within half a period of 0.

    Values change by rounding only. The individuals are processed one by one: fronts are small.
    """
    codes, values = population.codes, population.values.copy()
    known = population.primitives.function_codes
    periods = {known[name]: period for name, period in PERIODS.items() if name in known}
    sums = {known[name] for name in ("add", "sub") if name in known}
    sizes = Subtrees.of(population).sizes
    for individual, size in enumerate(population.sizes.tolist()):
        for position in range(size):
            period = periods.get(int(codes[individual, position]))
            if period is None:
                continue
            terms = [position - 1]
            while terms:
                term = terms.pop()
                if codes[individual, term] in sums:
                    terms += [term - 1, term - 1 - int(sizes[individual, term - 1])]
                elif codes[individual, term] == CONSTANT:
                    values[individual, term] = math.remainder(values[individual, term], period)
    return replace(population, values=values)
