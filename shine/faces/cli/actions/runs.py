"""``shine runs``: past runs as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.faces.cli.output import print_json
from shine.faces.cli.progress import display_for
from shine.faces.cli.sources import check_folder, run_folder
from shine.faces.cli.tables import number, seconds, share, table, whole
from shine.lang.forms.rounding import Precision

if TYPE_CHECKING:
    from shine.faces.runs.entries import Entry, FormulaEntry
    from shine.faces.runs.finding import Found

MOST_ROWS = 50
"""Rows of the table unless the user says otherwise."""

DIGITS = 4
"""Significant digits of constants in tables of several runs."""


def list_runs(
    folder: Path | None,
    settings: Sequence[str],
    limit: int | None,
    as_json: bool,
    **conditions: Any,
) -> None:
    """Print the runs that meet conditions (see `shine.faces.runs.finding.find`)."""
    from shine.faces.runs.finding import RUNS, found, query

    folder = RUNS if folder is None else folder
    check_runs(folder)
    pairs = [text.partition("=") for text in settings]
    wrong = next((key for key, sign, value in pairs if not sign or not value), None)
    if wrong is not None:
        raise click.UsageError(f"--set {wrong}: write KEY=VALUE, as evolution.population=500")
    most = limit if limit or as_json else MOST_ROWS
    try:
        asked = query(**conditions, settings=[(key.strip(), value) for key, _, value in pairs])
        with display_for("json" if as_json else "front", f"reading {folder}"):
            rows = found(folder, asked)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json([_as_json(row) for row in rows[:most]])
        return
    for line in _listed(rows[:most]):
        click.echo(line)
    if len(rows) > len(rows[:most]):
        click.echo(f"{len(rows) - len(rows[:most])} more; see --limit and --json")


def check_runs(folder: Path) -> None:
    """Raise a usage error unless a folder can hold runs."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "no such folder"
        raise click.UsageError(f"{folder}: {problem}; name the folder that holds the runs with --in")
    if (folder / "config.yaml").exists() and (folder / "result.json").exists():
        raise click.UsageError(f"{folder}: is a run itself; 'shine runs show {folder}' shows it")


def show_run(folder: Path, precision: Precision, as_json: bool) -> None:
    """Print what a run searched in, its settings and its front."""
    from shine.faces.runs.entries import read_entry

    folder = run_folder(folder)
    check_folder(folder)
    compare = _compared([folder])
    entry = compare.runs[0]
    changed = _changed(entry)
    if as_json:
        print_json({"folder": str(folder), **_entry_json(read_entry(folder)), "changed": list(changed)})
        return
    lines = [("run", str(folder)), *((name, text[0]) for name, text in _figures([entry]).items())]
    lines += [("problem", entry.problem)] if entry.problem else []
    for line in _aligned(lines):
        click.echo(line)
    if changed:
        click.echo("\nsettings other than the defaults")
        for line in _aligned([(f"  {key}", _value(value)) for key, value in changed.items()]):
            click.echo(line)
    click.echo("")
    _print_front(folder, entry, precision)


def compare_runs(folders: Sequence[Path], as_json: bool) -> None:
    """Print runs beside each other."""
    folders = [run_folder(folder) for folder in folders]
    for folder in folders:
        check_folder(folder)
    compared = _compared(folders)
    if as_json:
        runs = [
            {"folder": str(folder), **_entry_json(entry)} for folder, entry in zip(folders, compared.runs, strict=True)
        ]
        print_json({"runs": runs, "differ": compared.settings, "same_data": compared.same_data})
        return
    names = _letters(len(folders))
    head = [("", *names), *((name, *texts) for name, texts in _figures(compared.runs).items())]
    settings = [(key, *map(_value, values)) for key, values in compared.settings.items()]
    for name, folder in zip(names, folders, strict=True):
        click.echo(f"{name}: {folder}")
    click.echo("")
    for line in table(head):
        click.echo(line)
    click.echo("\nsettings that differ" if settings else "\nno settings differ")
    for line in table([("", *names), *settings]) if settings else ():
        click.echo(line)
    click.echo("\nfronts")
    rows = [("nodes", "run", "loss", "R2", "formula")]
    for size, formulas in compared.fronts.items():
        here = [(name, each) for name, each in zip(names, formulas, strict=True) if each is not None]
        for place, (name, each) in enumerate(here):
            mark = f"{name} *" if each.best else name
            rows.append(("" if place else str(size), mark, number(each.loss), share(each.r2), text_of(each)))
    for line in table(rows):
        click.echo(line)


def text_of(formula: FormulaEntry | str) -> str:
    """A formula for people; as it is if this version of Shine cannot read it."""
    from shine.base.errors import ShineError
    from shine.lang.parse import parse
    from shine.lang.presentation import for_people

    text = formula if isinstance(formula, str) else formula.expression
    try:
        return for_people(parse(text), DIGITS, None).readable
    except (ShineError, ValueError):
        return text


def _listed(rows: Sequence[Found]) -> Iterable[str]:
    if not rows:
        return ["no run meets these conditions"]
    heading = ("name", "date", "data", "target", "R2", "loss", "nodes", "seconds", "stopped by", "formula")
    cells = [
        (
            each.name, f"{each.date:%Y-%m-%d %H:%M}", Path(each.data).name if "/" in each.data else each.data,
            each.target, share(each.r2), number(each.loss), str(each.nodes or ""), seconds(each.seconds),
            each.stopped_by, text_of(each.formula) if each.formula else each.problem,
        )
        for each in rows
    ]  # fmt: skip
    return table([heading, *cells], cut=True)


def _aligned(lines: Sequence[tuple[str, str]]) -> list[str]:
    return table([(name, text) for name, text in lines])


def _figures(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What runs cost and reached, as text, by name."""
    best = [next((each for each in entry.formulas if each.best), None) for entry in entries]
    rows = {
        "data": [entry.data for entry in entries],
        "hash": [entry.data_hash[:12] for entry in entries],
        "target": [entry.target for entry in entries],
        "formula": [text_of(each) if each else "" for each in best],
        "R2": [share(each.r2) if each else "" for each in best],
        "loss": [number(each.loss) if each else "" for each in best],
        "nodes": [whole(each.nodes) if each else "" for each in best],
        "generations": [whole(entry.generations) for entry in entries],
        "evaluations": [whole(entry.evaluations) for entry in entries],
        "seconds": [seconds(entry.seconds) for entry in entries],
        "seed": [whole(entry.seed) for entry in entries],
        "stopped by": [entry.stopped_by for entry in entries],
        "shine": [entry.shine for entry in entries],
    }
    return {name: texts for name, texts in rows.items() if any(texts)}


def _changed(entry: Entry) -> dict[str, Any]:
    """The settings of a run that are not the defaults of this version."""
    from shine.faces.config import Config, DataSettings
    from shine.faces.runs.entries import flat

    defaults = dict(flat(Config(data=DataSettings()).model_dump(mode="json")))
    return {
        key: value
        for key, value in entry.settings.items()
        if key.split(".")[0] not in ("data", "seed") and (key not in defaults or defaults[key] != value)
    }


def _print_front(folder: Path, entry: Entry, precision: Precision) -> None:
    from shine.base.errors import ShineError
    from shine.faces.cli.display import front_table
    from shine.faces.runs import open_run
    from shine.search.models.figures import screen_width

    try:
        click.echo(front_table(open_run(folder).result, screen_width(), precision))
    except ShineError:
        for each in entry.formulas:
            click.echo(f"so far: {text_of(each)}")


def _compared(folders: Sequence[Path]) -> Any:
    from shine.base.errors import ExportError
    from shine.faces.runs.comparing import compare

    try:
        return compare(folders)
    except ExportError as error:
        raise click.UsageError(str(error)) from None


def _as_json(row: Found) -> dict[str, Any]:
    return {**row._asdict(), "date": row.date.isoformat(timespec="seconds")}


def _entry_json(entry: Entry) -> dict[str, Any]:
    from datetime import datetime

    front = [{**asdict(each), "words": sorted(each.words)} for each in entry.formulas]
    date = datetime.fromtimestamp(entry.date).isoformat(timespec="seconds")
    told = {name: value for name, value in asdict(entry).items() if name != "configuration"}
    return {**told, "date": date, "settings": entry.settings, "formulas": front}


def _letters(count: int) -> list[str]:
    return [chr(ord("A") + place) if count <= 26 else f"R{place + 1}" for place in range(count)]


def _value(value: Any) -> str:
    return ", ".join(map(_value, value)) if isinstance(value, list) else "" if value is None else str(value)
