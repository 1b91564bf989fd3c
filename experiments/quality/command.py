"""The command line that feynman.py, classics.py and blackbox.py share."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from quality.engines import ENGINES
from quality.problems import Problem
from quality.records import AnyOutcome, Run, read_records
from quality.runner import RECOVERY, Measure, run_all
from quality.summary import comparison, save_plot


def seeds_of(text: str) -> tuple[int, ...]:
    """Seeds from "3" (0, 1, 2) or from a list such as "0,5,7"."""
    numbers = [int(part) for part in text.split(",") if part.strip()]
    if not numbers or min(numbers) < 0:
        raise argparse.ArgumentTypeError("seeds are a count, or a list of numbers that are not negative: 0,5,7")
    return tuple(numbers) if "," in text else tuple(range(numbers[0]))


def levels_of(text: str) -> tuple[float, ...]:
    """Levels of noise from a list such as "0,0.01,0.1"."""
    levels = tuple(float(part) for part in text.split(",") if part.strip())
    if not levels or not min(levels) >= 0:
        raise argparse.ArgumentTypeError("levels of noise are numbers that are not negative: 0,0.01,0.1")
    return levels


def interpreter(name: str) -> str:
    """The full path of an interpreter: workers start in another folder."""
    path = shutil.which(name)
    if path is None:
        raise argparse.ArgumentTypeError(f"there is no interpreter {name!r}")
    return os.path.abspath(path)  # keep links: a virtual environment is found by them


def arguments(description: str, name: str, *, rows: str) -> argparse.ArgumentParser:
    """The options of an experiment; `rows` describes the default of `--rows`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="shine", help="default: %(default)s")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds a problem (default: %(default)s)")
    parser.add_argument(
        "--noise", type=levels_of, default=(0.0,), help="shares of the training targets' standard deviation: 0,0.01,0.1"
    )
    parser.add_argument("--seeds", type=seeds_of, default=(0,), help="how many, or a list: 0,5,7 (default: 1)")
    parser.add_argument("--rows", type=int, default=0, help=f"training rows (default: {rows})")
    parser.add_argument("--problems", default="", help="NAME,...: only these, or the families of these names")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of an engine (default: %(default)s)")
    parser.add_argument(
        "--python", type=interpreter, default=sys.executable, help="interpreter that has the engine (default: this one)"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/quality"), help="folder (default: %(default)s)")
    parser.add_argument(
        "--sympy", type=float, default=0.0, metavar="SECONDS", help="ask SymPy as well, as SRBench does"
    )
    parser.add_argument("--retry", action="store_true", help="repeat failed runs")
    parser.add_argument("--plot", action="store_true", help="draw all runs of the CSV file; needs Matplotlib")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="CSV", help="only compare files of results")
    parser.set_defaults(name=name)
    return parser


def chosen(problems: Sequence[Problem], names: str) -> list[Problem]:
    """Problems by name or family, all if none is named.

    Raises
    ------
    SystemExit
        If a name is unknown.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    families = {problem.name: problem.name.rpartition("-")[0] for problem in problems}
    unknown = [name for name in wanted if name not in {*families, *families.values()}]
    if unknown:
        raise SystemExit(f"unknown problem {unknown[0]!r}; use one of {', '.join(families)}")
    return [p for p in problems if not wanted or {p.name, families[p.name]} & set(wanted)]


def _records(path: Path, kind: type[AnyOutcome]) -> list[AnyOutcome]:
    """Records of a file; SystemExit if another experiment wrote it."""
    try:
        return read_records(path, kind)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def main(
    options: argparse.Namespace,
    load: Callable[[], Sequence[Problem]],
    tabulate: Callable[[Sequence[AnyOutcome]], str],
    measure: Measure[AnyOutcome] = RECOVERY,
    draw: Callable[[Sequence[AnyOutcome], Path, str], None] | None = save_plot,
) -> None:
    """Run an experiment, or compare results.

    `load` gets the problems, `tabulate` makes the summary of the records, and `draw` a plot of them, if there is any.
    """
    if options.compare:
        sources = {str(path): _records(path, measure.record) for path in options.compare}
        beside = [comparison(sources)] if measure is RECOVERY else []
        print(*map(tabulate, sources.values()), *beside, sep="\n\n")
        return
    if options.plot and draw is None:
        raise SystemExit(f"{options.name} has no plot")
    runs = [
        (
            Run(problem.name, options.engine, seed, noise, options.budget, options.rows, options.threads),
            problem,
        )
        for seed in options.seeds
        for noise in options.noise
        for problem in chosen(load(), options.problems)
    ]
    if options.sympy and find_spec("sympy") is None:
        raise SystemExit("--sympy needs SymPy, which is not installed")
    path = options.out / f"{options.name}.csv"
    _records(path, measure.record)
    records = run_all(
        runs, path, options.python, jobs=options.jobs, retry=options.retry, simplify=options.sympy, measure=measure
    )
    print(tabulate(records) if records else "no run has ended yet")
    failed = [record for record in records if record.error]
    if failed:
        print(f"\nfirst of {len(failed)} failed runs: {failed[0].problem}: {failed[0].error}")
    print(f"\n{len(records)} of {len(runs)} runs, in {path}")
    if options.plot and draw is not None:
        draw(read_records(path, measure.record), path.with_suffix(".png"), options.name)
