"""The comparison: its settings, the measurements, and the report."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shine.base.errors import DISTRIBUTION
from shine.base.typing import Indices
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.faces.bench.checks import Agreement, Expected, compare, expected_losses
from shine.faces.bench.contenders import TIERS, Compile, Contender, Prepared, Timed, Unsupported
from shine.faces.bench.peers import PEERS, PLAIN
from shine.lang.population import Population

PACKAGES = (DISTRIBUTION, "numpy", "llvmlite", "deap", "gplearn", "pyoperon")


def description() -> dict[str, object]:
    """CPU, cores, load, system and versions."""
    return {
        "cpu": cpu_name(),
        "cores": processors(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := installed(package))},
    }


def installed(package: str) -> str | None:
    """Version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def cpu_name() -> str:
    """The processor's name as the system gives it, with its widest vector instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    lines = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    fields = {name.strip(): value.strip() for name, _, value in lines}
    name = fields.get("model name") or platform.machine()
    if name == "AMD EPYC":  # the name on some clouds
        name += f" (family {fields.get('cpu family')}, model {fields.get('model')})"
    flags = fields.get("flags", "").split()
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    return f"{name}, {vectors}" if vectors else name


CONTENDERS = (PLAIN, *(peer for peer in PEERS if peer.dtype == "float64"), *TIERS, PEERS[-1])
"""All contenders."""

WORK, SLOW_ROWS = 3e8, 1000
"""Most node-rows of a run, and most rows for a contender that takes a row at a time in Python."""


@dataclass(frozen=True)
class Settings:
    """The settings of a comparison.

    Parameters
    ----------
    rows : tuple of int
    population : int
        Number of random individuals, of sizes uniform from 1 to `max_size`.
    primitives : tuple of str
    features, max_size, seed : int
    repeats : int
        Timed runs after a first one that does not count; the fastest counts.
    every_individual : bool
        Whether every vectorized evaluator gets all individuals, however long it takes.
    """

    rows: tuple[int, ...] = (1000, 10_000)
    population: int = 1000
    primitives: tuple[str, ...] = ("add", "sub", "mul", "div")
    features: int = 2
    max_size: int = 50
    seed: int = 0
    repeats: int = 5
    every_individual: bool = False


@dataclass(frozen=True)
class Rate:
    """A timing: individuals, nodes and rows of a run, and its seconds."""

    individuals: int
    nodes: int
    rows: int
    seconds: float
    node_rows_per_second: float


@dataclass(frozen=True)
class Measurement:
    """The measurement of one evaluator over one number of rows.

    Parameters
    ----------
    evaluator, precision : str
    rows : int
    compile : Compile, optional
        None if nothing is compiled.
    finite : Rate
        For individuals whose predictions are all finite: every node of every row is computed. The fair figure.
    all : Rate
        For all individuals. Shine's tiers stop evaluating an individual at its first prediction that is not finite.
    agreement : Agreement
    ratio_to_reference : float, optional
        `finite` as a multiple of the float64 reference's.
    """

    evaluator: str
    precision: str
    rows: int
    compile: Compile | None
    finite: Rate
    all: Rate
    agreement: Agreement
    ratio_to_reference: float | None = None


@dataclass(frozen=True)
class Absent:
    """An evaluator that could not take part, and why."""

    evaluator: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All measurements."""

    machine: dict[str, object]
    settings: Settings
    nodes: int
    finite: dict[int, int]
    measurements: tuple[Measurement, ...]
    absent: tuple[Absent, ...]

    @property
    def wrong(self) -> tuple[Measurement, ...]:
        """Measurements whose losses are not the expected ones."""
        return tuple(m for m in self.measurements if not m.agreement.holds)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        record = asdict(self)
        for measurement in record["measurements"]:
            worst = measurement["agreement"]["worst"]
            measurement["agreement"]["worst"] = worst if np.isfinite(worst) else None
        return record


class _Case(NamedTuple):
    """The rows of one comparison, and the expected losses of the individuals over them."""

    population: Population
    dataset: Dataset
    expected: dict[str, Expected]
    finite: Indices
    settings: Settings


def benchmark(
    settings: Settings,
    contenders: Sequence[Contender] = CONTENDERS,
    progress: Callable[[str], None] = lambda what: None,
) -> Report:
    """Compare evaluators on one population.

    Parameters
    ----------
    settings : Settings
    contenders : sequence of Contender
    progress : callable
        Called with what is measured next.
    """
    from threadpoolctl import threadpool_limits

    population = random_population(settings)
    progress("reference losses")
    with threadpool_limits(1):  # NumPy may call a parallel BLAS
        cases = [_case(population, random_dataset(settings, rows), settings) for rows in settings.rows]
        measured: list[Measurement] = []
        absent: list[Absent] = []
        for contender in contenders:
            progress(f"{contender.name} {contender.dtype}")
            try:
                measured += _measure(contender, population, cases)
            except Unsupported as reason:
                absent.append(Absent(contender.name, str(reason)))
    finite = {case.dataset.n_rows: len(case.finite) for case in cases}
    nodes = int(population.sizes.sum())
    return Report(description(), settings, nodes, finite, _with_ratios(measured), tuple(absent))


def random_population(settings: Settings) -> Population:
    """Random individuals; the same for the same settings."""
    rng = np.random.default_rng(settings.seed)
    return Population.random(settings.population, settings.primitives, settings.features, settings.max_size, rng)


def random_dataset(settings: Settings, rows: int) -> Dataset:
    """Columns uniform from -5 to 5, of numbers that float32 holds exactly, and a target."""
    rng = np.random.default_rng(settings.seed)
    X = rng.uniform(-5, 5, (rows, settings.features)).astype(np.float32).astype(np.float64)
    return Dataset.from_arrays(X, np.cos(X[:, 0]) + X[:, -1] ** 2)


def _case(population: Population, dataset: Dataset, settings: Settings) -> _Case:
    if not settings.every_individual:
        population = population.take(_affordable(population.sizes, np.arange(len(population)), dataset.n_rows, WORK))
    expected = {dtype: expected_losses(population, dataset, dtype) for dtype in ("float64", "float32")}
    finite = np.logical_and.reduce([np.isfinite(known.losses) for known in expected.values()])
    return _Case(population, dataset, expected, np.flatnonzero(finite), settings)


def _measure(contender: Contender, population: Population, cases: Sequence[_Case]) -> list[Measurement]:
    if contender.package and not installed(contender.package):
        raise Unsupported(f"not installed (pip install {contender.package})")
    some = population if contender.most is None else population.take(np.arange(min(contender.most, len(population))))
    prepared = contender.prepare(some, contender.dtype)
    with closing(prepared):
        return [_measure_case(contender, prepared, case) for case in cases]


def _measure_case(contender: Contender, prepared: Prepared, case: _Case) -> Measurement:
    dataset, everyone, finite = case.dataset, np.arange(len(case.population)), case.finite
    if contender.most is not None:
        everyone, finite = everyone[: contender.most], finite[finite < contender.most]
    if contender.slow:
        dataset = head(dataset, SLOW_ROWS)
    if contender.slow or not case.settings.every_individual:
        everyone, finite = (
            _affordable(case.population.sizes, which, dataset.n_rows, contender.work) for which in (everyone, finite)
        )
    expected = case.expected[contender.dtype]
    if dataset.n_rows < case.dataset.n_rows:
        expected = expected_losses(case.population.take(everyone), dataset, contender.dtype)
    timed = prepared.over(dataset, everyone)
    agreement = compare(expected, timed.losses(timed.run()), everyone, contender.departs)
    sizes, repeats = case.population.sizes, case.settings.repeats
    every = _rate(timed, sizes[everyone], dataset.n_rows, repeats)
    fair = every
    if not np.array_equal(finite, everyone):
        fair = _rate(prepared.over(dataset, finite), sizes[finite], dataset.n_rows, repeats)
    return Measurement(contender.name, contender.dtype, case.dataset.n_rows, prepared.compile, fair, every, agreement)


def _affordable(sizes: Indices, which: Indices, rows: int, work: float) -> Indices:
    """The first individuals whose nodes times rows fit into some work, at least one."""
    spent = np.cumsum(sizes[which]) * rows
    return which[: max(int((spent <= work).sum()), 1)]


def head(dataset: Dataset, rows: int) -> Dataset:
    """The first rows of a data set."""
    return replace(dataset, columns=np.ascontiguousarray(dataset.columns[:, :rows]), target=dataset.target[:rows])


def _rate(timed: Timed, sizes: Indices, rows: int, repeats: int) -> Rate:
    nodes = int(sizes.sum())
    seconds = best_seconds(timed.run, repeats)
    return Rate(len(sizes), nodes, rows, seconds, nodes * rows / seconds)


def best_seconds(run: Callable[[], object], repeats: int) -> float:
    """Least seconds of some runs, after a first run that does not count."""
    run()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def _with_ratios(measured: Sequence[Measurement]) -> tuple[Measurement, ...]:
    base = {
        m.rows: m.finite.node_rows_per_second
        for m in measured
        if (m.evaluator, m.precision) == ("reference", "float64")
    }
    return tuple(
        replace(m, ratio_to_reference=m.finite.node_rows_per_second / base[m.rows]) if m.rows in base else m
        for m in measured
    )


__all__ = ["CONTENDERS", "Absent", "Measurement", "Rate", "Report", "Settings", "benchmark"]
