"""What more threads are worth to one search: `python experiments/many_cores.py --seconds 5`.

One thread runs a search, and notes for each stage the processor time of compiled loops, which threads share, and of
all else, which is serial. Then each loop is shared out as `shine.compiler.threads.Workers` does, in blocks that take
equally long, over 2 to 64 threads (Amdahl, Proc. AFIPS 30, 1967). To start a thread costs what it costs here. For
processes that share islands see `islands.py schedule`. `--kinds` prints what default searches of five tables
take, with one thread and with two.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from islands import HARD, load, table

import shine
from shine.base.stages import listening
from shine.compiler.threads import Workers

THREADS = (1, 2, 4, 8, 16, 32, 64)

OUTSIDE = "evolution"
"""Name of what happens outside of stages that report themselves."""


@dataclass
class Times:
    """Processor seconds by stage: in all, and of each loop with the number of its blocks."""

    stages: list[str] = field(default_factory=list)
    total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    loops: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    last: float = field(default_factory=time.process_time)

    def name(self) -> str:
        """The outermost stage: what is nested belongs to it."""
        return self.stages[0] if self.stages else OUTSIDE

    def spent(self) -> None:
        """Count the time since the last call for the present stage."""
        now = time.process_time()
        self.total[self.name()] += now - self.last
        self.last = now

    def enter(self, text: str) -> None:
        """A stage begins."""
        self.spent()
        self.stages.append(text)

    def leave(self) -> None:
        """The latest stage has ended."""
        self.spent()
        del self.stages[-1:]

    def loop(self, blocks: int, run: Callable[..., None], *arguments: Any) -> None:
        """Run a loop that threads share in blocks."""
        begin = time.process_time()
        run(*arguments)
        self.loops[self.name()].append((time.process_time() - begin, max(blocks, 1)))

    def seconds(self, stage: str, threads: int, start: float) -> float:
        """Seconds of a stage with some threads."""
        serial = self.total[stage] - sum(each for each, _ in self.loops[stage])
        shared = ((each, blocks, min(threads, blocks)) for each, blocks in self.loops[stage])
        return serial + sum(each * -(-blocks // most) / blocks + start * (most - 1) for each, blocks, most in shared)


def measured(formula: str, rows: int, options: dict[str, Any]) -> Times:
    """Processor times of a search on one thread."""
    data = table(formula, 0.1, rows)
    times = Times()
    share = Workers.run

    def run(self: Workers, work: Any, abandon: Any, most: int | None = None) -> None:
        # A loop that does not say so has blocks enough.
        times.loop(max(THREADS) if most is None else most, share, self, work, abandon, most)

    with (
        patch.object(Workers, "run", run),
        listening(times.enter, times.leave, lambda text: None),
    ):
        shine.evolve(data.columns.T, data.target, features=data.features, threads=1, seed=0, **options)
        times.spent()
    return times


def start_of_a_thread(repeats: int = 2000) -> float:
    """Seconds that the calling thread needs to start another one and to wait for it."""
    spent = []
    for threads in (1, 2):
        workers = Workers(threads)
        workers.run(lambda thread: None, lambda: None)
        begin = time.process_time()
        for _ in range(repeats):
            workers.run(lambda thread: None, lambda: None)
        spent.append((time.process_time() - begin) / repeats)
    return max(spent[1] - spent[0], 0.0)


def show(title: str, times: Times, start: float) -> None:
    """Print a table of stages, and what threads are worth."""
    print(f"\n{title}: seconds of the processor by stage; load {load()}")
    print(f"{'stage':44} {'all':>7} {'serial':>7} {'share':>6}")
    whole = dict.fromkeys(THREADS, 0.0)
    for stage, total in sorted(times.total.items(), key=lambda each: -each[1]):
        serial = total - sum(each for each, _ in times.loops[stage])
        if total >= 0.005:
            print(f"{stage[:44]:44} {total:7.2f} {serial:7.2f} {serial / total:6.0%}")
        for threads in THREADS:
            whole[threads] += times.seconds(stage, threads, start)
    print("threads " + "".join(f"{threads:8}" for threads in THREADS))
    print("times   " + "".join(f"{whole[1] / whole[threads]:8.2f}" for threads in THREADS))


KINDS: tuple[tuple[int, int, float, Callable[..., np.ndarray]], ...] = (
    (60, 2, 0.1, lambda a, b: a**1.5 / b),
    (1000, 5, 0.1, lambda a, b, c, d, e: a * np.exp(-b / 2) + np.sqrt(c) * d / (e + 1)),
    (10_000, 10, 0.1, lambda a, b, c, d, e, f, *_: a * np.sin(b) + c / (d + e) + np.log(f)),
    (300, 50, 0.1, lambda *x: x[3] * x[10] / (1 + x[20] ** 2) + x[30]),
    (500, 5, 0.0, lambda a, b, c, d, e: a * np.sin(b * c) / (d + np.exp(e / 3))),
)
"""Tables: rows, columns, noise as a share of the target's deviation, law."""


def show_kinds() -> None:
    """Print seconds of the clock and of the processor, the generations and the formula of each kind."""
    rng = np.random.default_rng(1)
    for rows, columns, noise, law in KINDS:
        X = rng.uniform(1, 4, (rows, columns))
        y = law(*X.T)
        y = y + rng.normal(0, 1, rows) * noise * y.std()
        for threads in (1, 2):
            clock, processor = time.perf_counter(), time.process_time()
            result = shine.evolve(X, y, threads=threads)
            spent = time.perf_counter() - clock, time.process_time() - processor
            print(
                f"{rows} x {columns}, noise {noise:g}, {threads} threads {spent[0]:6.1f} s, "
                f"of the processor {spent[1]:6.1f}; "
                f"{result.generations} generations, {result.best.expression}",
                flush=True,
            )


def main() -> None:
    """Print the tables of two runs: evolution alone, and a search as users start it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of the search with seeding [5]")
    parser.add_argument("--problem", type=int, default=0, help="which of the hard formulas of islands.py [0]")
    parser.add_argument("--kinds", action="store_true", help="default searches of five tables instead")
    options = parser.parse_args()
    shine.evolve(np.array([[1.0], [2.0]]), [1.0, 3.0], generations=0)  # compiled once per computer: not counted
    if options.kinds:
        return show_kinds()
    start, formula = start_of_a_thread(), HARD[options.problem]
    print(f"{formula} with 10 % noise; starting a thread costs {1e6 * start:.0f} microseconds")
    evolution = {"population": 1000, "max_size": 30, "generations": 50, "seconds": None, "seeding": 0.0}
    for rows in (1000, 100_000):
        limits = evolution if rows == 1000 else {**evolution, "generations": 10}
        show(f"evolution, {rows} rows", measured(formula, rows, {**limits, "constant_steps": 5}), start)
        show(f"default search, {rows} rows", measured(formula, rows, {"seconds": options.seconds}), start)


if __name__ == "__main__":
    main()
