"""Ranges of the arguments of a template's unknown functions, over all of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.meaning.interpret import evaluate_tape
from shine.lang.simplify.terms import Range
from shine.search.templates.body import Call, Expression
from shine.search.templates.composition import Composition
from shine.search.templates.law import Groups


def ranges_of_arguments(
    composition: Composition, rows: Dataset, groups: Groups | None
) -> tuple[Mapping[str, Range], ...]:
    """The least and the greatest value of arguments, by name, of each unknown function.

    Arguments that depend on fitted parameters, on unknown functions, or on the column of groups are left out.

    Parameters
    ----------
    composition : Composition
    rows : Dataset
        All rows, with numbers of groups.
    groups : Groups, optional
        Formulas read the values of their column, which are not those in the rows.
    """
    found: list[dict[str, Range]] = []
    calls = list(chain.from_iterable(map(_calls, composition.plans)))
    # Other calls often have the same argument, and its values are those of all rows.
    known: dict[Expression, Range | None] = {}
    for number, slot in enumerate(composition.genome.slots):
        own = [call.arguments for call in calls if call.slot == number]
        ranges: dict[str, Range] = {}
        for name, expressions in zip(slot.primitives.features, zip(*own, strict=True), strict=False):
            for expression in expressions:
                if expression not in known:
                    known[expression] = _range(expression, composition, rows, groups)
            ends = [known[expression] for expression in expressions]
            inside = [each for each in ends if each is not None]
            if len(inside) == len(ends):
                ranges[name] = min(low for low, _ in inside), max(high for _, high in inside)
        found.append(ranges)
    return tuple(found)


def _calls(expression: Expression) -> Iterator[Call]:
    """The calls of unknown functions in an expression, those in arguments of others too."""
    for part in expression:
        if isinstance(part, Call):
            yield part
            for argument in part.arguments:
                yield from _calls(argument)


def _range(expression: Expression, composition: Composition, rows: Dataset, groups: Groups | None) -> Range | None:
    """The range of an argument; None if it is not known."""
    if len(expression) != 1:
        return None
    (known,) = expression
    if isinstance(known, Call) or any(leaf >= 0 for leaf in known.leaves):
        return None
    features = composition.features
    used = {features[code - 1] for code in known.codes if 1 <= code <= len(features)}
    if groups is not None and groups.column in used:
        return None
    if len(known.codes) == 1 and used:
        ends = rows.ranges.get(used.pop(), (np.nan, np.nan))
    elif rows.all_rows is None and rows.known_ranges is None:
        codes, values = np.array(known.codes, np.int16), np.array([float(value) for value in known.values])
        result = evaluate_tape(codes, values, composition.primitives, list(rows.columns), COMPILED)
        ends = float(result.min()), float(result.max())
    else:  # these are some of the rows, and others may have other values
        return None
    return ends if np.isfinite(ends).all() else None
