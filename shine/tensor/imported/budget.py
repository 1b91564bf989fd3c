"""Limits of readers: small files can ask for anything, by functions that call others twice.

There is no limit of time: a file is read on every machine or on none. The counts bound the work.
"""

from __future__ import annotations

from shine.base.errors import GraphImportError

MAX_NODES = 120_000
"""Most nodes that are computed, with those of called functions; each takes about 3 KB of memory."""

MOST_OPERANDS = 1 << 22
"""Most operands of all operations that nodes become."""

MOST_ELEMENTS = 1 << 26
"""Most elements of constants that are made, beside those that stand in the file."""


class Budget:
    """The rest of the budget of one module's functions.

    Parameters
    ----------
    in_file : int
        Most elements that constants in the file have.
    """

    def __init__(self, in_file: int = 0) -> None:
        self._nodes, self._operands, self._elements = 0, 0, -in_file

    def node(self) -> None:
        """Count a node, of a graph or of a called function; a `GraphImportError` if there are too many."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OverBudgetError(f"the graph has more than {MAX_NODES} nodes, with those of called functions")

    def operation(self, operands: int) -> None:
        """Count an operation; a `GraphImportError` if there are too many operands."""
        self._operands += 1 + operands
        if self._operands > MOST_OPERANDS:
            raise OverBudgetError(f"the graph becomes operations with more than {MOST_OPERANDS} operands")

    def elements(self, count: int) -> None:
        """Count elements of a constant; a `GraphImportError` if there are too many."""
        self._elements += count
        if self._elements > MOST_ELEMENTS:
            raise OverBudgetError(f"the graph makes constants of more than {MOST_ELEMENTS} elements")


class OverBudgetError(GraphImportError):
    """A graph is too large, wherever that was noticed."""
