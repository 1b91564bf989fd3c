"""Can any content of the code cache make Shine crash, hang, or run code that it did not write?

    python tests/campaigns/poisoned_cache.py [--cases 1000] [--seed 0]

Each case damages a good cache in one of the ways of `helpers/poisons.py`, and then evaluates a formula. Without root,
the ways that need files of other owners are left out.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.poisons import FOREIGN_OWNER, KINDS, Scene

import shine
from shine.compiler.llvm import cache
from shine.evaluate.tiers.machine_rows import Machine, machine_of
from shine.evaluate.tiers.machine_rows import _machine_of as machines
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import select

SECONDS = 30
"""Time limit of a case."""


X = np.linspace(1, 2, 100)


FUNCTIONS = select(STANDARD, ["add"])


POPULATION = shine.Population.from_trees([shine.parse("x0 + 1")], shine.PrimitiveSet(FUNCTIONS, ("x0",)))


def outcome() -> str:
    """Evaluate the formula with the present cache; the outcome."""
    cache._warn.cache_clear()
    machines.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = shine.data.datasets.dataset.Dataset.from_arrays(X[:, None], X)
        values = MachineEvaluator(data, "mse", False, "float64").predict(POPULATION)[0]
    if len(caught) > 1:
        return f"{len(caught)} warnings"
    if not np.array_equal(values, X + 1):
        return "foreign code was run"
    return "right, with a warning" if caught else "right"


def scene(home: Path, number: int, seed: int) -> Scene:
    """A fresh copy of the good cache."""
    place = home / f"case{number}"
    place.mkdir(mode=0o700)
    shutil.copytree(home / "good", place / "cache")
    os.environ["SHINE_CACHE_DIR"] = str(place / "cache")
    folder = place / "cache"
    folder.chmod(0o700)
    names = (home / "names").read_text().split()
    head = len(cache._MAGIC) + cache._DIGEST_BYTES
    entry, other = (folder / name for name in names)
    rng = random.Random(f"{seed} {number}")
    return Scene(rng, folder, entry, other, entry.read_bytes()[head:], other.read_bytes()[head:])


def work(home: Path, first: int, last: int, seed: int) -> None:
    """Run the cases of one process; print a line before and after each."""
    names = [name for name in KINDS if os.geteuid() == 0 or name not in FOREIGN_OWNER]
    for number in range(first, last):
        name = names[number % len(names)]
        print(f"{number}\t{name}", flush=True)
        KINDS[name](scene(home, number, seed))
        print(outcome(), flush=True)
        shutil.rmtree(home / f"case{number}", ignore_errors=True)


def good_cache(home: Path) -> None:
    """Make a cache with two machines, the wanted one first."""
    os.environ["SHINE_CACHE_DIR"] = str(home / "good")
    names: list[str] = []
    for function in ("add", "sub"):
        Machine(select(STANDARD, [function]), "float64")
        names += [path.name for path in (home / "good").iterdir() if path.name not in (cache.NAME, *names)]
    (home / "names").write_text(" ".join(names))
    assert machine_of(FUNCTIONS, "float64")


def check_canary(home: Path) -> None:
    """Check that foreign code is detected if it runs: sign it with the user's secret."""
    number = -1
    own = scene(home, number, 0)
    own.entry.write_bytes(own.signed(own.foreign, own.secret.read_bytes()))
    said = outcome()
    assert said == "foreign code was run", said


def run(home: Path, cases: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Counts of the outcomes, and the cases with a wrong outcome."""
    outcomes, bad, number = Counter[str](), list[str](), 0
    while number < cases:
        command = [sys.executable, __file__, "--work", str(home), str(number), str(cases), "--seed", str(seed)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str] = queue.Queue()

        def read(worker: subprocess.Popen[str] = worker, lines: queue.Queue[str] = lines) -> None:
            for line in worker.stdout or ():
                lines.put(line.rstrip("\n"))
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        while begun := lines.get(timeout=60):
            try:
                said = lines.get(timeout=SECONDS) or f"crash {worker.wait()}"
            except queue.Empty:
                said = "hang"
            number = int(begun.split("\t")[0]) + 1
            outcomes[said.partition(" -")[0]] += 1
            if not said.startswith("right"):
                bad.append(f"{begun}: {said}")
                break
        worker.kill()
        worker.wait()
    return outcomes, bad


def main() -> int:
    """Run the cases and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        home, first, last = options.work
        work(Path(home), int(first), int(last), options.seed)
        return 0
    with tempfile.TemporaryDirectory() as home:
        good_cache(Path(home))
        check_canary(Path(home))
        outcomes, bad = run(Path(home), options.cases, options.seed)
    kinds = len(KINDS) if os.geteuid() == 0 else len(KINDS) - len(FOREIGN_OWNER)
    print(f"{options.cases} cases of {kinds} kinds:", ", ".join(f"{count} {name}" for name, count in outcomes.items()))
    print("\n".join(bad))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
