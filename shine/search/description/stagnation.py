"""Stagnation: the shortest description of the data found so far, and when it last became shorter."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_FALL = 1.0
"""Nats by which a description must be shorter to count: the data are then e times more probable."""

NEARLY_LARGEST = 0.75
"""Share of the largest size from which the formula of the shortest description shows that larger ones would explain
more. Without noise the shortest description has nearly the largest size until the formula is found (24 to 30 nodes of
30 in a dozen searches); with noise it is seldom half as large."""

NATS_FOR_ALL = 60.0
"""Nats that a description must be able to lose for a search to wait all its generations. If it can lose less, fewer and
smaller formulas would pay for their nodes, and the search waits in proportion. Noise leaves 5 to 30."""

FEWEST = 10
"""Generations that a search waits at least, if it may."""

PATIENCE_WITHOUT_NOISE = 10
"""How many times as long a search goes on while the formula of the shortest description is nearly the largest. Such
searches found formulas after nothing had improved for more than 1000 generations."""


@dataclass(frozen=True)
class Stagnation:
    """The last generation in which the shortest description became shorter.

    Parameters
    ----------
    length : float
        The shortest description then.
    fell : int
        That generation.
    """

    length: float = float("inf")
    fell: int = 0

    def after(self, length: float, generation: int) -> Stagnation:
        """The stagnation after a generation with a shortest description."""
        # Both are inf before the first formula of finite loss, and -inf after one of loss 0.
        return Stagnation(length, generation) if length < self.length - LEAST_FALL else self

    def is_over(self, generation: int, most: int, share: float, gain: float = float("inf")) -> bool:
        """Whether nothing has improved for long.

        Parameters
        ----------
        generation : int
        most : int
            Generations to wait for an improvement if much could be gained. They are `PATIENCE_WITHOUT_NOISE` times as
            many if the formula of the shortest description has nearly the largest size. It is always waited for as many
            as had passed until the last improvement.
        share : float
            Size of that formula as a share of the largest.
        gain : float
            Nats that a formula could still make the description shorter (see
            `shine.search.description.lengths.DescriptionLength.gain`).
        """
        if share >= NEARLY_LARGEST:
            patience = float(PATIENCE_WITHOUT_NOISE * most)
        else:
            patience = min(most, max(FEWEST, most * gain / NATS_FOR_ALL))
        return generation - self.fell >= max(patience, self.fell)
