"""Fits of 3 to 20 rows of any scale: does every one end in a sensible formula?

    python tests/campaigns/tiny_fits.py --cases 2000 --first 0 --workers 2 --log tiny.jsonl

`helpers/tiny_tables.py` draws the table of each number: scales from 1e-35 to 1e35, ties, constant columns, repeated
rows, outliers, one to five columns. `helpers/tiny_fits.py` says when a case fails. With a log, the same command goes on
where it was interrupted. ``--first N --cases 1 --verbose`` repeats one.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.tiny_fits import tiny_outcome
from helpers.tiny_tables import tiny_case


def run(number: int, generations: int) -> tuple[int, str, str, float]:
    """Run one case in a worker: its number, verdict, text and seconds."""
    began = time.perf_counter()
    kind, text = tiny_outcome(tiny_case(number), generations)
    return number, kind, text, time.perf_counter() - began


def finished(log: Path | None) -> dict[int, tuple[str, str, float]]:
    """The verdict, text and seconds of the cases that a log has; a truncated line is left out."""
    found: dict[int, tuple[str, str, float]] = {}
    if log is not None and log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                number, kind, text, seconds = json.loads(line)
            except ValueError:
                continue
            found[number] = kind, text, seconds
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file of the cases that have ended")
    parser.add_argument("--verbose", action="store_true", help="run in this process, print tracebacks")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.cases)
    if options.verbose:
        for number in numbers:
            case = tiny_case(number)
            print(number, case.notes, *tiny_outcome(case, options.generations, verbose=True))
        return 0
    done = {number: outcome for number, outcome in finished(options.log).items() if number in numbers}
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=500) as pool:
        missing = [number for number in numbers if number not in done]
        for number, *outcome in pool.imap_unordered(partial(run, generations=options.generations), missing):
            done[number] = tuple(outcome)
            if options.log is not None:
                with options.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([number, *outcome]) + "\n")
    failures = {number: text for number, (kind, text, _) in sorted(done.items()) if kind == "FAILED"}
    for number, text in failures.items():
        print(f"case {number} ({tiny_case(number).notes}): {text}")
    counts = collections.Counter(kind for kind, _, _ in done.values())
    said = collections.Counter(text.split(":")[0][:110] for kind, text, _ in done.values() if kind == "error")
    print("\n".join(f"{count:6} x {text}" for text, count in said.most_common(10)))
    quantiles = np.quantile([seconds for _, _, seconds in done.values()], [0.5, 0.9, 0.99, 1])
    print("seconds a case: median {:.2f}, 90 % {:.2f}, 99 % {:.2f}, most {:.2f}".format(*quantiles))
    print(f"{dict(counts)} in {time.perf_counter() - began:.0f} s")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
