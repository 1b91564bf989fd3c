"""``shine bench``: compare, print, write."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from shine.base.errors import MissingExtraError
from shine.faces.cli.options import FILE, SEED
from shine.faces.cli.output import FAILURE, is_terminal, json_text, print_text, write_file

PRINT = Path("-")
"""The file name that means printing."""


class _ManyRows(click.Command):
    """Reads ``--rows 1000 10000`` as ``--rows 1000 --rows 10000``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for argument in args:
            again = argument.isdigit() and len(spread) > 1 and spread[-2] == "--rows"
            spread += ["--rows", argument] if again else [argument]
        return super().parse_args(ctx, spread)


@click.command("bench", cls=_ManyRows)
@click.option("--rows", type=click.IntRange(1), multiple=True, metavar="N ...", help="Rows of the data. [1000 10000]")
@click.option("--population", type=click.IntRange(1), default=1000, metavar="N", help="Random formulas. [1000]")
@click.option("--primitives", default="add,sub,mul,div", metavar="NAMES", help="Functions they use. [add,sub,mul,div]")
@click.option("--seed", type=SEED, default=0, metavar="N", help="Seed of formulas and data. [0]")
@click.option(
    "json_path",
    "--json",
    type=click.Path(path_type=Path, allow_dash=True),
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write all measurements to a file, or print them instead of the table.",
)
@click.option("plot_path", "--plot", type=FILE, metavar="FILE", help="Draw the speeds, by default for more rows.")
def bench(
    rows: tuple[int, ...], population: int, primitives: str, seed: int, json_path: Path | None, plot_path: Path | None
) -> int:
    """Compare the speed of interpreted and compiled evaluation of random formulas.

    It measures Shine's tiers, plain Python, and DEAP, gplearn and pyoperon if they are installed. All must compute the
    same losses.

    \b
    Example:
      shine bench --rows 1000 10000 --primitives add,mul,sin
    """
    from shine.faces.bench import Settings, benchmark, report_text
    from shine.faces.bench.table import plot

    chosen = tuple(dict.fromkeys(rows)) or ((100, 1000, 10_000, 100_000) if plot_path else (1000, 10_000))
    names = tuple(name.strip() for name in primitives.split(","))
    if plot_path and find_spec("matplotlib") is None:
        raise MissingExtraError("--plot", "Matplotlib", "plot")
    try:
        report = benchmark(Settings(chosen, population, names, seed=seed), progress=_show)
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
