"""``shine config``: the schema of configurations, and the problems of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import shine.faces.config
from shine.base.errors import ConfigError
from shine.faces.cli.codes import USAGE
from shine.faces.cli.output import print_json


def schema() -> None:
    """Print the JSON schema of configurations."""
    print_json(shine.faces.config.schema())


def check(path: Path, overrides: Sequence[str], as_json: bool) -> int:
    """Check a configuration and its data; print every problem as an error or in the JSON.

    Returns
    -------
    int
        Exit code.
    """
    try:
        job = shine.faces.config.read_job(path, overrides)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"valid": False, "problems": error.problems})
        return USAGE
    features = job.dataset.features
    rows = job.dataset.n_rows if job.dataset.whole is None else job.dataset.whole.n_rows
    if as_json:
        print_json({"valid": True, "rows": rows, "features": features, "notes": job.notes})
    else:
        listed = ", ".join(features[:10]) + (", ..." if len(features) > 10 else "")
        click.echo(f"{path}: valid; {rows} rows of {listed}")
        for note in job.notes:
            click.echo(f"note: {note}")
    return 0
