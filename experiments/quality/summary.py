"""Summaries of the runs of an experiment: a table, a comparison of files, and a plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from quality.records import Record

THRESHOLDS = {"R2 > 0.999": 1e-3, "R2 > 1-1e-6": 1e-6, "R2 > 1-1e-8": 1e-8}
"""Columns of the table, each with the share of the held-out rows' variance that may remain."""

RECOVERED = ("factor", "difference")


def recovered(verdict: str) -> bool:
    """Whether a verdict means that the truth was found."""
    return verdict in RECOVERED


def grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Records grouped by a function's value, in order of appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def settings_of(record: Record) -> str:
    """The settings that all runs of a group share."""
    return f"{record.engine}, {record.budget:g} s, {record.threads} thread{'s' * (record.threads > 1)}" + (
        f", noise {record.noise:g}" if record.noise else ""
    )


def _middle(values: Iterable[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return f"{median(known):.4g}" if known else "-"


def table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A Markdown table with aligned columns."""
    texts = [list(header), *([str(cell) for cell in line] for line in lines)]
    widths = [max(len(line[column]) for line in texts) for column in range(len(header))]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in texts
    ]
    return "\n".join([rows[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *rows[1:]])


def recovery_table(records: Sequence[Record]) -> str:
    """Runs that recovered the truth and that came near it on held-out rows, by engine and family of problems.

    A pair "a / b" is the recommended formula and the most accurate one. Failed runs count as runs. SymPy's verdict on
    the recommended formulas is shown if it was asked.
    """
    asked = any(record.simplified for record in records)
    header = [
        "engine",
        "problems",
        "runs",
        "recovered",
        *["by SymPy"] * asked,
        *THRESHOLDS,
        "size",
        "seconds",
        "failed",
    ]
    lines = []
    for name, members in grouped(records, settings_of).items():
        families = grouped(members, lambda record: record.family)
        parts = list(families.items()) if len(families) > 1 else []
        hard = [record for record in members if not record.expressible]
        if hard:
            parts.append(("expressible ones", [record for record in members if record.expressible]))
        for family, some in [*parts, ("all", members)]:
            count, found, *others = _recovery_cells(some)
            by_sympy = [sum(record.simplified == "yes" for record in some)] * asked
            lines.append([name, family, count, found, *by_sympy, *others])
    return table(header, lines)


def _recovery_cells(records: Sequence[Record]) -> list[object]:
    """One line's figures."""
    fine = [record for record in records if not record.error]

    def pair(count: Callable[[str], int]) -> str:
        return f"{count('')} / {count('accurate_')}"

    def near(missing: float) -> str:
        return pair(lambda which: sum(1 - getattr(record, f"{which}r2_test") < missing for record in fine))

    return [
        len(records),
        pair(lambda which: sum(recovered(getattr(record, f"{which}recovered")) for record in fine)),
        *(near(missing) for missing in THRESHOLDS.values()),
        f"{_middle(r.size for r in fine)} / {_middle(r.accurate_size for r in fine)}",
        _middle(r.seconds for r in fine),
        len(records) - len(fine),
    ]


def accuracy_table(records: Sequence[Record]) -> str:
    """Medians over seeds of R2 on held-out rows, size and seconds for each data set, and over all data sets.

    A pair "a / b" is the recommended formula and the most accurate one. A failed run ranks below all others.
    """
    header = ["engine", "data set", "runs", "test R2", "size", "seconds", "failed"]
    lines = []
    for name, members in grouped(records, settings_of).items():
        sets = grouped(members, lambda record: record.problem)
        lines += [[name, problem, *_accuracy_cells(some)] for problem, some in sets.items()]
        lines.append([name, "median of all", *_accuracy_cells(members)])
    return table(header, lines)


def _accuracy_cells(records: Sequence[Record]) -> list[object]:
    fine = [record for record in records if not record.error]
    return [
        len(records),
        f"{_middle(r.r2_test for r in records)} / {_middle(r.accurate_r2_test for r in records)}",
        f"{_middle(r.size for r in fine)} / {_middle(r.accurate_size for r in fine)}",
        _middle(r.seconds for r in fine),
        len(records) - len(fine),
    ]


def comparison(sources: Mapping[str, Sequence[Record]]) -> str:
    """Engines and settings of some files beside each other, problem by problem.

    Shares of runs whose recommended formula is the truth, medians of 1 - R2 of the most accurate formula on held-out
    rows, and medians of the recommended formula's size, over the problems that all files have.
    """
    parts = {
        f"{source}: {settings}": grouped(members, lambda record: record.problem)
        for source, records in sources.items()
        for settings, members in grouped(records, settings_of).items()
    }
    shared = [name for name in next(iter(parts.values()), {}) if all(name in part for part in parts.values())]
    lines = []
    for problem in shared:
        cells: list[object] = [problem]
        for part in parts.values():
            records = part[problem]
            found = sum(recovered(record.recovered) for record in records)
            errors = _middle(1 - record.accurate_r2_test for record in records)
            cells += [f"{found} of {len(records)}", errors, _middle(record.size for record in records)]
        lines.append(cells)
    numbers = range(1, len(parts) + 1)
    legend = "\n".join(f"{number} is {name}" for number, name in zip(numbers, parts, strict=True))
    header = ["problem", *(f"{name} {number}" for number in numbers for name in ("recovered", "1 - R2", "size"))]
    return f"{legend}\n\n{table(header, lines)}"


COLORS = ("#c2410c", "#0369a1", "#15803d", "#7c3aed", "#57534e")


def style_axes(axes: Any, title: str) -> None:
    """The look of all plots: a light grid, no box, the title at the left."""
    axes.grid(color="#e7e5e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")


def save_plot(records: Sequence[Record], path: Path, title: str) -> None:
    """Plot the share of runs over the unexplained variance that they leave at most, one colour an engine.

    Solid lines are the most accurate formulas, dashed ones the recommended.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    figure = import_module("matplotlib.figure").Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.add_subplot()
    lowest = 0.1
    for color, (name, members) in zip(COLORS * len(records), grouped(records, settings_of).items(), strict=False):
        for which, style in (("accurate_", "-"), ("", "--")):
            # Rounding hides smaller differences.
            left = sorted(max(1 - getattr(record, f"{which}r2_test"), 1e-16) for record in members)
            shares = [100 * (i + 1) / len(left) for i in range(len(left))]
            found = sum(recovered(getattr(record, f"{which}recovered")) for record in members)
            label = f"{name}, {'most accurate' if which else 'recommended'}" + f": {found} recovered" * bool(found)
            lowest = min(lowest, left[0])
            axes.step(
                [*left, math.inf if math.isinf(left[-1]) else 10.0],
                [*shares, shares[-1]],
                where="post",
                color=color,
                linestyle=style,
                label=label,
            )
    axes.set_xscale("log")
    axes.set_xlim(lowest / 2, 2)
    axes.set_ylim(0, 101)
    axes.set_xlabel("1 - R2 on held-out rows")
    axes.set_ylabel("% of runs with at most that")
    style_axes(axes, title)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(path, dpi=150)
