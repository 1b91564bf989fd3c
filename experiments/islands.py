"""What islands on several processes are worth: `python experiments/islands.py efficiency|schedule|search|seeding`.

* `efficiency`: evaluations a second of two worker processes beside one, same work, in turn.
* `schedule`: how busy 4 to 256 workers would be, simulated from epochs, transfers and the work of the main process, as
  they are measured here.
* `search`: 20 hard formulas, eight islands of 125 individuals against one population of 1000, with equal evaluations:
  evaluations until a formula explains all but a millionth of the variance, and how diverse the individuals are.
* `seeding`: seconds of the seeding of noisy hard formulas in this process, beside two worker processes, in turn.

Others on the machine spoil all but `search`; the load is printed beside.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from statistics import fmean, median
from unittest.mock import patch

import numpy as np

import shine
from shine.base.parallel import opened
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.vocabulary import primitive_table
from shine.search.evolution import epochs
from shine.search.evolution.memory import symbols
from shine.search.evolution.observers import Observers, Progress
from shine.search.evolution.run_state import State
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem.preparation import seeding_task
from shine.search.problem.settings import FitnessSettings, SearchSettings
from shine.search.run import search
from shine.search.seeding import find_guesses

PRIMITIVES = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "sqrt")

HARD = (
    "a*b + sin(c*d)*a", "exp(-a*b) + c/(1 + d)", "sin(a)*cos(b) + c*d*d", "log(a + b*c) + sin(2*d)",
    "a*b*c + sqrt(d + a*a)", "(a*b + c*d)/(1 + a*d)", "exp(-a)*sin(3*b) + c*d", "a/(b + c*c) + cos(d*a)",
    "sqrt(a*a + b*b + c*c)*sin(d)", "log(1 + exp(a - b)) + c*d", "a*sin(b + c) + d*cos(a - c)",
    "(a - b)*(c - d)/(a + c)", "exp(sin(a) + cos(b)) + c/d", "a*b/(c + d) + exp(-c*a)", "sin(a*a) + b*c - d/a",
    "sqrt(a*b) + log(c + d*d) - sin(c)", "a*exp(-b*c)*cos(d)", "(1 + a*b)/(2 + sin(c*d))", "a*a*a - b*c*c + d*a*b",
    "log(a*b + 1)*sin(c) + d/(a + 1)",
)  # fmt: skip
"""Formulas of 9 to 17 nodes of four variables, mostly beyond what 100 000 individuals find without seeding."""

SOLVED = 1e-6
"""Share of the variance left unexplained."""


def table(formula: str, noise: float = 0.0, rows: int = 300) -> Dataset:
    """Rows of a formula, uniform from 0.5 to 3, with a share of noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (rows, 4))
    y = shine.jit(formula, params=tuple("abcd"))(*X.T)
    return Dataset.from_arrays(X, y + noise * y.std() * rng.normal(size=rows), features=tuple("abcd"))


def settings_of(islands: int, population: int, interval: int, seed: int = 0, **stop: object) -> SearchSettings:
    """Settings without seeding: only the evolution is measured."""
    return SearchSettings(
        primitives=PRIMITIVES,
        evolution=EvolutionSettings(
            population=population, islands=islands, migration_interval=interval, seeding=0.0, max_size=25
        ),
        # As in a worker.
        fitness=FitnessSettings(threads=1),
        stop=StopSettings(**{"seconds": None, "stagnation": None, "loss": 0.0, **stop}),  # type: ignore[arg-type]
        seed=seed,
    )


def efficiency(generations: int, repeats: int) -> None:
    """Print the evaluations a second of one and of two processes, and the ratio."""
    dataset, settings = table(HARD[0], noise=0.1), settings_of(8, 500, 20, generations=generations)
    ratios = []
    for repeat in range(repeats):
        speed = []
        for workers in (1, 2):
            moments: list[tuple[float, int]] = []

            def note(progress: Progress, moments: list[tuple[float, int]] = moments) -> bool:
                moments.append((time.perf_counter(), progress.evaluations))
                # What comes after the evolution is not shared.
                return progress.generation >= generations

            with opened(workers=workers) as pool:
                search(dataset, settings, Observers(note, pool=pool))
            # In the first epochs, the processes start and read their code.
            (begin, before), (end, after) = moments[3], moments[-1]
            speed.append((after - before) / (end - begin))
        ratios.append(speed[1] / speed[0])
        print(f"{repeat}: {speed[0]:8.0f} {speed[1]:8.0f} evaluations/s, ratio {ratios[-1]:.2f}; load {load()}")
    print(f"median ratio {median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


@dataclass(frozen=True)
class Costs:
    """Measured times of one island's epoch, in seconds, and bytes."""

    epoch: Sequence[float]
    send: float
    receive: float
    sent: float
    received: float
    rest: float


def measured(generations: int) -> Costs:
    """The costs of epochs of 20 generations of 1000 individuals."""
    spent: list[tuple[float, ...]] = []

    gaps: list[float] = []

    class Measuring(epochs.LocalEpochs):
        def __call__(self, world: epochs.World, starts: Sequence[epochs.Epoch]) -> Iterator[epochs.EpochResult]:
            for start in starts:
                begin = time.thread_time()
                there = pickle.dumps(start)
                sent = time.thread_time()
                start = pickle.loads(there)
                passed = next(super().__call__(world, [start]))
                back = pickle.dumps(passed)
                packed = time.thread_time()
                passed = pickle.loads(back)
                unpacked = time.thread_time()
                spent.append((packed - sent, sent - begin, unpacked - packed, len(there), len(back)))
                yield passed
                gaps.append(time.thread_time() - unpacked)

    with patch("shine.search.evolution.evolution.LocalEpochs", Measuring):
        settings = settings_of(8, 1000, 20, generations=generations)
        search(table(HARD[0], noise=0.1), settings, Observers(lambda progress: progress.generation >= generations))
    # The first epochs only make the first populations.
    steady = np.array(spent[8:])
    send, receive, sent, received = steady[:, 1:].mean(axis=0)
    return Costs(steady[:, 0].tolist(), send, receive, sent, received, fmean(gaps[8:]))


def makespan(costs: Costs, workers: int, islands: int, rounds: int, latency: float, bandwidth: float) -> float:
    """Seconds of some rounds of epochs: the main process sends and receives one island at a time."""
    rng = np.random.default_rng(0)
    now = 0.0
    for _ in range(rounds):
        free = [now] * workers
        ready = []
        for _ in range(islands):
            now += costs.send
            worker = int(np.argmin(free))
            begin = max(free[worker], now + latency + costs.sent / bandwidth)
            free[worker] = begin + float(rng.choice(costs.epoch))
            ready.append(free[worker] + latency + costs.received / bandwidth)
        # Results are taken in the order of the islands.
        for moment in ready:
            now = max(now, moment) + costs.receive + costs.rest
    return now


def schedule(generations: int, latency: float, bandwidth: float) -> None:
    """Print how busy workers would be."""
    costs = measured(generations)
    spread = np.std(costs.epoch) / fmean(costs.epoch)
    print(
        f"epoch {fmean(costs.epoch):.2f} s (standard deviation {spread:.0%}, {len(costs.epoch)} epochs), "
        f"sending {1e3 * costs.send:.1f} ms and "
        f"{costs.sent / 1e6:.2f} MB, receiving {1e3 * costs.receive:.1f} ms and {costs.received / 1e6:.2f} MB, "
        f"rest of the main process {1e3 * costs.rest:.1f} ms an island; load {load()}"
    )
    print("workers  busy with one island each  with four each")
    for workers in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        shares = []
        for each in (1, 4):
            took = makespan(costs, workers, each * workers, 20, latency, bandwidth)
            shares.append(20 * each * fmean(costs.epoch) / took)
        print(f"{workers:7} {shares[0]:12.0%} {shares[1]:16.0%}")


def diversity(state: State) -> tuple[float, float]:
    """Shares of the living individuals whose symbols differ from all others, and of those only one island has."""
    islands = [np.unique(symbols(island.parents)) for island in state.islands]
    living = sum(len(island.parents) for island in state.islands)
    found, counts = np.unique(np.concatenate(islands), return_counts=True)
    return len(found) / living, float(np.mean(counts == 1))


def compare(evaluations: int, problems: int, seeds: int, workers: int | None) -> None:
    """Print evaluations to the solution, and the diversity, of eight islands and of one population."""
    wins, totals, solved = [0, 0], [0, 0], [0, 0]
    shares: tuple[list[float], list[float]] = [], []
    print("formula                                 8 islands   1 population   diversity")
    for text in HARD[:problems]:
        for seed in range(seeds):
            needed, different = [], []
            for which, (islands, population) in enumerate(((8, 125), (1, 1000))):
                states: list[State] = []
                with opened(workers=workers if islands > 1 else None) as pool:
                    result = search(
                        table(text),
                        settings_of(islands, population, 10, seed, loss=SOLVED),
                        Observers(
                            lambda progress: progress.evaluations >= evaluations,
                            save=lambda state, states=states: states.__setitem__(slice(None), [state]),  # type: ignore[misc]
                            pool=pool,
                        ),
                    )
                found = result.stopped_by == "loss" and result.evaluations <= evaluations
                needed.append(result.evaluations if found else evaluations)
                different.append(diversity(states[-1])[0])
                shares[which].append(different[-1])
                solved[which] += found
                totals[which] += needed[-1]
            wins[0] += needed[0] < needed[1]
            wins[1] += needed[1] < needed[0]
            print(f"{text:38} {needed[0]:10} {needed[1]:14}   {different[0]:.2f} {different[1]:.2f}", flush=True)
    print(f"solved: {solved[0]} and {solved[1]}; sooner: {wins[0]} and {wins[1]}; evaluations: {totals}")
    print(f"share of different formulas at the end: {fmean(shares[0]):.2f} and {fmean(shares[1]):.2f}; load {load()}")


def seeding(problems: int, workers: int, noise: float) -> None:
    """Print the seconds of the seeding in one process and with workers, and the ratio."""
    functions, names = primitive_table(PRIMITIVES)
    ratios = []
    with opened(workers) as pool:
        begun = [pool.submit(abs, number) for number in range(workers)]
        wait(begun)  # the processes begin
        for text in HARD[:problems]:
            dataset = table(text, noise, rows=1000)
            primitives = PrimitiveSet(select(functions, names), dataset.features)
            seconds, found = [], []
            # The first look in the processes reads their code; it is no part of the comparison.
            for where in (pool, None, pool) if not ratios else (None, pool):
                begin = time.perf_counter()
                guesses = find_guesses(seeding_task(dataset, primitives, 1, pool=where), np.random.default_rng(0))
                seconds.append(time.perf_counter() - begin)
                found.append(guesses.candidates.values.tobytes())
            alone, shared = seconds[-2:]
            same = "same" if len(set(found)) == 1 else "OTHER"
            ratios.append(alone / shared)
            print(
                f"{text:38} {alone:5.1f} s {shared:5.1f} s, ratio {ratios[-1]:.2f}, {same} guesses; load {load()}",
                flush=True,
            )
    print(f"median ratio {median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


def load() -> str:
    """The load of the last minute, and the processors."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("efficiency", help="two processes beside one")
    first.add_argument("--generations", type=int, default=200, help="more than 60 [200]")
    first.add_argument("--repeats", type=int, default=5)
    second = commands.add_parser("schedule", help="4 to 256 workers, simulated")
    second.add_argument("--generations", type=int, default=100)
    second.add_argument("--latency", type=float, default=1e-3, help="seconds of a message [0.001]")
    second.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second [1e9]")
    third = commands.add_parser("search", help="islands against one population")
    third.add_argument("--evaluations", type=int, default=100_000)
    third.add_argument("--problems", type=int, default=len(HARD))
    third.add_argument("--seeds", type=int, default=1)
    third.add_argument("--workers", type=int, help="processes that share the islands")
    fourth = commands.add_parser("seeding", help="seeding with workers beside seeding alone")
    fourth.add_argument("--problems", type=int, default=5)
    fourth.add_argument("--workers", type=int, default=2)
    fourth.add_argument("--noise", type=float, default=0.05, help="share of the target's deviation [0.05]")
    options = vars(parser.parse_args())
    run = {"efficiency": efficiency, "schedule": schedule, "search": compare, "seeding": seeding}
    run[options.pop("command")](**options)
