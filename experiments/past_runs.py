"""How long it takes to find runs among many: `python experiments/past_runs.py --runs 10000`.

Makes one run, copies its folder with other formulas, seeds and settings, and asks. Beside that it reads every
result.json by a script of a few lines, which must find the same.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from shine.faces.config import read_job
from shine.runs import find, run_job

CONFIG = """
data:
  generate: {rows: 100, features: {a: {uniform: {low: 1, high: 2}}, b: {uniform: {low: 1, high: 2}}}, target: a*exp(b)}
primitives: [add, sub, mul, div, exp, log, sqrt]
evolution: {population: 100, seeding: 0}
stop: {generations: 2, seconds: 60}
"""

PARTS = ("exp(-{c}*a)", "log(a + {c})", "sqrt(b*{c})", "{c}*a", "b/(a + {c})", "exp(a/b)", "sin({c}*b)")
"""Formulas are sums and products of these."""

QUERIES: dict[str, dict[str, Any]] = {
    "the 20 latest": {"limit": 20},
    "exp, fewer than 12 nodes, R2 0.9": {"uses": "exp", "nodes": "<12", "r2": 0.9},
    "the 100 best formulas with exp, of all fronts": {"uses": "exp", "formulas": True, "sort": "r2", "limit": 100},
    "a setting": {"settings": {"evolution.population": 500}},
    "two settings, best R2 first": {"settings": {"evolution.population": ">300", "stop.seconds": 20}, "sort": "r2"},
    "a part of the text": {"formula": "exp(a/b)", "limit": 50},
    "a seed": {"where": "seed = 1234"},
    "all": {},
}


def formula(rng: random.Random, parts: int) -> str:
    """A random formula of some parts."""
    texts = [rng.choice(PARTS).format(c=f"{rng.uniform(0, 10):.17g}") for _ in range(parts)]
    return "".join(text if not place else rng.choice((" + ", " - ", "*")) + text for place, text in enumerate(texts))


def varied(result: dict[str, Any], rng: random.Random, seed: int) -> dict[str, Any]:
    """A result with another front of ten formulas."""
    front = [
        {**result["best"], "expression": formula(rng, 1 + size // 3), "loss": 1 / size / rng.uniform(1, 9),
         "r2": 1 - 1 / (size + rng.uniform(1, 9)), "complexity": 2 * size}
        for size in range(1, 11)
    ]  # fmt: skip
    return {**result, "front": front, "best": rng.choice(front), "seed": seed, "seconds": rng.uniform(1, 100)}


def make(folder: Path, runs: int) -> None:
    """Folders of runs."""
    (folder / "template").mkdir()
    path = folder.parent / "template.yaml"
    path.write_text(CONFIG)
    run_job(read_job(path), folder / "template")
    config, rng = (folder / "template/config.yaml").read_text(), random.Random(0)
    result = json.loads((folder / "template/result.json").read_text())
    for number in range(1, runs):
        place = folder / f"run-{number:05}"
        place.mkdir()
        population, seconds = rng.choice((100, 200, 500, 1000)), rng.choice((10.0, 20.0, 40.0))
        # Crossover is a number of its own: no two runs have the same settings.
        settings = dict(result["settings"])
        settings["evolution"] |= {"population": population, "crossover": 0.3 + number * 1e-6}
        settings["stop"] |= {"seconds": seconds}
        settings["seed"] = number
        (place / "config.yaml").write_text(config)
        (place / "result.json").write_text(json.dumps({**varied(result, rng, number), "settings": settings}))


def timed(action: Callable[[], Any], repeats: int = 1) -> tuple[float, float, Any]:
    """Median seconds by the clock and of the processor, and what the action returns."""
    clocks, processors = [], []
    for _ in range(repeats):
        before = time.perf_counter(), time.process_time()
        value = action()
        clocks.append(time.perf_counter() - before[0])
        processors.append(time.process_time() - before[1])
    return median(clocks), median(processors), value


def by_reading(folder: Path) -> int:
    """Number of runs with a good short formula with exp, found by reading every result."""
    return sum(
        any(
            "exp(" in each["expression"] and each["complexity"] < 12 and (each["r2"] or 0) >= 0.9
            for each in json.loads(path.read_text())["front"]
        )
        for path in folder.glob("*/result.json")
    )


def main() -> None:
    """Make the runs, ask, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="folders to make [10000]")
    parser.add_argument("--repeats", type=int, default=7, help="of each query; the median counts [7]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "runs"
        folder.mkdir()
        print(f"{given.runs} runs made in {timed(lambda: make(folder, given.runs))[0]:.1f} s")
        slowest = 0.0
        for name, asked in QUERIES.items():
            clock, processor, found = timed(lambda asked=asked: find(folder, **asked), given.repeats)
            slowest = max(slowest, clock)
            print(f"{clock * 1e3:7.0f} ms {processor * 1e3:7.0f} ms of the processor  {len(found):6} found  {name}")
        print(f"slowest query: {slowest:.3f} s")
        clock, processor, number = timed(lambda: by_reading(folder), given.repeats)
        assert number == len(find(folder, **QUERIES["exp, fewer than 12 nodes, R2 0.9"]))
        print(f"a script that reads every result.json: {clock:.2f} s, {processor:.2f} s of the processor")


if __name__ == "__main__":
    main()
