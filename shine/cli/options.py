"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path)
"""A file or a folder that may or may not exist."""

SEED = click.IntRange(0, 2**63 - 1)
"""A seed, within the bounds of the configuration's `seed`."""

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
"""A share between 0 and 1."""

json_option = click.option("as_json", "--json", is_flag=True, help="Print JSON.")
out_option = click.option("--out", type=FILE, metavar="FILE", help="Write a file instead of printing.")
set_option = click.option(
    "overrides", "--set", multiple=True, metavar="KEY=VALUE", help="Override a setting, as evolution.population=500."
)
index_option = click.option(
    "--index", type=click.IntRange(0), metavar="N", help="Index of the formula in the front; by default the chosen one."
)
quiet_option = click.option("--quiet", is_flag=True, help="Print the chosen formula only.")
result_json_option = click.option(
    "as_json", "--json", is_flag=True, help="Print the contents of result.json and nothing else."
)
log_option = click.option(
    "logs", "--log", type=click.Choice(["mlflow", "tensorboard"]), multiple=True,
    help="Also keep the run in MLflow, or for TensorBoard in the run's folder.",
)  # fmt: skip
level_option = click.option(
    "level", "--opt", type=click.Choice(["O0", "O1", "O2", "O3"]), default="O2", help="Optimization level. [O2]"
)


def _precision(text: str) -> int | str:
    """A number of significant digits, or ``exact``."""
    if text != "exact" and not (text.isdecimal() and int(text) > 0):
        raise click.BadParameter("is a number of significant digits from 1 on, or exact")
    return text if text == "exact" else int(text)


precision_option = click.option(
    "--precision", type=_precision, metavar="N|exact",
    help="Significant digits of constants. By default those that the data support, in forms for people, else all.",
)  # fmt: skip
parameters_option = click.option(
    "parameters", "--params", metavar="NAMES", help="Order of the arguments, such as b,a. [natural order]"
)
