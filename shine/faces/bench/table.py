"""The comparison as text for a terminal, and as a plot of throughput against rows."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import log10

from shine.faces.bench.contenders import Compile
from shine.faces.bench.run import Measurement, Report

HEAD = ("evaluator", "precision", "rows", "compile", "run", "node-rows/s", "over NumPy", "all individuals", "losses")


def report_text(report: Report) -> str:
    """The host, the table, and notes on how to read it."""
    machine = report.machine
    lines = [
        f"{machine['cpu']}; {machine['cores']} cores, load {machine['load']}; one thread each",
        f"{report.settings.population} random individuals of 1..{report.settings.max_size} nodes ({report.nodes} in "
        f"all) over {', '.join(report.settings.primitives)}",
        "",
        *_aligned([HEAD, *(_cells(m) for m in report.measurements)]),
        *(f"{absent.evaluator}: {absent.reason}" for absent in report.absent),
        "",
        *_notes(report),
    ]
    return "\n".join(lines)


def _cells(m: Measurement) -> tuple[str, ...]:
    ratio = "" if m.ratio_to_reference is None else f"{m.ratio_to_reference:.3g} x"
    check = m.agreement
    verdict = f"{check.compared - check.wrong} agree"
    if check.wrong:
        verdict += f", {check.wrong} {'differ' if check.holds else 'WRONG'}"
    return (
        m.evaluator, m.precision, str(m.rows), _compile(m.compile), duration(m.finite.seconds / m.finite.individuals),
        f"{m.finite.node_rows_per_second:.3g}", ratio, f"{m.all.node_rows_per_second:.3g}", verdict,
    )  # fmt: skip


def _compile(compilation: Compile | None) -> str:
    if compilation is None:
        return "-"
    if compilation.cached is None:
        return f"{duration(compilation.seconds)} each"
    return f"{duration(compilation.seconds)} once ({duration(compilation.cached)} from disk)"


def duration(seconds: float) -> str:
    """Seconds in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _notes(report: Report) -> list[str]:
    finite = ", ".join(f"{count} over {rows} rows" for rows, count in report.finite.items())
    sensitive = max((m.agreement.sensitive for m in report.measurements), default=0)
    return [
        f"run: of one individual, and node-rows/s, over individuals whose predictions are all finite ({finite});",
        "  'all individuals' has the others as well, which Shine's tiers leave at their first non-finite prediction.",
        f"losses: mean squared errors against the reference tier's, within {_tolerances(report)}; inf where any is;",
        f"  up to {sensitive} individuals on which rounding decides are not compared.",
        *excused(report),
    ]


def excused(report: Report) -> list[str]:
    """Known reasons for differing losses."""
    found = {m.evaluator: m.agreement.excuse for m in report.measurements if m.agreement.wrong and m.agreement.holds}
    return [f"  {name} differs because {excuse}." for name, excuse in found.items()]


def _tolerances(report: Report) -> str:
    found = {m.precision: m.agreement.tolerance for m in report.measurements}
    return ", ".join(f"{tolerance:g} ({precision})" for precision, tolerance in found.items())


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
             for r in rows]  # fmt: skip
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


STRONG = {"machine": "#c2410c", "native": "#7c3aed", "pyoperon": "#0369a1"}
"""Colours of the most important lines, which are drawn thicker."""

WEAK = {"DEAP, arrays": "#15803d", "gplearn": "#b45309", "reference": "#57534e", "DEAP, rows": "#65a30d"}

OTHER = "#78716c"


def plot(report: Report, ending: str) -> bytes:
    """A plot of node-rows per second against rows, one line for each evaluator, in the format of a file's ending.

    A `ModuleNotFoundError` if Matplotlib is not installed.
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
