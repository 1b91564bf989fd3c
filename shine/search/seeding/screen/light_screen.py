"""Screens for workers that see no file of this machine: without all that can be computed again, a fiftieth as large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import apply
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.screen.screen import Screen

LEAF = -1
"""Code of a leaf in a bank."""


@dataclass(frozen=True, eq=False)
class LightScreen:
    """A screen as it is now, light while it travels: what is unpickled is a `Screen` of the same bits.

    Parameters
    ----------
    bank : mapping
        State of the bank without its values.
    leaves : ndarray of shape (n_leaves, n_rows)
    arguments : tuple
    distinct_before : int
    """

    bank: Mapping[str, Any]
    leaves: Floats
    arguments: tuple[Any, ...]
    distinct_before: int

    @classmethod
    def of(cls, screen: Screen) -> LightScreen:
        """The light form of a screen; it stays as it is when the bank grows."""
        state = screen.bank.__getstate__()
        values = state.pop("values")
        return cls(state, values[state["codes"] == LEAF], screen.arguments, screen.distinct_before)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.bank, self.leaves, self.arguments, self.distinct_before)


def _made_again(state: Mapping[str, Any], leaves: Floats, arguments: tuple[Any, ...], distinct_before: int) -> Screen:
    bank = ExpressionBank.__new__(ExpressionBank)
    vars(bank).update(state)
    bank.values = _values(bank, leaves)
    screen = Screen(bank, *arguments)
    screen.distinct_before = distinct_before
    return screen


@np.errstate(all="ignore")
def _values(bank: ExpressionBank, leaves: Floats) -> Floats:
    """The values of the members from those of the leaves: functions of earlier members, as many at a time as can be."""
    values = np.empty((bank.count, leaves.shape[1]))
    values[bank.codes == LEAF] = leaves
    latest: Indices = np.maximum(bank.left, bank.right)
    ends = [*(np.flatnonzero(np.diff(bank.codes)) + 1).tolist(), bank.count]
    at = 0
    for end in ends:
        while at < end:
            code = int(bank.codes[at])
            before = np.flatnonzero(latest[at:end] >= at)
            now = slice(at, at + int(before[0]) if len(before) else end)
            if code == CONSTANT:
                values[now] = bank.constants[now, None]
            elif code != LEAF:
                arguments = (bank.left, bank.right)[: int(bank.primitives.arities[code])]
                values[now] = apply(bank.primitives.function(code), *(values[each[now]] for each in arguments))
            at = now.stop
    return values
