"""Fits of awkward tables: does every one end in a formula, or in an error that a user understands?

    python tests/campaigns/fuzz_fit.py --cases 2000 --first 0 --workers 2

`helpers/awkward_tables.py` draws the table of each number: its first rows are fitted, and fresh rows of the same kind
predicted. `helpers/fits.py` says when a case fails. Errors are counted by their text, failures are listed with their
numbers: ``--first N --cases 1 --verbose`` repeats one.
"""

from __future__ import annotations

import argparse
import collections
import logging
import multiprocessing
import re
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.awkward_tables import case
from helpers.fits import Skipped, outcome


def run(number: int) -> tuple[int, str, str, float, str, list[str]]:
    """Run one case in a worker: its number, verdict, message, seconds, notes, and the searches skipped."""
    made, skipped = case(number), Skipped()
    logger = logging.getLogger("shine")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(skipped)
    began = time.perf_counter()
    kind, text = outcome(made)
    logger.removeHandler(skipped)
    return number, kind, text, time.perf_counter() - began, ", ".join(made.notes), skipped.found


def general(text: str) -> str:
    """A message without numbers and names, so that similar ones are counted together."""
    return re.sub(r"'[^']*'", "'...'", re.sub(r"-?\d[\d.e+-]*", "#", text.split(": (")[0]))[:110]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="run in this process, print tracebacks")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.cases)
    if options.verbose:
        for number in numbers:
            made = case(number)
            print(number, made.notes, *outcome(made, verbose=True))
        return 0
    counts: collections.Counter[str] = collections.Counter()
    said: collections.Counter[str] = collections.Counter()
    seconds: list[float] = []
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=500) as pool:
        for number, kind, text, spent, notes, skipped in pool.imap_unordered(run, numbers):
            counts[kind] += 1
            seconds.append(spent)
            if kind == "FAILED":
                print(f"case {number} ({notes}): {text}", flush=True)
            if kind != "ok":
                said[f"{kind}: {general(text)}"] += 1
            for search in skipped:
                said[f"skipped {search[:150]}"] += 1
                counts["skipped"] += 1
            if spent > 5:
                print(f"case {number} took {spent:.1f} s ({notes})", flush=True)
    print("\n".join(f"{count:6} x {text}" for text, count in said.most_common(30)))
    quantiles = np.quantile(seconds, [0.5, 0.9, 0.99, 1])
    print("seconds a case: median {:.2f}, 90 % {:.2f}, 99 % {:.2f}, most {:.2f}".format(*quantiles))
    print(f"{dict(counts)} in {time.perf_counter() - began:.0f} s")
    return int(counts["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
