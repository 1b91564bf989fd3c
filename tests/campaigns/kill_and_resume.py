"""Does a run that is killed at any moment, and resumed, end as if nothing had happened?

    python tests/campaigns/kill_and_resume.py [--kills 100] [--seed 0] [--generations 25] [--kinds plain seeded ...]

Runs of four kinds are processes that are killed by SIGKILL at random moments, resumed, often killed again, and resumed
to the end. Every file is then compared with those of a run that nothing disturbed, except for the time spent. Half of
the runs write a checkpoint after every generation, the others when a random time has passed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.run_folders import ending

from shine.faces.config import read_job
from shine.faces.runs.checkpoints import Shelf
from shine.runs import Notice, chosen_folder, resume_job, run_job
from shine.search.run import search

DATA = """
data:
  generate:
    rows: 150
    noise: 0.02
    features: {a: {uniform: {low: 1, high: 3}}, b: {uniform: {low: 1, high: 3}}, c: {normal: {}}}
    target: a**1.5/b + b*sin(a) + 0.1*c
primitives: [add, sub, mul, div, sin, sqrt]
"""

KINDS = {
    "plain": """
evolution: {population: 300, max_size: 20, seeding: 0.0}
guesses: [a*b]
""",
    "seeded": """
evolution: {population: 200, max_size: 20, seeding_members: 10}
""",
    "islands": """
evolution:
  {population: 100, max_size: 20, islands: 3, migration_interval: 4, patience: 6, seeding: 0.0, complexity: {sin: 3}}
""",
    "constrained": """
evolution: {population: 200, max_size: 16, seeding: 0.0}
fitness: {loss: mae}
constraints: {monotonic: {a: increasing}, required: [b]}
""",
}
"""Configurations that use different parts of the state."""


def process(kind: str, folder: Path, checkpoint_seconds: float) -> BaseProcess:
    """A process that begins the run, or goes on with it."""
    # Forked, so that kills hit a search rather than the start of Python.
    running = get_context("fork").Process(target=work, args=(kind, folder, checkpoint_seconds))
    running.start()
    return running


def work(kind: str, folder: Path, checkpoint_seconds: float) -> None:
    """The work of such a process."""
    if (folder / "config.yaml").exists():
        resume_job(folder, tell=hush, checkpoint_seconds=checkpoint_seconds)
        return
    job = read_job(folder.parent / f"{kind}.yaml")
    if folder.exists():  # killed before it wrote a configuration
        shutil.rmtree(folder)
    run_job(job, chosen_folder(folder), tell=hush, checkpoint_seconds=checkpoint_seconds)


def hush(notice: Notice) -> None:
    """Ignore notices."""


def differences(folder: Path, expected: dict[str, Any]) -> list[str]:
    """Names of the results of a run that differ from the expected ones."""
    found = ending(folder)
    return [name for name in found if found[name] != expected[name]]


def stage(folder: Path) -> str:
    """How far a run came before it was killed."""
    if not Shelf(folder).paths:
        return "before a checkpoint"
    return "at the end" if (folder / "result.json").exists() else "after a checkpoint"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rng = random.Random(options.seed)
        return 1 if campaign(Path(scratch), options.kills, options.generations, rng, options.kinds) else 0


def campaign(scratch: Path, kills: int, generations: int, rng: random.Random, kinds: Sequence[str]) -> int:
    """Kill and resume until there were enough kills; the number of runs that ended differently."""
    assert search  # imported here, once for all processes
    expected, seconds = {}, {}
    for kind in kinds:
        settings = KINDS[kind]
        stop = f"stop: {{generations: {generations}, seconds: null}}\n"
        (scratch / f"{kind}.yaml").write_text(DATA + settings + stop)
        process(kind, scratch / f"first {kind}", 0).join()  # compiles the machines, and keeps them on disk
        began = time.perf_counter()
        process(kind, scratch / f"expected {kind}", 0).join()
        expected[kind], seconds[kind] = ending(scratch / f"expected {kind}"), time.perf_counter() - began
        print(f"{kind}: {seconds[kind]:.1f} s undisturbed", flush=True)
    done, runs, different = 0, 0, 0
    reached: Counter[str] = Counter()
    while done < kills:
        kind, runs = kinds[runs % len(kinds)], runs + 1
        folder = scratch / f"run {runs}"
        every = rng.choice([0.0, rng.uniform(0.05, 0.5)])
        for _ in range(rng.randint(1, 6)):
            running = process(kind, folder, every)
            running.join(rng.uniform(0, 1.2 * seconds[kind]))
            if not running.is_alive():
                break
            running.kill()
            running.join()
            done += 1
            reached[stage(folder)] += 1
        else:
            running = process(kind, folder, every)
            running.join()
        wrong = differences(folder, expected[kind]) if running.exitcode == 0 else [f"exit code {running.exitcode}"]
        different += bool(wrong)
        end = f"ANOTHER END: {', '.join(wrong)}" if wrong else "the same end"
        print(f"run {runs}, {kind}: {done} kills so far, {end}", flush=True)
    print(
        f"{done} kills ({', '.join(f'{n} {where}' for where, n in sorted(reached.items()))}) in {runs} runs; "
        f"{different} ended otherwise than undisturbed"
    )
    return different


if __name__ == "__main__":
    sys.exit(main())
