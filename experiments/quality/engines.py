"""Symbolic regression engines, each behind one function, with the same primitives and the same time.

Nothing here imports Shine, or anything but NumPy, before its function is called: an engine may run under another
interpreter than the experiment (`--python`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """The result of an engine.

    Parameters
    ----------
    chosen : str
        The formula it recommends.
    accurate : str
        The formula with the lowest loss on the training rows.
    seconds : float
        Duration of the search, without starting the interpreter and importing.
    front : tuple of str
        All formulas that it offers, simplest first; empty if it offers one.
    """

    chosen: str
    accurate: str
    seconds: float
    front: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "front", tuple(self.front))  # JSON has lists


@dataclass(frozen=True)
class Task:
    """The input of an engine: rows, names of the columns, seconds, threads, and the seed."""

    X: Array
    y: Array
    features: Sequence[str]
    budget: float
    threads: int
    seed: int


def run_shine(task: Task) -> Found:
    """Shine with its defaults, which end a search that no longer improves."""
    import shine

    begin = time.perf_counter()
    result = shine.evolve(
        task.X,
        task.y,
        features=task.features,
        seconds=task.budget,
        threads=task.threads,
        seed=task.seed,
    )
    front = tuple(model.expression for model in result.front)
    return Found(result.best.expression, front[-1], time.perf_counter() - begin, front)


def run_pyoperon(task: Task) -> Found:
    """Operon as it is used best: NSGA-II on R2 and length, one step of Levenberg-Marquardt for each offspring.

    Its time limit is in whole seconds: a budget is rounded up. All else is Operon's default, including the choice from
    its front (description length).
    """
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,sqrt,square,exp,log,sin,cos,constant,variable",
        objectives=["r2", "length"],
        optimizer_iterations=1,
        population_size=1000,
        max_length=50,
        generations=10**9,
        max_evaluations=10**12,
        max_time=math.ceil(task.budget),
        n_threads=task.threads,
        random_state=task.seed,
    )
    begin = time.perf_counter()
    model.fit(task.X, task.y)
    seconds = time.perf_counter() - begin
    entries = sorted(model.pareto_front_, key=lambda entry: (entry["complexity"], entry["mean_squared_error"]))
    best = min(entries, key=lambda entry: entry["mean_squared_error"])
    trees = (model.model_, best["tree"], *(entry["tree"] for entry in entries))
    texts = [model.get_model_string(tree, 17, list(task.features)).replace("^", "**") for tree in trees]
    return Found(texts[0], texts[1], seconds, tuple(texts[2:]))


_GPLEARN_NAMES = {"div": "protected_div", "log": "protected_log", "sqrt": "protected_sqrt", "exp": "capped_exp"}


def run_gplearn(task: Task) -> Found:
    """gplearn with its defaults, one generation after the other until the time is spent.

    It has neither an exponential nor a square, so both are added; the exponential is capped because it must be finite.
    """
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    square = make_function(function=np.square, name="square", arity=1)
    exp = make_function(function=lambda x: np.exp(np.minimum(x, 100.0)), name="exp", arity=1)
    model = SymbolicRegressor(
        population_size=1000,
        generations=1,
        function_set=("add", "sub", "mul", "div", "sqrt", square, exp, "log", "sin", "cos"),
        n_jobs=task.threads,
        random_state=task.seed,
        warm_start=True,
    )
    begin = time.perf_counter()
    best, longest, last = (math.inf, ""), 0.0, 0.0
    while last + longest <= task.budget:
        with np.errstate(all="ignore"):
            model.fit(task.X, task.y)
        now = time.perf_counter() - begin
        longest, last = max(longest, now - last), now
        for program in (program for program in model._programs[-1] if program is not None):
            if program.raw_fitness_ < best[0]:
                best = program.raw_fitness_, _gplearn_text(program.program, task.features)
        model.set_params(generations=model.generations + 1)
    return Found(_gplearn_text(model._program.program, task.features), best[1], last)


def _gplearn_text(program: Sequence[object], features: Sequence[str]) -> str:
    """gplearn's list in prefix order as text, with all digits of the constants."""
    stack: list[str] = []
    for part in reversed(program):
        if isinstance(part, int | np.integer):
            stack.append(features[int(part)])
        elif isinstance(part, float | np.floating):
            stack.append(repr(float(part)))
        else:
            arguments = [stack.pop() for _ in range(part.arity)]  # type: ignore[attr-defined]
            name = _GPLEARN_NAMES.get(part.name, part.name)  # type: ignore[attr-defined]
            stack.append(f"{name}({', '.join(arguments)})")
    return stack.pop()


ENGINES: dict[str, Callable[[Task], Found]] = {
    "shine": run_shine,
    "pyoperon": run_pyoperon,
    "gplearn": run_gplearn,
}
"""Engines by name."""
