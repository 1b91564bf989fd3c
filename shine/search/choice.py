"""The choice of the formula to recommend, and its reason.

The recommended formula has the shortest description: the cost of writing down the formula, its fitted constants and the
errors that it leaves (minimum description length, Rissanen 1978; Schwarz 1978 for the constants). The price of a node
also corrects for how many formulas were tried: the number of different formulas grows by a constant factor with each
node, and the best of many fits well by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shine.lang.tree import Tree
from shine.search.model import Model

NATS_A_NODE = 2.0
"""Price of a node, in nats. A node multiplies the number of formulas by that of the functions and features, about ten,
and the number of different ones by five to eight."""


@dataclass(frozen=True)
class Choice:
    """A position in a front, and why it was chosen, in words."""

    index: int
    reason: str


NATS_A_TURN = 1.0
"""Price of a maximum or minimum within the data (see `shine.search.turns`)."""


def choose(
    front: Sequence[Model], enough: float, rows: float, power: float, further: Sequence[float] | None = None
) -> Choice:
    """The formula to recommend.

    This is the simplest formula whose loss is at most `enough`, if there is one, and otherwise the formula with the
    shortest description. Formulas with as many constants as rows are left out: they can fit anything.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity, falling loss; not empty.
    enough : float
        Loss below which two formulas are equally right.
    rows : float
        Number of rows that the losses were measured on; the effective number if they have weights.
    power : float
        Factor of the loss's logarithm in the negative log-likelihood of a row: half if the loss is in squared units.
    further : sequence of float, optional
        Further nats of each formula: for its oddity (see `shine.gp.oddity`), and `NATS_A_TURN` for each turn.
    """
    more = [0.0] * len(front) if further is None else further
    allowed = [0, *(at for at in range(1, len(front)) if fitted_constants(front[at].tree) < rows)]
    for at in allowed:
        if front[at].loss <= enough:
            return Choice(at, "the simplest formula that is exact to within rounding or to within stop_loss")
    worst = front[0].loss
    lengths = [_errors(front[at], worst, rows, power) + formula_length(front[at], rows) + more[at] for at in allowed]
    choice = shortest(allowed, lengths)
    if front[choice.index].tree.size > 1 or len(allowed) == 1:
        return choice
    return Choice(
        choice.index, f"no formula describes the target so much better that it is worth its length; {choice.reason}"
    )


def shortest(positions: Sequence[int], lengths: Sequence[float]) -> Choice:
    """The position with the shortest description, the first of equals."""
    ranked = sorted(range(len(lengths)), key=lambda at: lengths[at])
    best = ranked[0]
    if len(ranked) == 1:
        return Choice(positions[best], "the only formula that the rows can determine")
    second = ranked[1]
    ahead = lengths[second] - lengths[best]
    reason = f"the shortest description of formula, constants and errors; formula {positions[second]} needs "
    return Choice(positions[best], f"{reason}{ahead:.1f} nats more")


def formula_length(model: Model, rows: float) -> float:
    """Nats to write down a formula and its constants, each to the precision that the rows determine."""
    constants = fitted_constants(model.tree)
    return NATS_A_NODE * model.tree.size + 0.5 * constants * math.log(max(rows, 1.0))


def _errors(model: Model, worst: float, rows: float, power: float) -> float:
    """Nats to write down the errors, compared with those of the worst formula.

    Constants fit as many errors away; the scale of the noise is estimated from the others.
    """
    return power * (rows - fitted_constants(model.tree)) * math.log(model.loss / worst)


def fitted_constants(tree: Tree) -> int:
    """Number of constants in a formula."""
    return sum(token[0] == "constant" for token in tree.tokens[1:])
