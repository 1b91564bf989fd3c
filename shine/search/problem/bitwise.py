"""Warn of primitives such as `operator.xor`, which have values for 0 and 1 only, where no column holds these."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.names import listed
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive
from shine.lang.meaning.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.python.known import BOOLEAN

_ROWS = 1000
"""Most rows that primitives are tried on."""

_STARTS = 20
"""Most columns that are the first argument."""


def warn_of_bitwise(functions: Sequence[Primitive], dataset: Dataset) -> None:
    """Warn of bitwise primitives, and functions that call them, whose arguments can hardly be truth values.

    That is so if no column is one of 0 and 1, and no other primitive makes 0 and 1 of the columns.
    """
    suspects = [each for each in functions if _is_bitwise(each)]
    columns = list(dataset.columns[:, :_ROWS])
    if not suspects or any(_are_truths(column) for column in columns):
        return
    others = [each for each in functions if each not in suspects]
    if any(_are_truths(values) for each in others for values in _tried(each, columns)):
        return
    empty = [each.name for each in suspects if not any(np.isfinite(values).all() for values in _tried(each, columns))]
    if empty:
        are, have = ("is", "has") if len(empty) == 1 else ("are", "have")
        warnings.warn(
            f"{listed(empty)} {are} defined for 0 and 1 only and {have} no value for other numbers; no column holds "
            "only 0 and 1, and no primitive, such as a comparison, makes them: add one, or leave out "
            f"{'it' if len(empty) == 1 else 'them'}",
            UserWarning,
            stacklevel=2,
        )


def _is_bitwise(primitive: Primitive) -> bool:
    """Whether a primitive is bitwise, or calls one that is."""
    own = primitive.definition
    within = () if own is None else (own.functions[name] for name in functions_of(own) if name in own.functions)
    return primitive.name in BOOLEAN or any(_is_bitwise(each) for each in within)


def _are_truths(values: Floats) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def _tried(primitive: Primitive, columns: Sequence[Floats]) -> list[Floats]:
    """Values of a primitive of neighbouring columns."""
    names = [f"x{place}" for place in range(primitive.arity)]
    tree = parse(f"{primitive.name}({', '.join(names)})", names, {primitive.name: primitive})
    starts = range(min(len(columns), _STARTS))
    return [
        evaluate(tree, [columns[(start + place) % len(columns)] for place in range(primitive.arity)])
        for start in starts
    ]
