"""Costs of evaluation on this host, measured once and kept, and the choice of a tier that follows from them.

A compiled individual runs faster than on the machine, but has to be compiled first. Compiling pays if

    rows > T / (nodes * (c_machine - c_native))

where T is the time to compile one individual in a batch, and c the time of a node and row in each tier. All three
depend on the kind of nodes: an elementary function has many instructions, which take long to compile, and the machine
adds little to the time they run. So there are two `OPERATION_KINDS` of nodes, each with its own costs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache

import numpy as np

from shine.base.stages import stage
from shine.base.typing import Floats, Mask, Singles
from shine.compiler.codegen.numbers import OPERATION_KINDS, operations_of, source_digest
from shine.compiler.llvm import cached
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import SQUARED
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import BATCH, NativeFitness
from shine.evaluate.tiers.rows import Rows
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population

_ROWS = 8_192

# The clock of the thread does not count the time of other processes on a busy host.
_clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter

_PROBES = {
    "simple": tuple(
        f"(x0*{number}.5 - x1)/(x0*x0 + x1*{number}.25 + 1.5) + (x1 - {number}.75)*(x0 + x1*x1*0.5)"
        for number in range(BATCH)
    ),
    "elementary": tuple(
        f"exp(x0*0.{number:02d}1 - x1) + log(x0 + x1*{number}.25)*sin(x0 + {number}.5) - cos(x1*x0 + 0.{number:02d}2)"
        for number in range(BATCH)
    ),
}
"""Formulas of sizes common in evolution: without elementary functions, and with many."""

_MOST_SECONDS = 3600.0

SMALLEST = 100_000
"""Below this many rows, compiling paid on no host tried: nothing needs to be measured."""


@dataclass(frozen=True)
class Costs:
    """Seconds on one thread, measured on some formulas.

    Parameters
    ----------
    compile : float
        Seconds to compile one individual in a batch.
    machine, native : float
        Seconds of a node and row in each tier.
    nodes : float
        Mean number of nodes of the individuals measured.
    """

    compile: float
    machine: float
    native: float
    nodes: float

    @property
    def break_even_rows(self) -> float:
        """Least number of rows for which compiling an individual for one evaluation pays; inf if it never does."""
        gained = self.nodes * (self.machine - self.native)
        return self.compile / gained if gained > 0 else float("inf")


@dataclass(frozen=True)
class HostCosts:
    """Seconds of a node of each of the `OPERATION_KINDS`, on one thread.

    Parameters
    ----------
    compile : tuple of float
        Seconds to compile a node, in a batch of individuals.
    machine, native : tuple of float
        Seconds of a node and row in each tier.
    single : float
        Additional seconds to compile a single individual outside a batch.
    """

    compile: tuple[float, ...]
    machine: tuple[float, ...]
    native: tuple[float, ...]
    single: float

    def worth_compiling(self, nodes: Floats, rows: int, threads: int = 1) -> Mask:
        """Whether compiling an individual saves time, even if it is evaluated only once.

        Parameters
        ----------
        nodes : ndarray of shape (n_individuals, 2), float64
            Nodes of each of the `OPERATION_KINDS`.
        rows : int
        threads : int
            Threads of the machine; native code has one.

        Returns
        -------
        ndarray of shape (n_individuals,), bool
            All are False if together they gain less than an additional module costs.
        """
        gained = rows * (nodes @ (np.array(self.machine) / threads - np.array(self.native)))
        saved = gained - nodes @ np.array(self.compile)
        chosen: Mask = saved > 0
        return chosen & bool(saved[chosen].sum() > self.single)


def nodes_by_kind(population: Population) -> Floats:
    """Nodes of each individual by `OPERATION_KINDS`, shape (n_individuals, 2), float64.

    A composite primitive counts as the operations of its definition.
    """
    weights = _weights(population.primitives)
    totals = np.stack([kind[population.codes].sum(axis=1, dtype=np.float64) for kind in weights], axis=1)
    # The end of a tape is padded with zeros, the code of a constant, which is simple.
    totals[:, 0] -= population.width - population.sizes
    return totals


@lru_cache(maxsize=16)
def _weights(primitives: PrimitiveSet) -> Singles:
    """Number of nodes of each of the `OPERATION_KINDS` in the definition of each code, shape (2, n_codes)."""
    counts = [{"simple": 1}] * primitives.first_function + [operations_of(f) for f in primitives.functions]
    return np.array([[count.get(kind, 0) for count in counts] for kind in OPERATION_KINDS], dtype=np.float32)


@cache
def host_costs(dtype: str) -> HostCosts:
    """Costs on this host for a number type, from the cache or measured (in about a second)."""

    @stage("measuring the costs of evaluation on this host; they are kept for the next time")
    def measure() -> bytes:
        return json.dumps(asdict(measured_host_costs(dtype))).encode()

    def is_costs(content: bytes) -> bool:
        return _known(content) is not None

    # The timings also measure the code of this package.
    description = ("costs by kind", dtype, source_digest("evaluate"), *(_PROBES[kind][0] for kind in OPERATION_KINDS))
    content = cached(description, measure, is_costs)
    # A clock that stands still measures unusable costs; compiling is then never worth it.
    nothing = (0.0,) * len(OPERATION_KINDS)
    return _known(content) or HostCosts(nothing, nothing, nothing, 0.0)


def _known(content: bytes) -> HostCosts | None:
    """The costs in a kept record; None if the record is not valid."""
    try:
        fields = json.loads(content)
        by_kind = {name: tuple(map(_cost, fields[name])) for name in ("compile", "machine", "native")}
        single = _cost(fields["single"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if len(fields) != len(by_kind) + 1 or any(len(costs) != len(OPERATION_KINDS) for costs in by_kind.values()):
        return None
    return HostCosts(**by_kind, single=single)


def _cost(value: object) -> float:
    """A number of seconds from JSON."""
    if not isinstance(value, float) or not 0 <= value < _MOST_SECONDS:
        raise ValueError(f"not a number of seconds: {value!r}")
    return value


def measured_host_costs(dtype: str) -> HostCosts:
    """Measure the costs of the kinds now."""
    simple, mixed = (measured_costs(dtype, kind) for kind in OPERATION_KINDS)
    population = _probes("elementary")
    nodes = nodes_by_kind(population).mean(axis=0)

    def by_kind(of_simple: float, of_mixed: float) -> tuple[float, float]:
        """Costs of a node of each kind, from the mean costs of a node in both families of probes; at least 0."""
        return of_simple, max(0.0, (of_mixed * mixed.nodes - of_simple * float(nodes[0])) / float(nodes[1]))

    compilation = by_kind(simple.compile / simple.nodes, mixed.compile / mixed.nodes)
    first = _probes("simple").tree(0)
    single = max(0.0, _seconds(lambda: NativeFitness([first], dtype, "O0", selection=1).close()) - simple.compile)
    return HostCosts(compilation, by_kind(simple.machine, mixed.machine), by_kind(simple.native, mixed.native), single)


def measured_costs(dtype: str, kind: str = "simple") -> Costs:
    """Measure the costs of one family of probes now."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (_ROWS, 2))
    dataset = Dataset.from_arrays(X, X[:, 0])
    population = _probes(kind)
    trees = [population.tree(i) for i in range(len(population))]
    nodes = float(population.sizes.mean())
    # Measured twice: other processes may slow one measurement down.
    compilation = _seconds(lambda: NativeFitness(trees, dtype, "O0", selection=1).close())
    begin = _clock()
    compiled = NativeFitness(trees, dtype, "O0", selection=1)
    compilation = min(compilation, _clock() - begin) / len(trees)
    try:
        native, which = compiled.over(Rows(dataset, dtype)), np.arange(len(trees))
        ones, zeros = np.ones(len(trees)), np.zeros(len(trees))
        native_run = _best(lambda: native.errors(which, SQUARED, ones, zeros))
    finally:
        compiled.close()
    machine = MachineEvaluator(dataset, "mse", False, dtype)
    machine_run = _best(lambda: machine.score(population))
    work = len(trees) * nodes * _ROWS
    return Costs(compilation, machine_run / work, native_run / work, nodes)


def _probes(kind: str) -> Population:
    return Population.from_sources(_PROBES[kind], ("x0", "x1"))


def _seconds(run: Callable[[], object]) -> float:
    begin = _clock()
    run()
    return _clock() - begin


def _best(run: Callable[[], object]) -> float:
    """Least seconds of a few runs, after a first run that does not count."""
    run()
    return min(_seconds(run) for _ in range(5))
