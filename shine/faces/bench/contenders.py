"""Contenders: each prepares a population, then scores some individuals over a data set. Shine's own are listed here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.llvm import host_object
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import SQUARED
from shine.evaluate.machine.interpreter import emit_machine
from shine.evaluate.tiers.machine_rows import Machine
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import BATCH, NativeFitness
from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.evaluate.tiers.rows import Rows
from shine.lang.population import Population

Run = Callable[[], Any]


class Unsupported(Exception):
    """An evaluator cannot take part; the message says why."""


@dataclass(frozen=True)
class Compile:
    """Seconds of compilation before anything is evaluated.

    Parameters
    ----------
    seconds : float
    per : {"individual", "primitive set"}
        Whether every individual is compiled, or one evaluator of all individuals with these primitives.
    cached : float, optional
        Seconds if the compiled code is on disk.
    """

    seconds: float
    per: str
    cached: float | None = None


def _identity(result: Any) -> Floats:
    return np.asarray(result, dtype=np.float64)


@dataclass(frozen=True)
class Timed:
    """The timed evaluation of some individuals over some rows, and the untimed step from its result to losses.

    Parameters
    ----------
    run : callable
    losses : callable
        Mean squared errors, shape (n_individuals,), from the result of `run`.
    """

    run: Run
    losses: Callable[[Any], Floats] = _identity


@dataclass(frozen=True)
class Prepared:
    """A population in the form an evaluator needs.

    Parameters
    ----------
    over : callable
        ``over(dataset, which)`` for the individuals at some positions.
    compile : Compile, optional
        None if nothing is compiled.
    close : callable
    """

    over: Callable[[Dataset, Indices], Timed]
    compile: Compile | None = None
    close: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True)
class Contender:
    """An evaluator to be compared.

    Parameters
    ----------
    name : str
    dtype : {"float64", "float32"}
    prepare : callable
        ``prepare(population, dtype)``.
    package : str, optional
        Name of the package it needs.
    slow : bool
        Whether it takes a row at a time in Python; it then gets only a sample of the rows.
    work : float
        Node-rows that are enough to measure it.
    most : int, optional
        Individuals that are enough to measure it.
    departs : str
        Known reason why it computes other numbers; up to one individual of a hundred may then differ.
    how : str
        One line that says what is run.
    """

    name: str
    dtype: str
    prepare: Callable[[Population, str], Prepared]
    package: str | None = None
    slow: bool = False
    work: float = np.inf
    most: int | None = None
    departs: str = ""
    how: str = ""


def mean_squares(predictions: AnyArray, target: Floats) -> Floats:
    """Mean squared errors, shape (n_individuals,), inf where a prediction is not finite."""
    losses = np.empty(len(predictions))
    with np.errstate(all="ignore"):
        for i, row in enumerate(predictions):
            losses[i] = np.mean(np.square(row.astype(np.float64) - target))
    return np.where(np.isfinite(losses), losses, np.inf)


def prepare_reference(population: Population, dtype: str) -> Prepared:
    """The NumPy interpreter."""

    def over(dataset: Dataset, which: Indices) -> Timed:
        chosen, evaluator = population.take(which), ReferenceEvaluator(dataset, "mse", False, dtype)
        return Timed(lambda: evaluator.score(chosen).losses)

    return Prepared(over)


def prepare_machine(population: Population, dtype: str, threads: int = 1) -> Prepared:
    """The tile machine: emitted and compiled once without the cache, then loaded from it."""
    functions = population.primitives.functions
    cold = _seconds(lambda: host_object(str(emit_machine(functions, dtype)), "O1"))
    Machine(functions, dtype)
    loaded = _seconds(lambda: Machine(functions, dtype))

    def over(dataset: Dataset, which: Indices) -> Timed:
        chosen, evaluator = population.take(which), MachineEvaluator(dataset, "mse", False, dtype, threads)
        return Timed(lambda: evaluator.score(chosen).losses)

    return Prepared(over, Compile(cold + loaded, "primitive set", loaded))


def prepare_native(population: Population, dtype: str) -> Prepared:
    """Every individual compiled, in modules of `BATCH`, as in the native tier."""
    trees = [population.tree(i) for i in range(len(population))]
    begin = time.perf_counter()
    modules = [
        NativeFitness(trees[start : start + BATCH], dtype, "O0", selection=1) for start in range(0, len(trees), BATCH)
    ]
    seconds = time.perf_counter() - begin

    def over(dataset: Dataset, which: Indices) -> Timed:
        rows, weight = Rows(dataset, dtype), dataset.weight
        parts = [(modules[batch].over(rows), which[which // BATCH == batch] % BATCH) for batch in range(len(modules))]
        ones, zeros = np.ones(BATCH), np.zeros(BATCH)

        def run() -> Floats:
            sums = [m.errors(at, SQUARED, ones[: len(at)], zeros[: len(at)]) for m, at in parts if len(at)]
            return np.concatenate([zeros[:0], *sums]) / weight

        return Timed(run, lambda losses: np.where(np.isfinite(losses), losses, np.inf))

    def close() -> None:
        for module in modules:
            module.close()

    return Prepared(over, Compile(seconds / max(len(trees), 1), "individual"), close)


NUMPY_WORK = 5e7
"""Node-rows that are enough to measure an evaluator with one array operation per node."""


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


TIERS = tuple(
    Contender(name, dtype, prepare, work=work, most=most, how=how)
    for name, prepare, work, most, how in (
        ("reference", prepare_reference, NUMPY_WORK, None, "NumPy, an array operation per node"),
        ("machine", prepare_machine, np.inf, None, "Shine's tile machine, the whole population in a call"),
        ("native", prepare_native, np.inf, 4 * BATCH, "individuals compiled together with the loop over the rows"),
    )
    for dtype in ("float64", "float32")
)
"""Shine's own tiers in both precisions."""
