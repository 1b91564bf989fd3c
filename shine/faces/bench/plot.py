"""The comparison as a plot of throughput against rows."""

from __future__ import annotations

from io import BytesIO
from math import log10

from shine.faces.bench.run import Report

STRONG = {"machine": "#c2410c", "native": "#7c3aed", "pyoperon": "#0369a1"}
"""Colours of the most important lines, which are drawn thicker."""

WEAK = {"DEAP, arrays": "#15803d", "gplearn": "#b45309", "reference": "#57534e", "DEAP, rows": "#65a30d"}

OTHER = "#78716c"


def plot(report: Report, ending: str) -> bytes:
    """A plot of node-rows per second against rows, one line for each evaluator, in the format of a file's ending.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 5.5), layout="constrained")
    axes = figure.add_subplot()
    ends = []
    for (name, precision), points in _lines(report).items():
        color, single = (STRONG | WEAK).get(name, OTHER), precision == "float32"
        width, style = 2.2 if name in STRONG else 1.4, "--" if single else "-"
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=color, marker="o", markersize=4, linewidth=width, linestyle=style)
        ends.append(
            (points[-1][1], f"{name}, {precision}  {points[-1][1]:.1e}".replace("e+", "e").replace("e0", "e"), color)
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    rows = sorted(report.settings.rows)
    axes.set_xlim(rows[0] / 1.15, rows[-1] * 1.15)
    axes.set_xticks(rows, [f"{count:,}" for count in rows])
    axes.minorticks_off()
    axes.set_xlabel("rows of the data set")
    axes.set_ylabel("node-rows per second, one thread")
    axes.grid(axis="y", color="#e7e5e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    title = f"{report.settings.population:,} random formulas over {', '.join(report.settings.primitives)}"
    axes.set_title(f"{title}\n", loc="left", fontsize=12, fontweight="bold")
    axes.text(0, 1.015, str(report.machine["cpu"]), transform=axes.transAxes, color=OTHER, fontsize=9)
    _label(axes, ends)
    content = BytesIO()
    figure.savefig(content, dpi=150, format=ending.removeprefix(".") or None)
    return content.getvalue()


def _lines(report: Report) -> dict[tuple[str, str], list[tuple[int, float]]]:
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for m in sorted(report.measurements, key=lambda m: m.rows):
        lines.setdefault((m.evaluator, m.precision), []).append((m.rows, m.finite.node_rows_per_second))
    return lines


def _label(axes: object, ends: list[tuple[float, str, str]]) -> None:
    """Write names beside the ends of the lines, moved apart where they would overlap."""
    low, high = (log10(limit) for limit in axes.get_ylim())  # type: ignore[attr-defined]
    gap, before = 0.045, -1.0
    for value, text, color in sorted(ends):
        at = max((log10(value) - low) / (high - low), before + gap)
        before = at
        axes.text(1.02, at, text, transform=axes.transAxes, color=color, fontsize=9.5, va="center")  # type: ignore[attr-defined]
