"""Throughput against other evaluators, and how cost grows: `python experiments/throughput.py --repeats 5`.

A population as in pyoperon's own measurements: 1000 random individuals of 1 to 50 nodes over two features, with
+ - * /, and with exp, log, sin and cos as well. It repeats `shine bench`, without its samples of the work; ratios are
medians of the repetitions, because a shared machine has better and worse minutes.

`--scaling` measures rows from 1e3 to 1e7 and individuals from 1e2 to 1e5 instead, each in a process of its own, and its
peak memory: what a caller holds (the arrays `X`, row by row, and `y`, and the population), and what is needed beyond
that from `shine.Evaluator(X, y)` to the losses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

import shine
from shine.faces.bench.contenders import Contender, prepare_machine
from shine.faces.bench.run import (
    CONTENDERS,
    Measurement,
    Report,
    Settings,
    benchmark,
    best_seconds,
    description,
    random_population,
)
from shine.faces.bench.table import report_text

ARITHMETIC = ("add", "sub", "mul", "div")
SETS = {"+ - * /": ARITHMETIC, "+ - * / exp log sin cos": (*ARITHMETIC, "exp", "log", "sin", "cos")}
BOTH = tuple(
    Contender("machine, 2 threads", dtype, partial(prepare_machine, threads=2)) for dtype in ("float64", "float32")
)


@dataclass(frozen=True)
class Ratio:
    """One evaluator's throughput over another's."""

    primitives: str
    rows: int
    ours: str
    precision: str
    theirs: str
    their_precision: str


RATIOS = (
    Ratio("+ - * /", 10_000, "machine", "float32", "pyoperon", "float32"),
    Ratio("+ - * /", 1_000, "machine", "float32", "pyoperon", "float32"),
    Ratio("+ - * / exp log sin cos", 10_000, "machine", "float32", "pyoperon", "float32"),
    Ratio("+ - * / exp log sin cos", 1_000, "machine", "float32", "pyoperon", "float32"),
    Ratio("+ - * /", 10_000, "machine", "float64", "pyoperon", "float32"),
    Ratio("+ - * /", 10_000, "machine, 2 threads", "float32", "machine", "float32"),
    Ratio("+ - * /", 10_000, "machine, 2 threads", "float64", "machine", "float64"),
    Ratio("+ - * /", 10_000, "machine", "float64", "DEAP, rows", "float64"),
    Ratio("+ - * /", 10_000, "machine", "float64", "DEAP, arrays", "float64"),
    Ratio("+ - * /", 1_000, "machine", "float64", "DEAP, arrays", "float64"),
    Ratio("+ - * /", 1_000, "machine", "float64", "gplearn", "float64"),
    Ratio("+ - * /", 10_000, "machine", "float64", "gplearn", "float64"),
    Ratio("+ - * /", 10_000, "machine", "float64", "reference", "float64"),
    Ratio("+ - * /", 10_000, "native", "float64", "machine", "float64"),
    Ratio("+ - * /", 10_000, "native", "float32", "machine", "float32"),
)


def find(report: Report, evaluator: str, precision: str, rows: int) -> Measurement | None:
    """The measurement of an evaluator, if it took part."""
    found = (m for m in report.measurements if (m.evaluator, m.precision, m.rows) == (evaluator, precision, rows))
    return next(found, None)


def values_of(ratio: Ratio, reports: Sequence[Report]) -> list[tuple[float, float, float, float]]:
    """For each report: our rate and theirs on finite individuals, and our ratio to theirs on these and on all."""
    values = []
    for report in reports:
        ours = find(report, ratio.ours, ratio.precision, ratio.rows)
        theirs = find(report, ratio.theirs, ratio.their_precision, ratio.rows)
        if ours and theirs:
            rate, other = ours.finite.node_rows_per_second, theirs.finite.node_rows_per_second
            values.append((rate, other, rate / other, rate / theirs.all.node_rows_per_second))
    return values


def print_ratios(reports: dict[str, list[Report]]) -> None:
    """The ratios as a Markdown table, medians of the repetitions with their extremes."""
    print("| population | rows | evaluator | node-rows/s | against | node-rows/s | ratio | lowest..highest | to all |")
    print("|---|---|---|---|---|---|---|---|---|")
    for ratio in RATIOS:
        values = values_of(ratio, reports[ratio.primitives])
        if not values:
            continue
        ours, theirs, same, every_individual = (list(column) for column in zip(*values, strict=True))
        print(
            f"| {ratio.primitives} | {ratio.rows} | {ratio.ours}, {ratio.precision} | {median(ours):.3g} "
            f"| {ratio.theirs}, {ratio.their_precision} | {median(theirs):.3g} | **{median(same):.3g}** "
            f"| {min(same):.3g}..{max(same):.3g} | {median(every_individual):.3g} |"
        )


def chosen_contenders() -> list[Contender]:
    """The evaluators, ordered so that those that are compared follow each other."""
    order = ("machine", "pyoperon", "native", "reference", "DEAP, arrays", "gplearn", "DEAP, rows", "plain Python")
    known = sorted(CONTENDERS, key=lambda contender: order.index(contender.name))
    return [*BOTH, *known]


def compare(repeats: int, population: int, rows: Sequence[int]) -> dict[str, list[Report]]:
    """Both populations, repeated."""
    reports: dict[str, list[Report]] = {}
    for name, primitives in SETS.items():
        settings = Settings(tuple(rows), population, primitives, every_individual=True)
        for _ in range(repeats):
            reports.setdefault(name, []).append(benchmark(settings, chosen_contenders()))
            print(f"{name}: {len(reports[name])} of {repeats}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        print(report_text(reports[name][-1]), end="\n\n", flush=True)
    return reports


def resident(what: str) -> int:
    """Bytes of the process in memory (Linux): "VmRSS" is now, "VmHWM" the peak since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def forget_peak() -> None:
    """Reset the peak to the present memory: making the data took more than holding them does."""
    Path("/proc/self/clear_refs").write_text("5")


def point(rows: int, individuals: int, dtype: str) -> dict[str, object]:
    """Throughput and memory of the machine in this process, which must be a fresh one."""
    settings = Settings((rows,), individuals, ARITHMETIC)
    warm_up = random_population(replace(settings, population=10))
    shine.Evaluator(np.ones((100, settings.features)), np.ones(100), dtype=dtype, tier="machine")(warm_up)
    population, rng = random_population(settings), np.random.default_rng(settings.seed)
    X, y = rng.uniform(-5, 5, (rows, settings.features)), rng.normal(size=rows)
    held = sum(array.nbytes for array in (X, y, population.codes, population.values, population.sizes))
    forget_peak()
    before = resident("VmRSS")
    evaluate = shine.Evaluator(X, y, dtype=dtype, tier="machine")
    seconds = best_seconds(lambda: evaluate(population), 5)
    work = int(population.sizes.sum()) * rows
    return {
        "rows": rows, "individuals": individuals, "dtype": dtype, "data_bytes": held,
        "extra_bytes": resident("VmHWM") - before, "seconds": seconds, "node_rows_per_second": work / seconds,
    }  # fmt: skip


def scaling() -> list[dict[str, object]]:
    """The points of the table, each in a process of its own."""
    sizes = [(10**power, 100) for power in range(3, 8)] + [(1000, 10**power) for power in range(3, 6)]
    print("| rows | individuals | precision | seconds | ns a node and row | node-rows/s | data | beyond it | in all |")
    print("|---|---|---|---|---|---|---|---|---|")
    points = []
    for dtype in ("float64", "float32"):
        for rows, individuals in sizes:
            command = [sys.executable, __file__, "--point", str(rows), str(individuals), dtype]
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            points.append(measured)
            data, extra = measured["data_bytes"], measured["extra_bytes"]
            print(
                f"| {rows:,} | {individuals:,} | {dtype} | {measured['seconds']:.3g} "
                f"| {1e9 / measured['node_rows_per_second']:.3f} | {measured['node_rows_per_second']:.3g} "
                f"| {data / 2**20:.1f} MiB | {extra / 2**20:.1f} MiB | {1 + extra / data:.2f} times the data |",
                flush=True,
            )
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="whole comparisons (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--population", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="write everything measured")
    parser.add_argument("--scaling", action="store_true", help="cost and memory against rows and individuals")
    parser.add_argument("--point", nargs=3, metavar=("ROWS", "INDIVIDUALS", "DTYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        rows, individuals, dtype = options.point
        print(json.dumps(point(int(rows), int(individuals), dtype)))
        return
    machine = description()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, {machine['versions']}\n")
    record: dict[str, object] = {"machine": machine}
    if options.scaling:
        record["points"] = scaling()
    else:
        reports = compare(options.repeats, options.population, options.rows)
        print_ratios(reports)
        record["reports"] = {name: [report.as_json() for report in made] for name, made in reports.items()}
        record["ratios"] = [asdict(ratio) | {"values": values_of(ratio, reports[ratio.primitives])} for ratio in RATIOS]
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
