"""Which generations a log tells of: all of a short run, and few of a long one."""

from __future__ import annotations

YOUNG = 256
"""Generations that a run tells of one by one; each doubling of their number adds half as many stretches."""


class Thinning:
    """Takes the first generation of each stretch, and the first of the stretch that has another loss.

    A stretch is one generation at first, and at most a 128th of the run so far. So a run of a million generations has
    about 1800 stretches, and at most twice as many are taken. What is taken follows from what was taken, never from the
    clock: a resumed run takes the same.
    """

    def __init__(self) -> None:
        self._stretch, self._changed = -1, False
        self._loss: object = None

    def takes(self, generation: int, loss: object) -> bool:
        """Whether the next generation of a run is taken.

        Parameters
        ----------
        generation : int
            Higher than that of the call before.
        loss : float or None
            Of the best formula.
        """
        now = stretch(generation)
        first = now != self._stretch
        if not first and (self._changed or loss == self._loss):
            return False
        self._stretch, self._changed, self._loss = now, not first, loss
        return True


def stretch(generation: int) -> int:
    """Number of the stretch of a generation; the first is 0."""
    doublings = max(0, generation.bit_length() - YOUNG.bit_length() + 1)
    return doublings * (YOUNG // 2) + (generation >> doublings)
