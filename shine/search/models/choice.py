"""The choice of the formula to recommend, and its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices
from shine.lang.forms.tree import Tree
from shine.lang.numerals import cost_as_written
from shine.search.description import NATS_A_NODE, DescriptionLength
from shine.search.models.model import Model

CONVINCING = 3.0
"""Nats by which a formula's description must be shorter than the constant's, or nothing was found: odds of 20 to 1. The
best of the many formulas that a search tries explains a little of anything."""

NATS_A_TURN = 0.5
"""Price of a maximum or minimum within the data (see `shine.search.finishing.turns`)."""


@dataclass(frozen=True)
class Choice:
    """A position in a front, and why it was chosen, in words."""

    index: int
    reason: str


def choose(
    front: Sequence[Model], enough: float, description: DescriptionLength, further: Sequence[float] | None = None
) -> Choice:
    """The formula to recommend.

    This is the simplest formula whose loss is at most `enough`, if there is one, and otherwise the formula with the
    shortest description. Formulas that meet few rows exactly by chance do not count.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity, falling loss; not empty.
    enough : float
        Loss below which two formulas are equally right.
    description : DescriptionLength
        Of the rows that the losses were measured on.
    further : sequence of float, optional
        Further nats of each formula: for its oddity (see `shine.search.description.oddity`), and `NATS_A_TURN` for each
        turn.
    """
    sizes, constants = _sizes_and_constants(front)
    convincing = description.convinces(sizes, constants)
    for at, model in enumerate(front):
        if model.loss <= enough and (convincing[at] or len(front) == 1):
            return Choice(at, "the simplest formula that is exact to within rounding or to within stop_loss")
    return shortest(front, description, further)


def shortest(front: Sequence[Model], description: DescriptionLength, further: Sequence[float] | None = None) -> Choice:
    """The formula with the shortest description, the first of equals (see `choose`)."""
    lengths = lengths_of(front, description, further)
    best = int(np.argmin(lengths))
    others = np.delete(lengths, best)
    if not np.isfinite(others).any():
        return Choice(best, "the only formula that the rows can determine")
    best = _convincing(front, lengths, best)
    second = int(np.argmin(np.where(np.arange(len(front)) == best, np.inf, lengths)))
    reason = "the shortest description of formula, constants and errors"
    if front[best].is_constant:
        reason = "no formula describes the target so much better that it is worth its length"
    nats = lengths[second] - lengths[best]
    return Choice(best, f"{reason}; formula {second} needs {abs(nats):.1f} nats {'more' if nats >= 0 else 'less'}")


def _convincing(front: Sequence[Model], lengths: Floats, best: int) -> int:
    """The best formula, or the constant if that needs hardly more nats (see `CONVINCING`)."""
    constants = [at for at, model in enumerate(front) if model.is_constant and np.isfinite(lengths[at])]
    near = [at for at in constants if lengths[at] < lengths[best] + CONVINCING]
    return min(near, key=lambda at: lengths[at], default=best)


def lengths_of(
    front: Sequence[Model], description: DescriptionLength, further: Sequence[float] | None = None
) -> Floats:
    """Nats of the description by each formula (see `choose`)."""
    losses = np.array([model.loss for model in front])
    lengths = description.final(losses, *_sizes_and_constants(front))
    return lengths + (0.0 if further is None else np.array(further))


def written_length(tree: Tree) -> float:
    """Nats to write down a formula with the digits that its constants have."""
    constants = (float(token[1]) for token in tree.tokens[1:] if token[0] == "constant")
    return NATS_A_NODE * tree.size + sum(cost_as_written(value) for value in constants)


def fitted_constants(tree: Tree) -> int:
    """Number of constants in a formula."""
    return sum(token[0] == "constant" for token in tree.tokens[1:])


def _sizes_and_constants(front: Sequence[Model]) -> tuple[Indices, Indices]:
    sizes, constants = zip(*(model.counts for model in front), strict=True)
    return np.array(sizes), np.array(constants)
