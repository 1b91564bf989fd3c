"""What evaluation costs on this host: measured once, remembered, and what follows for the choice of a tier.

An individual compiled by itself runs faster than on the machine, but has to be compiled first. It pays from

    rows > T / (nodes * (c_machine - c_native))

on, with T the time to compile one individual in a batch and c the time of a node and row in each tier.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from shine.data import Dataset
from shine.evaluators.machine import MachineEvaluator
from shine.evaluators.native import BATCH, NativeFitness
from shine.evaluators.rows import Rows
from shine.lang.population import Population
from shine.llvm import cached

_ROWS = 8_192

_PROBES = tuple(
    f"(x0*{number}.5 - x1)/(x0*x0 + x1*{number}.25 + 1.5) + (x1 - {number}.75)*(x0 + x1*x1*0.5)"
    for number in range(BATCH)
)
"""Formulas of the size that evolution mostly deals with, of operations that cost least: where native pays last."""

SMALLEST = 100_000
"""Rows below which no host was seen on which native pays, so that nothing needs to be measured."""


@dataclass(frozen=True)
class Costs:
    """Seconds, on one thread.

    Parameters
    ----------
    compile : float
        To compile one individual, in a batch.
    machine, native : float
        Of a node and row in each tier.
    nodes : float
        Nodes of an individual, mean of those measured.
    """

    compile: float
    machine: float
    native: float
    nodes: float

    @property
    def break_even_rows(self) -> float:
        """Rows from which compiling an individual that is evaluated once pays; inf if it never does."""
        gained = self.nodes * (self.machine - self.native)
        return self.compile / gained if gained > 0 else float("inf")


def native_pays(rows: int, dtype: str) -> bool:
    """Whether individuals that are evaluated once over some rows are better compiled."""
    return rows >= SMALLEST and rows >= host_costs(dtype).break_even_rows


@cache
def host_costs(dtype: str) -> Costs:
    """Costs on this host for a number type, from the cache or measured (in about half a second)."""

    def measure() -> bytes:
        return json.dumps(asdict(measured_costs(dtype))).encode()

    return Costs(**json.loads(cached(("costs", dtype), measure)))


def measured_costs(dtype: str) -> Costs:
    """Measure the costs now."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (_ROWS, 2))
    dataset = Dataset.from_arrays(X, X[:, 0])
    population = Population.from_sources(_PROBES, ("x0", "x1"))
    trees = [population.tree(i) for i in range(len(population))]
    nodes = float(population.sizes.mean())
    begin = time.perf_counter()
    compiled = NativeFitness(trees, dtype, "O0", selection=1)
    compilation = (time.perf_counter() - begin) / len(trees)
    try:
        native, which = compiled.over(Rows(dataset, dtype)), np.arange(len(trees))
        ones, zeros = np.ones(len(trees)), np.zeros(len(trees))
        native_run = _best(lambda: native.errors(which, "squared", ones, zeros))
    finally:
        compiled.close()
    machine = MachineEvaluator(dataset, "mse", False, dtype)
    machine_run = _best(lambda: machine.score(population))
    work = len(trees) * nodes * _ROWS
    return Costs(compilation, machine_run / work, native_run / work, nodes)


def _best(run: Callable[[], object]) -> float:
    """Least seconds of a few runs, after one that does not count."""
    run()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)
