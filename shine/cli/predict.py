"""``shine predict``: a formula of a run, applied to a file of data."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import numpy as np

from shine.cli.output import is_terminal, print_bytes, print_json, print_text, write_file
from shine.cli.sources import chosen, opened
from shine.data.loading import FORMATS
from shine.errors import DataError
from shine.lang.names import listed
from shine.search.model import Model
from shine.typing import Floats

HEADING = "prediction"
"""Heading of the column of predictions."""


def predict(folder: Path, data: Path, index: int | None, out: Path | None, as_json: bool) -> None:
    """Print or write the predictions of a run's formula for a file of data."""
    run = opened(folder)
    place, model = chosen(run, index)
    ending = _ending(data) if out is None else _ending(out, otherwise=data)
    predictions = _predictions(model, data)
    if out is not None:
        write_file(out, WRITERS[ending](predictions))
    if as_json:
        result = {HEADING: predictions.tolist()} if out is None else {"rows": len(predictions), "file": str(out)}
        print_json({"index": place, "expression": model.expression, **result}, indent=None)
    elif out is None and ending == ".parquet" and not is_terminal(sys.stdout):
        print_bytes(_parquet(predictions), "Parquet")
    elif out is None:
        print_text(_csv(predictions).decode())


def _predictions(model: Model, data: Path) -> Floats:
    features = model.tree.parameters
    # A formula without features still needs the number of rows.
    used = [name for name in features if ("name", name) in model.tree.tokens] or list(features)
    columns = dict(zip(used, _columns(data, {name: model.headings.get(name, name) for name in used}), strict=True))
    rows = len(columns[used[0]])
    unused = np.zeros(rows)
    return model.predict(np.column_stack([columns.get(name, unused) for name in features]))


def _columns(path: Path, headings: Mapping[str, str]) -> list[Floats]:
    """Columns of a data file, by their headings or by the names that Shine makes from headings.

    Parameters
    ----------
    path : Path
    headings : mapping of str to str
        The heading of each column, by its name in formulas.

    Raises
    ------
    DataError
        If one is missing, or holds anything but finite numbers.
    """
    source = FORMATS[_ending(path)](path)
    there = {*source.headings, *source.names}
    missing = [heading for name, heading in headings.items() if not {name, heading} & there]
    if missing:
        needed = f"the formula needs {listed(headings.values())}, and the file has {listed(source.headings)}"
        raise DataError(f"{path}: there is no column {listed(missing)}; {needed}")
    # Of columns with the same heading, only the names differ.
    once = {name: source.headings.count(heading) == 1 for name, heading in headings.items()}
    return source.read([source.index(headings[name] if once[name] else name) for name in headings])


def _ending(path: Path, otherwise: Path | None = None) -> str:
    """The format that a file name ends in."""
    for ending in FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    if otherwise is not None:
        return _ending(otherwise)
    raise click.UsageError(f"{path}: data files end in one of {', '.join(FORMATS)}")


def _csv(predictions: Floats) -> bytes:
    return "\n".join([HEADING, *map(repr, predictions.tolist()), ""]).encode()


def _compressed(predictions: Floats) -> bytes:
    return gzip.compress(_csv(predictions), mtime=0)


def _npz(predictions: Floats) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, prediction=predictions)
    return stream.getvalue()


def _parquet(predictions: Floats) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise click.ClickException("writing Parquet needs pyarrow; pip install 'shine[parquet]'") from None
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({HEADING: predictions}), stream)
    return stream.getvalue()


WRITERS: dict[str, Callable[[Floats], bytes]] = {
    ".csv": _csv,
    ".csv.gz": _compressed,
    ".tsv": _csv,
    ".tsv.gz": _compressed,
    ".npz": _npz,
    ".parquet": _parquet,
}
"""Writer of predictions by the ending of the file name; one column needs no delimiter."""
