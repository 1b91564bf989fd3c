"""``shine config``: the schema of configurations, and the problems of a configuration."""

from __future__ import annotations

from pathlib import Path

import click

from shine.base.errors import ConfigError
from shine.faces.cli.options import FILE, json_option, set_option
from shine.faces.cli.output import USAGE, print_json


@click.group("config")
def config() -> None:
    """Check configurations, or print their schema."""


@config.command("schema")
@click.option("--json", is_flag=True, expose_value=False, help="The schema is always JSON.")
def schema() -> None:
    """Print the JSON schema of configurations.

    \b
    Example:
      shine config schema > shine.schema.json
    """
    import shine.faces.config

    print_json(shine.faces.config.schema())


@config.command("check")
@click.argument("path", metavar="CONFIG", type=FILE)
@set_option
@json_option
def check(path: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Check CONFIG and its data without searching; prints every problem.

    \b
    Example:
      shine config check configs/pythagoras.yaml --set seed=7
    """
    from shine.faces.config import is_dynamics, read_dynamics, read_job

    try:
        if is_dynamics(path, overrides):
            found = read_dynamics(path, overrides).trajectories
            if as_json:
                print_json({"valid": True, "states": found.states})
            else:
                click.echo(f"{path}: valid; {found.size}")
            return 0
        job = read_job(path, overrides)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"valid": False, "problems": error.problems})
        return USAGE
    features = job.dataset.features
    rows = job.dataset.n_rows if job.dataset.all_rows is None else job.dataset.all_rows.n_rows
    if as_json:
        print_json({"valid": True, "rows": rows, "features": features, "notes": job.notes})
    else:
        listed = ", ".join(features[:10]) + (", ..." if len(features) > 10 else "")
        click.echo(f"{path}: valid; {rows} rows of {listed}")
        for note in job.notes:
            click.echo(f"note: {note}")
    return 0
