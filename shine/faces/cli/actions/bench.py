"""``shine bench``: compare, print, write."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from shine.faces.bench import Settings, benchmark, report_text
from shine.faces.bench.plot import plot
from shine.faces.cli.codes import FAILURE
from shine.faces.cli.output import is_terminal, json_text, print_text, write_file

PRINT = Path("-")
"""The file name that means printing."""


def run(settings: Settings, json_path: Path | None, plot_path: Path | None) -> int:
    """Compare the evaluators and print their speed.

    Returns
    -------
    int
        Exit code: a failure if an evaluator computes different losses.
    """
    if plot_path and find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs Matplotlib (pip install matplotlib)")
    try:
        report = benchmark(settings, progress=_show)
    except ValueError as error:  # an unknown primitive
        raise click.UsageError(str(error)) from None
    finally:
        _show("")
    if json_path == PRINT:
        print_text(json_text(report.as_json()))
    else:
        click.echo(report_text(report))
    if json_path and json_path != PRINT:
        write_file(json_path, json_text(report.as_json()).encode())
    if plot_path:
        write_file(plot_path, plot(report, plot_path.suffix))
    for wrong in report.wrong:
        click.echo(
            f"error: {wrong.evaluator} ({wrong.precision}, {wrong.rows} rows) computes other losses for "
            f"{wrong.agreement.wrong} individuals",
            err=True,
        )
    return FAILURE if report.wrong else 0


def _show(what: str) -> None:
    if is_terminal(sys.stderr):
        click.echo(f"\r\x1b[K{what}", nl=False, err=True)
