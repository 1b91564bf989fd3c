"""Rows that are read block by block, laid out for the machine: its sums are those of the same rows in memory."""

from __future__ import annotations

from collections.abc import Iterator

from shine.compiler.threads import Workers
from shine.data.datasets.dataset import Whole
from shine.evaluate.losses.form import WEIGHT, RowLoss
from shine.evaluate.losses.rows import loss_columns, loss_rows
from shine.evaluate.tiers.machine_rows import MachineRows, Pass, shared
from shine.lang.population import Population


class StreamedRows:
    """The rows of a `Whole` for the functions of the machine that add up over rows (see `MachineRows`).

    Parameters
    ----------
    whole : Whole
        Its weight is the sum of the weights of its blocks.
    features : tuple of str
        Those of the populations, in their order.
    kind : RowLoss
    threads : int
    """

    def __init__(self, whole: Whole, features: tuple[str, ...], kind: RowLoss, threads: int) -> None:
        self.whole, self._features, self._kind, self._workers = whole, features, kind, Workers(threads)
        self.count = whole.n_rows
        self.weight = float(whole.n_rows) if WEIGHT in kind.columns else whole.weight

    def passes(self, population: Population) -> Iterator[Pass]:
        """The blocks of rows in order, for a population; a block is valid until the next one is asked for."""
        for block in self.whole.read(self._features):
            beside, rows = loss_columns(block, self._kind), loss_rows(block, self._kind)
            laid_out = MachineRows(rows, "float64", self._workers.threads, nested=False, beside=beside)
            yield from laid_out.passes(population)

    def workers_for(self, population: Population, part: Pass, effort: int = 1) -> Workers:
        """The threads for a pass (see `MachineRows`)."""
        return shared(self._workers, population, part, effort)
