"""Random formulas: how many does an engine recover, against their number of nodes and the noise?

`python experiments/random_formulas.py --budget 30 --noise 0,0.01,0.1 --count 10` draws 10 formulas of each size from 8
to 20 nodes (quality/random_trees.py says which ones count), and 500 rows of each. Nobody tunes for them:
`--first-seed 1000` draws others. A formula is recovered if it is identical up to the noise, or up to constants
(quality/families.py), the chosen one or any on the front; `--sympy SECONDS` asks SymPy as well. `--plot` draws the
shares over the nodes, a curve for each level of noise, of all engines in the CSV file. Run again, the command goes on
where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from quality.command import arguments, main
from quality.engines import Found
from quality.families import judge_law
from quality.law_scores import NOWHERE, LawRecord, front_scores
from quality.problems import Split
from quality.random_trees import ROWS, random_problem
from quality.records import Run
from quality.runner import Measure
from quality.summary import COLORS, grouped, settings_of, style_axes, table

PRECISION = 1e-4
"""Errors of a formula found without noise, as a share of the target's standard deviation."""


def scores(run: Run, problem: Any, split: Split, found: Found, simplify: float) -> dict[str, Any]:
    """The fields of a `LawRecord` for a random formula."""
    sigma = np.full(len(split.y), max(run.noise, PRECISION) * np.std(split.y))
    return front_scores(problem, split, found, simplify, lambda f: judge_law(f, problem.truth, split.X, sigma))


def nodes_of(record: LawRecord) -> int:
    """Nodes of the formula to be recovered."""
    return int(record.family.removeprefix("nodes"))


def chosen(record: LawRecord) -> bool:
    """Whether the chosen formula is recovered."""
    return record.verdict in ("identical", "constants")


def offered(record: LawRecord) -> bool:
    """Whether any formula of the front is recovered."""
    return record.constants != NOWHERE


def by_nodes(records: Sequence[LawRecord]) -> dict[int, list[LawRecord]]:
    """Records by size of the formula, smallest first."""
    groups = grouped(records, lambda record: record.family)
    return {nodes_of(groups[name][0]): groups[name] for name in sorted(groups, key=lambda n: nodes_of(groups[n][0]))}


def curves_table(records: Sequence[LawRecord]) -> str:
    """Counts by settings and number of nodes: "a / b" of n, chosen and on the front; then the chosen identical ones."""
    sizes = list(by_nodes(records))
    lines = []
    for name, members in grouped(records, settings_of).items():
        parts = by_nodes(members)
        cells = [_cell(parts[size]) if size in parts else "" for size in sizes]
        identical = sum(record.verdict == "identical" for record in members)
        by_sympy = sum(record.by_sympy == "yes" for record in members)
        lines.append([name, *cells, _cell(members), identical, by_sympy, sum(bool(record.error) for record in members)])
    return table(["chosen / on front of runs", *map(str, sizes), "all", "chosen: identical", "SymPy", "failed"], lines)


def _cell(records: Sequence[LawRecord]) -> str:
    return f"{sum(map(chosen, records))} / {sum(map(offered, records))} of {len(records)}"


def draw_curves(records: Sequence[LawRecord], path: Path, title: str) -> None:
    """Plot the recovered share over the nodes, one colour for each engine with its settings and noise.

    Solid lines are the chosen formulas, dashed ones any on the front.
    """
    figure = import_module("matplotlib.figure").Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.add_subplot()
    for color, (name, members) in zip(COLORS * len(records), grouped(records, settings_of).items(), strict=False):
        parts = by_nodes(members)
        styles: tuple[tuple[Callable[[LawRecord], bool], str], ...] = ((chosen, "-"), (offered, "--"))
        for recovered, style in styles:
            shares = [100 * sum(map(recovered, some)) / len(some) for some in parts.values()]
            label = f"{name}, {'chosen' if recovered is chosen else 'on the front'}"
            axes.plot(list(parts), shares, color=color, linestyle=style, marker=".", label=label)
    axes.set_ylim(0, 101)
    axes.set_xlabel("nodes of the formula")
    axes.set_ylabel("% recovered")
    style_axes(axes, title)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = arguments(__doc__, "random_formulas", rows=str(ROWS))
    parser.add_argument("--sizes", default="8,10,12,14,16,18,20", help="nodes (default: %(default)s)")
    parser.add_argument("--count", type=int, default=10, help="formulas of each size (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first formula's number (default: %(default)s)")
    parser.set_defaults(budget=30.0)
    options = parser.parse_args()
    wanted = range(options.first_seed, options.first_seed + options.count)
    sizes = [int(size) for size in options.sizes.split(",")]
    main(
        options,
        lambda: [random_problem(size, number) for size in sizes for number in wanted],
        curves_table,
        Measure(LawRecord, scores),
        draw_curves,
    )
