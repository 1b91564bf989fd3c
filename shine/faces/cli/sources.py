"""Arguments of the command line -> runs, positions in their fronts, and formulas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.base.errors import placed
from shine.lang.forms.names import shown

if TYPE_CHECKING:
    from shine.faces.runs import Run
    from shine.lang.forms.tree import Tree
    from shine.search.models.model import Model


def run_folder(folder: Path) -> Path:
    """The folder of a run: as it is named, or else in ``runs``, where `shine evolve` puts it."""
    known = Path("runs") / folder
    return known if len(folder.parts) == 1 and not exists(folder) and exists(known) else folder


def opened(folder: Path) -> Run:
    """The finished run in a folder, here or in ``runs``; the path of its ``result.json`` also works.

    A `click.UsageError` if the folder holds no run or no result, or a damaged one.
    """
    from shine.base.errors import ShineError
    from shine.faces.runs import Run, open_run

    folder = run_folder(folder)
    folder = folder.parent if folder.name == "result.json" and not folder.is_dir() else folder
    check_folder(folder)
    with placed("", ShineError, kind=click.UsageError):
        run = Run(open_run(folder).folder)  # of one target: with equations of motion it says what takes them
        if not (folder / "result.json").exists():
            raise click.UsageError(f"{folder}: has no result yet; finish it with 'shine resume {folder}'")
        _ = run.result
    return run


def check_folder(folder: Path, hint: str = "RUN is the folder of a run, such as runs/pythagoras") -> None:
    """Raise a usage error unless a folder exists."""
    if not exists(folder) or not folder.is_dir():
        problem = "is not a folder" if exists(folder) else "no such folder"
        raise click.UsageError(f"{folder}: {problem}; {hint}")


def chosen(run: Run, index: int | None) -> tuple[int, Model]:
    """The position and the model at `index` in a run's front; without an index, those of the recommended model.

    A `click.UsageError` if the front has no such index.
    """
    result = run.result
    place = result.front.best_index if index is None else index
    if place >= len(result.front):
        raise click.UsageError(
            f"--index {place}: the front of {run.folder} has the indices 0 to {len(result.front) - 1}"
        )
    return place, result.front[place]


def parsed(formula: str, parameters: str | None = None) -> Tree:
    """A formula from the command line; a `click.UsageError` if it is not part of the language.

    Parameters
    ----------
    formula : str
    parameters : str, optional
        Names of its arguments in order, separated by commas; the order of `shine.parse` by default.
    """
    from shine.base.errors import UnsupportedSyntaxError
    from shine.lang.parse import parse

    names = None if parameters is None else [name.strip() for name in parameters.split(",")]
    with placed(shown(formula), UnsupportedSyntaxError, kind=click.UsageError):
        return parse(formula, names)


def model_of(source: str, index: int | None) -> tuple[Model | Tree, Run | None]:
    """The model of a run, and the run, if the argument is an existing folder; otherwise the argument as a formula.

    A `click.UsageError` if it is neither a run nor a formula.
    """
    path = run_folder(Path(source))
    # A path in an existing folder is a mistyped run, not a formula.
    if exists(path) or ("/" in source and " " not in source and exists(path.parent)):
        run = opened(path)
        return chosen(run, index)[1], run
    tree = parsed(source)
    if index is not None:
        raise click.UsageError(f"--index is for runs, and there is no folder {shown(source)}")
    if source.isidentifier() and len(source) > 1:  # runs have longer names than x
        click.echo(f"warning: there is no run {shown(source)}; it is taken for a formula of one name", err=True)
    return tree, None


def exists(path: Path) -> bool:
    """Whether there is a file or a folder."""
    # A formula can be too long for a file name, or have characters that a file name cannot have.
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
