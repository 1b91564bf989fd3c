"""``shine bench``: compare, print, write."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from shine.bench import Settings, benchmark, report_text
from shine.bench.plot import save_plot
from shine.cli import FAILURE


def run(settings: Settings, json_path: Path | None, plot_path: Path | None) -> int:
    """Compare the evaluators and print what they do a second.

    Returns
    -------
    int
        Exit code: a failure if an evaluator computes other losses.
    """
    if plot_path and find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs Matplotlib (pip install matplotlib)")
    try:
        report = benchmark(settings, progress=_show)
    except ValueError as error:  # an unknown primitive
        raise click.UsageError(str(error)) from None
    finally:
        _show("")
    click.echo(report_text(report))
    if json_path:
        json_path.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    if plot_path:
        save_plot(report, plot_path)
    for wrong in report.wrong:
        click.echo(
            f"error: {wrong.evaluator} ({wrong.precision}, {wrong.rows} rows) computes other losses for "
            f"{wrong.agreement.wrong} individuals",
            err=True,
        )
    return FAILURE if report.wrong else 0


def _show(what: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{what}", nl=False, err=True)
