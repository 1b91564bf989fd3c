"""Does a process that is forked at any moment compute correctly?

    python tests/campaigns/fork_storm.py [--forks 500] [--seed 0]

Threads evaluate with evaluators that have two threads, change their primitives, compile kernels, and load machines from
the code cache, while the main thread forks at random moments. Each child, and some children of children, evaluates
what the parent has evaluated, compiles, or searches; a child that does not finish in time counts as a hang.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

import shine
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.tiers.machine_rows import Machine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import select
from shine.lang.program.trees import tree_program

SECONDS = 60
"""Time limit of a child; a search takes a few seconds when both processors are busy."""

_WRONG, _FAILED = 3, 4

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 2, (250_000, 2))
Y = X[:, 0] * X[:, 1]
SMALL = X[:300]


def _population(*sources: str) -> shine.Population:
    return shine.Population.from_sources(sources * 3, ("x0", "x1"))


POPULATIONS = [
    _population("x0*x1", "x0 + x1", "x0*x0 + 1"),
    _population("exp(x0) - x1", "sin(x0)*2", "x0 - log(x1)"),
    _population("sqrt(x0)/x1", "exp(sin(x0))", "cos(x1) + x0"),
]
A, B = X.T
VALUES = [
    [A * B, A + B, A * A + 1],
    [np.exp(A) - B, np.sin(A) * 2, A - np.log(B)],
    [np.sqrt(A) / B, np.exp(np.sin(A)), np.cos(B) + A],
]
LOSSES = [np.array([np.mean((value - Y) ** 2) for value in values] * 3) for values in VALUES]

EVALUATOR = shine.Evaluator(X, Y, threads=2)
KERNEL = shine.jit("a*b + 1")
GRAPH = Kernel(tree_program(shine.parse("a*b - sqrt(a)"), "float64"), threads=2)


def evaluate(rng: random.Random) -> bool:
    """Whether a population's losses are right; populations of several primitives take turns."""
    which = rng.randrange(len(POPULATIONS))
    return np.allclose(EVALUATOR(POPULATIONS[which]), LOSSES[which], rtol=1e-9, atol=1e-12)


def evaluate_anew(rng: random.Random) -> bool:
    """Whether a new evaluator's losses are right."""
    which = rng.randrange(len(POPULATIONS))
    found = shine.Evaluator(X, Y, threads=2)(POPULATIONS[which])
    return np.allclose(found, LOSSES[which], rtol=1e-9, atol=1e-12)


def call(rng: random.Random) -> bool:
    """Whether compiled kernels are right."""
    return KERNEL(2.0, 3.0) == 7.0 and np.array_equal(KERNEL(A, B), A * B + 1)


def call_graph(rng: random.Random) -> bool:
    """Whether a graph's kernel, whose rows threads share, is right."""
    repeated = np.tile(A, 3), np.tile(B, 3)
    return np.allclose(GRAPH(*repeated), repeated[0] * repeated[1] - np.sqrt(repeated[0]), rtol=1e-12)


def compile_kernel(rng: random.Random) -> bool:
    """Whether a new kernel is right."""
    number = rng.randrange(10_000)
    return shine.jit(f"a*{number} + sin(b)")(2.0, 0.0) == 2.0 * number


def load_machine(rng: random.Random) -> bool:
    """Whether a machine is made, or loaded from the cache."""
    return bool(Machine(select(STANDARD, rng.sample(["add", "sub", "mul", "div"], 2)), "float64"))


def search(rng: random.Random) -> bool:
    """Whether a search finds the product."""
    found = shine.evolve(SMALL, Y[:300], features=("x0", "x1"), population=50, generations=2, seconds=30, threads=2)
    return found.best.loss < 1e-20


WORKS: list[Callable[[random.Random], bool]] = [
    evaluate, evaluate_anew, call, call_graph, compile_kernel, load_machine,
]  # fmt: skip


def forked(seed: int, depth: int) -> str:
    """Fork a child that does some work; how it ended."""
    child = os.fork()
    if child == 0:
        os._exit(_in_child(seed, depth))
    end = time.monotonic() + SECONDS * (1 + depth)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "right", _WRONG: "wrong", _FAILED: "failed"}.get(code, f"ended by {code}")
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hang"


def _in_child(seed: int, depth: int) -> int:
    rng = random.Random(seed)
    try:
        works = [rng.choice(WORKS), *([search] if rng.random() < 0.05 else [])]
        if not all(work(rng) for work in works):
            return _WRONG
        if depth and forked(seed + 1, depth - 1) != "right":
            return _WRONG
        return 0 if evaluate(rng) else _WRONG
    except BaseException:
        traceback.print_exc()
        return _FAILED


def main() -> int:
    """Fork again and again, and print how children and threads ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of forks beside threads
    rng, over, wrong = random.Random(options.seed), threading.Event(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHINE_CACHE_DIR"] = folder
        # Modules are imported before: Python itself cannot fork while another thread imports one.
        assert search(rng) and all(work(rng) for work in WORKS)

        def go_on(works: list[Callable[[random.Random], bool]], seed: int) -> None:
            own = random.Random(seed)
            while not over.is_set():
                work = own.choice(works)
                if not work(own):
                    wrong.append(work.__name__)

        kinds = [[evaluate], [evaluate, evaluate_anew, call_graph], [compile_kernel, load_machine]]
        threads = [threading.Thread(target=go_on, args=(works, i)) for i, works in enumerate(kinds)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        outcomes = Counter[str]()
        for number in range(options.forks):
            time.sleep(rng.choice([0.0, 0.0003, 0.003, 0.02]) * rng.random())
            outcomes[forked(options.seed + 1000 * number, rng.choice([0, 0, 0, 0, 0, 0, 1, 2]))] += 1
        over.set()
        for thread in threads:
            thread.join()
        counts = ", ".join(f"{count} {name}" for name, count in outcomes.items())
        print(f"{options.forks} forks in {time.monotonic() - begin:.0f} s: {counts}")
        print(f"wrong in the threads of the parent: {wrong or 'nothing'}")
    return int(bool(wrong) or set(outcomes) != {"right"})


if __name__ == "__main__":
    sys.exit(main())
