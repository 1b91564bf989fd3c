"""Programs around fits, as users write them: does every one end in a sensible model in time, or in a clear error?

    python tests/campaigns/fuzz_programs.py --fits 3000 --seed 0

`helpers/fit_programs.py` draws the program of each number: the face, the container of the data, their values, settings,
losses, guesses, templates, second fits. `helpers/fit_uses.py` runs it and judges the fit, its processor time, and every
use of its model. Programs run in a process of their own, so that a crash or a hang is found and told, too; a fit beyond
its limit is tried once more, because the first fit of its kind compiles.
``--seed N --fits 1 --verbose`` repeats number N.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import re
import sys
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

HANGS = 60.0
"""Seconds after which a program is ended."""

BATCH = 250
"""Programs of a process."""


def work(numbers: list[int], pipe: Connection) -> None:
    """Run programs in a process of their own, and send what came of them."""
    import faulthandler

    from helpers.fit_programs import program
    from helpers.fit_uses import run

    faulthandler.enable()
    warm()
    for number in numbers:
        pipe.send(("begins", number, None))
        found = run(program(number))
        if any("TIME" in text for text in found.failures):
            again = run(program(number))
            found = again if not any("TIME" in text for text in again.failures) else found
        made = program(number)
        pipe.send(("ends", number, asdict(found) | {"notes": made.notes, "face": made.face}))
    pipe.send(("done", -1, None))


def warm() -> None:
    """Compile what every fit needs."""
    import shine

    X = np.random.default_rng(0).uniform(1, 5, (30, 2))
    options: dict[str, Any] = {"max_time": None, "generations": 2, "population_size": 20, "random_state": 0}
    shine.SymbolicRegressor(**options).fit(X, X[:, 0] * X[:, 1]).conf_int()
    shine.SymbolicClassifier(**options).fit(X, X[:, 0] > 3)
    shine.evolve(X, X[:, 0], template="f(x0)*exp(-k*x1)", seconds=None, generations=2, population=20)


def results(numbers: list[int]) -> Any:
    """Number and outcome of each program; processes that die or hang are started again after it."""
    left = list(numbers)
    context = multiprocessing.get_context("spawn")
    while left:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(left[:BATCH], there))
        process.start()
        there.close()
        current: int | None = None
        while True:
            patience = HANGS if current is not None else 300.0
            try:
                if not here.poll(patience):
                    event, text = "hangs", f"HANGS for {patience:.0f} s"
                    process.kill()
                else:
                    event, number, found = here.recv()
                    text = ""
            except EOFError:
                process.join()
                event, text = "dies", f"DIES with exit code {process.exitcode}"
            if event == "begins":
                current = number
            elif event == "ends":
                left.remove(number)
                current = None
                yield number, found
            elif event == "done":
                break
            else:
                if current is None:
                    raise RuntimeError(f"the process {text} between programs")
                left.remove(current)
                yield current, {"verdict": "FAILED", "failures": [text], "said": [], "skipped": [], "text": "",
                                "seconds": 0.0, "processor": 0.0, "limit": None, "notes": [], "face": "?"}  # fmt: skip
                break
        process.join()


def general(text: str) -> str:
    """A message without numbers and names, so that similar ones are counted together."""
    return re.sub(r"'[^']*'", "'...'", re.sub(r"-?\d[\d.e+-]*", "#", text))[:140]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--log", type=Path, help="file to which the outcome of each program is added, as JSON")
    parser.add_argument("--verbose", action="store_true", help="run in this process, print everything")
    options = parser.parse_args()
    numbers = list(range(options.seed, options.seed + options.fits))
    if options.verbose:
        from helpers.fit_programs import program
        from helpers.fit_uses import run

        warm()
        for number in numbers:
            made = program(number)
            print(number, made.face, *made.notes, sep="\n  ")
            print(json.dumps(asdict(run(made)), indent=1, ensure_ascii=False))
        return 0
    table: collections.Counter[str] = collections.Counter()
    said: collections.Counter[str] = collections.Counter()
    faces: collections.Counter[tuple[str, str]] = collections.Counter()
    seconds, beyond = [], []
    began = time.perf_counter()
    for number, found in results(numbers):
        if options.log is not None:
            with options.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"number": number, **found}) + "\n")
        table[found["verdict"]] += 1
        faces[found["face"], found["verdict"]] += 1
        seconds.append(found["processor"])
        if found["limit"] is not None:
            beyond.append(found["processor"] - 1.1 * found["limit"])
        for text in found["failures"]:
            print(f"--seed {number} ({found['face']}): {text}", flush=True)
        if found["verdict"] == "error":
            said[f"fit: {general(found['text'])}"] += 1
        said.update(general(text) for text in found["said"])
        said.update(f"inside, skipped: {general(text)}" for text in found["skipped"])
    print("\n".join(f"{count:6} x {text}" for text, count in said.most_common(60)))
    print("\n".join(f"{face:12} {verdict:8} {count}" for (face, verdict), count in sorted(faces.items())))
    print("seconds of the processor a fit: median {:.2f}, 90 % {:.2f}, 99 % {:.2f}, most {:.2f}".format(
        *np.quantile(seconds, [0.5, 0.9, 0.99, 1])))  # fmt: skip
    print("beyond 1.1 times the limit: 99 % {:.2f} s, most {:.2f} s".format(*np.quantile(beyond or [0.0], [0.99, 1])))
    print(f"{options.fits} fits: {dict(table)} in {time.perf_counter() - began:.0f} s")
    return int(table["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
