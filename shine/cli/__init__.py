"""The command line: arguments in, exit codes out. What the commands do is elsewhere, and imported when they run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

FAILURE, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: something failed; the arguments, the configuration or the data are wrong; Ctrl-C."""


class _Group(click.Group):
    """Reports every mistake of a user in one way: ``error: ...`` on stderr, an exit code, no traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; exits with its code, as click does, unless `standalone_mode` is off."""
        command = partial(super().main, args, prog_name, complete_var, False, **extra)
        if not standalone_mode:
            return command()
        sys.exit(_guarded(command))


def _guarded(command: Callable[[], Any]) -> int:
    from shine.errors import ConfigError, DataError, ShineError

    try:
        code = command()
        sys.stdout.flush()
        return int(code or 0)
    except BrokenPipeError:
        # Whoever read the output has seen enough. What is still buffered goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except click.UsageError as error:
        context = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
        return _complain(error.format_message().rstrip(".") + context, USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), FAILURE)
    except (ConfigError, DataError) as error:
        return _complain(str(error), USAGE)
    except ShineError as error:
        return _complain(str(error), FAILURE)
    except MemoryError:
        return _complain("out of memory; use fewer rows or a smaller population", FAILURE)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)


def _complain(message: str, code: int) -> int:
    for line in message.splitlines():
        click.echo(f"error: {line}", err=True)
    return code


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from shine import __version__

        click.echo(f"shine {__version__}")
        context.exit()


@click.group(cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show it.")
@click.pass_context
def main(context: click.Context) -> None:
    """Shine finds formulas that explain data."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Seed, instead of the configuration's.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="New or empty folder; runs/<CONFIG>[-2, ...] else."
)
@click.option("overrides", "--set", multiple=True, metavar="KEY=VALUE", help="Override, as evolution.population=500.")
@click.option("--quiet", is_flag=True, help="Print the chosen formula only.")
def evolve(config: Path, seed: int | None, out: Path | None, overrides: tuple[str, ...], quiet: bool) -> int:
    """Search for formulas as CONFIG, a YAML file, says.

    Prints the Pareto front of loss and complexity, and keeps what was used and found in a folder.
    """
    from shine.cli.run import run

    return run(config, seed, out, overrides, quiet)


class _ManyRows(click.Command):
    """Takes ``--rows 1000 10000`` for ``--rows 1000 --rows 10000``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for argument in args:
            again = argument.isdigit() and len(spread) > 1 and spread[-2] == "--rows"
            spread += ["--rows", argument] if again else [argument]
        return super().parse_args(ctx, spread)


@main.command(cls=_ManyRows)
@click.option("--rows", type=click.IntRange(1), multiple=True, metavar="N ...", help="Rows of the data. [1000 10000]")
@click.option("--population", type=click.IntRange(1), default=1000, metavar="N", help="Random formulas. [1000]")
@click.option("--primitives", default="add,sub,mul,div", metavar="NAMES", help="What they use. [add,sub,mul,div]")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, metavar="N", help="Other formulas and data. [0]")
@click.option("json_path", "--json", type=click.Path(path_type=Path), metavar="FILE", help="Write everything measured.")
@click.option("plot_path", "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw it over more rows.")
def bench(
    rows: tuple[int, ...],
    population: int,
    primitives: str,
    seed: int,
    json_path: Path | None,
    plot_path: Path | None,
) -> int:
    """Compare interpreted with compiled evaluation of random formulas.

    Shine's tiers, plain Python, and DEAP, gplearn and pyoperon where they are installed. All must compute the same
    losses.
    """
    from shine.bench import Settings
    from shine.cli.bench import run

    chosen = tuple(dict.fromkeys(rows)) or ((100, 1000, 10_000, 100_000) if plot_path else (1000, 10_000))
    names = tuple(name.strip() for name in primitives.split(","))
    return run(Settings(chosen, population, names, seed=seed), json_path, plot_path)


@main.group("config")
def config_group() -> None:
    """Look at configurations."""


@config_group.command("schema")
def config_schema() -> None:
    """Print the JSON schema of configurations."""
    import json

    from shine.config import schema

    click.echo(json.dumps(schema(), indent=2))


@config_group.command("check")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("overrides", "--set", multiple=True, metavar="KEY=VALUE", help="Override, as evolution.population=500.")
def config_check(config: Path, overrides: tuple[str, ...]) -> None:
    """Check CONFIG and its data without searching; prints every problem."""
    from shine.config import read_job

    job = read_job(config, overrides)
    features = job.dataset.features
    listed = ", ".join(features[:10]) + (", ..." if len(features) > 10 else "")
    click.echo(f"{config}: valid; {job.dataset.n_rows} rows of {listed}")
