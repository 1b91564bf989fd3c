"""``shine summary``: the constants of a run's formula, with their standard errors and intervals."""

from __future__ import annotations

from pathlib import Path

import click

from shine.base.errors import DataError
from shine.faces.cli.options import FILE, index_option, json_option
from shine.faces.cli.output import print_json, print_text
from shine.faces.cli.sources import chosen, opened


@click.command("summary")
@click.argument("folder", metavar="RUN", type=FILE)
@index_option
@json_option
def summary(folder: Path, index: int | None, as_json: bool) -> None:
    """Print the constants of the formula of RUN with their standard errors and 95 % intervals.

    \b
    Example:
      shine summary runs/pythagoras
    """
    from shine.faces.runs.records import FEW_ROWS
    from shine.faces.runs.uncertainty_records import UncertaintyRecord

    run = opened(folder)
    place, model = chosen(run, index)
    try:
        text = str(model.summary())
    except DataError:
        raise click.ClickException(
            f"{run.folder}: its result.json does not say how sure the constants of this formula are; it does for the "
            f"chosen formula, and for the others up to {FEW_ROWS} rows if time is left"
        ) from None
    if as_json:
        record = UncertaintyRecord.of(model, profile=True)
        assert record is not None
        print_json(
            {"index": place, "expression": model.expression, **record.model_dump(mode="json", exclude={"details"})}
        )
    else:
        ties = run.result.ties_text if index is None else ""
        print_text("\n".join([text, f"ties: {ties}"] if ties else [text]))
