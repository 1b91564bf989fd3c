"""``shine runs``: past runs as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import placed
from shine.faces.cli.options import FILE, check_folder, json_option, precision_option, run_folder
from shine.faces.cli.output import count_text, number, print_json, seconds, share, table

if TYPE_CHECKING:
    from shine.faces.runs.entries import Entry, FormulaEntry
    from shine.faces.runs.finding import Found
    from shine.lang.forms.rounding import Precision


@click.group("runs", invoke_without_command=True)
@click.option("--uses", multiple=True, metavar="NAME", help="Function, operator or feature of the formula: exp, /, x1.")
@click.option("--without", multiple=True, metavar="NAME", help="Function, operator or feature that it lacks.")
@click.option("--formula", metavar="TEXT", help="A part of the formula's text.")
@click.option("--nodes", metavar="N", help="Most nodes of the formula, or a comparison: '<12'.")
@click.option("--r2", metavar="X", help="Least R2 of the formula, or a comparison.")
@click.option("--loss", metavar="X", help="Largest loss of the formula, or a comparison.")
@click.option("--data", metavar="FILE", help="File of the data: its path, name, or 6 first digits of its hash.")
@click.option("--target", metavar="NAME", help="Name of the target.")
@click.option("--since", metavar="DATE", help="The first day, as 2026-01-31.")
@click.option("--until", metavar="DATE", help="The day after the last, as 2026-03-01.")
@click.option("settings", "--set", multiple=True, metavar="KEY=VALUE", help="A setting, as evolution.population=500.")
@click.option("--where", multiple=True, metavar="CONDITION", help="A condition, as 'seconds < 60 and seed != 3'.")
@click.option("--formulas", is_flag=True, help="List every formula of the fronts, not one of each run.")
@click.option("--best", is_flag=True, help="Consider only the formulas that runs chose.")
@click.option("--sort", default="date", metavar="KEY", help="date, r2, loss, nodes, seconds, name, ... [date]")
@click.option("--reverse", is_flag=True, help="The last first.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Most rows. [50 in the table]")
@click.option("folder", "--in", type=FILE, metavar="DIR", help="The folder that holds the runs. [runs]")
@json_option
@click.pass_context
def runs(
    context: click.Context,
    /,
    folder: Path | None,
    settings: Sequence[str],
    limit: int | None,
    as_json: bool,
    **conditions: Any,
) -> None:
    """List past runs, and search them and their formulas.

    All conditions must hold, those on formulas for one and the same. The formula shown is the chosen one if it meets
    them, else that of the least loss. --where compares name, date, target, data, hash, generations, evaluations,
    seconds, seed, stopped_by, shine, formula, loss, r2, nodes and all settings, in the language of df.shine.query;
    texts stand in quotes, and "'exp' in formula" asks for a part of a text.

    \b
    Example:
      shine runs --uses exp --nodes '<12' --r2 0.9
      shine runs --data plants.csv --set evolution.population=500 --sort r2 --limit 5
    """
    if context.invoked_subcommand is not None:
        return
    from shine.faces.cli.progress import display_for
    from shine.faces.runs.finding import RUNS, found, query

    folder = RUNS if folder is None else folder
    check_runs(folder)
    pairs = [text.partition("=") for text in settings]
    wrong = next((key for key, sign, value in pairs if not sign or not value), None)
    if wrong is not None:
        raise click.UsageError(f"--set {wrong}: write KEY=VALUE, as evolution.population=500")
    most = limit if limit or as_json else 50  # rows of the table unless the user says otherwise
    with placed("", ValueError, kind=click.UsageError):
        asked = query(**conditions, settings=[(key.strip(), value) for key, _, value in pairs])
        with display_for("json" if as_json else "front", f"reading {folder}"):
            rows = found(folder, asked)
    if as_json:
        print_json([_as_json(row) for row in rows[:most]])
        return
    for line in _listed(rows[:most]):
        click.echo(line)
    if len(rows) > len(rows[:most]):
        click.echo(f"{len(rows) - len(rows[:most])} more; see --limit and --json")


@runs.command("show")
@click.argument("folder", metavar="RUN", type=FILE)
@precision_option
@json_option
def show(folder: Path, precision: Precision, as_json: bool) -> None:
    """Show what RUN searched in, its settings that are not the defaults, and its front.

    \b
    Example:
      shine runs show pythagoras
    """
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
    for line in table(lines):
        click.echo(line)
    if changed:
        click.echo("\nsettings other than the defaults")
        for line in table([(f"  {key}", _value(value)) for key, value in changed.items()]):
            click.echo(line)
    click.echo("")
    _print_front(folder, entry, precision)


@runs.command("compare")
@click.argument("folders", nargs=-1, required=True, type=FILE, metavar="RUN RUN...")
@json_option
def compare(folders: tuple[Path, ...], as_json: bool) -> None:
    """Compare runs: their results, the settings that differ, and their fronts.

    \b
    Example:
      shine runs compare pythagoras pythagoras-2
    """
    if len(folders) < 2:
        raise click.UsageError("compare needs at least two runs")
    places = [run_folder(folder) for folder in folders]
    for folder in places:
        check_folder(folder)
    compared = _compared(places)
    if as_json:
        shown = [
            {"folder": str(folder), **_entry_json(entry)} for folder, entry in zip(places, compared.runs, strict=True)
        ]
        print_json({"runs": shown, "differ": compared.settings, "same_data": compared.same_data})
        return
    names = _letters(len(places))
    head = [("", *names), *((name, *texts) for name, texts in _figures(compared.runs).items())]
    settings = [(key, *map(_value, values)) for key, values in compared.settings.items()]
    for name, folder in zip(names, places, strict=True):
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


def check_runs(folder: Path) -> None:
    """Raise a usage error unless a folder can hold runs."""
    check_folder(folder, "name the folder that holds the runs with --in")
    if (folder / "config.yaml").exists() and (folder / "result.json").exists():
        raise click.UsageError(f"{folder}: is a run itself; 'shine runs show {folder}' shows it")


def text_of(formula: FormulaEntry | str) -> str:
    """A formula for people; as it is if this version of Shine cannot read it."""
    from shine.base.errors import ShineError
    from shine.lang.parse import parse
    from shine.lang.presentation import for_people

    text = formula if isinstance(formula, str) else formula.expression
    try:
        return for_people(parse(text), 4, None).readable  # significant digits of constants in tables of several runs
    except (ShineError, ValueError):
        return text


def _listed(rows: Sequence[Found]) -> Iterable[str]:
    if not rows:
        return ["no run meets these conditions"]
    heading = ("name", "date", "data", "target", "R2", "loss", "nodes", "seconds", "stopped by", "formula")
    cells = [
        (
            each.name, f"{each.date:%Y-%m-%d %H:%M}", each.source, each.target, share(each.r2), number(each.loss),
            str(each.nodes or ""), seconds(each.seconds), each.stopped_by,
            text_of(each.formula) if each.formula else each.problem,
        )
        for each in rows
    ]  # fmt: skip
    return table([heading, *cells], cut=True)


def _figures(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Cost and results of runs, as text, by name."""
    best = [next((each for each in entry.formulas if each.best), None) for entry in entries]
    rows = {
        "data": [entry.data for entry in entries],
        "hash": [entry.data_hash[:12] for entry in entries],
        "target": [entry.target for entry in entries],
        "formula": [text_of(each) if each else "" for each in best],
        "R2": [share(each.r2) if each else "" for each in best],
        "loss": [number(each.loss) if each else "" for each in best],
        "nodes": [count_text(each.nodes) if each else "" for each in best],
        "generations": [count_text(entry.generations) for entry in entries],
        "evaluations": [count_text(entry.evaluations) for entry in entries],
        "seconds": [seconds(entry.seconds) for entry in entries],
        "seed": [count_text(entry.seed) for entry in entries],
        "stopped by": [entry.stopped_by for entry in entries],
        "shine": [entry.shine for entry in entries],
    }
    return {name: texts for name, texts in rows.items() if any(texts)}


def _changed(entry: Entry) -> dict[str, Any]:
    """The settings of a run that are not the defaults of this version."""
    from shine.faces.config import Config, DataSettings
    from shine.faces.config.models import DynamicsSection
    from shine.faces.runs.entries import flat

    motion = DynamicsSection(time="") if "dynamics.time" in entry.settings else None
    defaults = dict(flat(Config(data=DataSettings(), dynamics=motion).model_dump(mode="json")))
    return {
        key: value
        for key, value in entry.settings.items()
        if key.split(".")[0] not in ("data", "seed") and (key not in defaults or defaults[key] != value)
    }


def _print_front(folder: Path, entry: Entry, precision: Precision) -> None:
    from shine.base.errors import ShineError
    from shine.faces.cli.dynamics import dynamics_run
    from shine.faces.cli.output import front_table
    from shine.faces.runs import open_run
    from shine.search.models.front_table import screen_width

    try:
        if (system := dynamics_run(folder)) is None:
            click.echo(front_table(open_run(folder).result, screen_width(), precision))
        else:
            click.echo(system.result.front.table(precision))
    except ShineError:
        for each in entry.formulas:
            click.echo(f"so far: {text_of(each)}")


def _compared(folders: Sequence[Path]) -> Any:
    from shine.base.errors import ExportError
    from shine.faces.runs.entries import compare

    with placed("", ExportError, kind=click.UsageError):
        return compare(folders)


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
