"""``shine compile``: a formula, a graph or the formula of a run as native code in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.aot import EMITTERS, Job, emitted, job
from shine.cli.output import print_json, print_text, write_file
from shine.cli.sources import parsed, shown, tree_of
from shine.errors import CompilationError, GraphImportError, LoweringError

if TYPE_CHECKING:
    from shine.lang.program.program import Program
    from shine.lang.tree import Tree

GRAPHS = (".pb", ".pbtxt")
"""Endings of graph files, even of files that do not exist; an existing file with any other ending is a graph, too."""


def compile_source(
    source: str,
    name: str,
    out: Path,
    emit: Sequence[str],
    target: str | None,
    cpu: str | None,
    features: str,
    dtype: str | None,
    level: str,
    parameters: str | None,
    index: int | None,
    outputs: Sequence[str],
    as_json: bool,
) -> None:
    """Write the native code of a formula, a graph or the formula of a run."""
    kinds = _kinds(emit)
    compiled = _source(source, dtype, parameters, index, outputs)
    try:
        made = job(compiled, name, target, cpu, features, dtype or "float64", None, level)
        files = emitted(made, kinds)
    except (LoweringError, CompilationError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be made: {error.strerror}") from None
    for file, content in files.items():
        write_file(out / file, content)
    paths = [str(out / file) for file in files]
    if as_json:
        print_json({**_described(made), "emit": kinds, "files": paths})
    else:
        print_text("\n".join(paths))


def _kinds(emit: Sequence[str]) -> list[str]:
    kinds = [kind.strip() for listed in emit for kind in listed.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in EMITTERS:
            raise click.UsageError(f"--emit {kind}: is not a kind of output; use some of {','.join(EMITTERS)}")
    if not kinds:
        raise click.UsageError(f"--emit: names nothing; use some of {','.join(EMITTERS)}")
    return list(dict.fromkeys(kinds))


def _source(
    source: str, dtype: str | None, parameters: str | None, index: int | None, outputs: Sequence[str]
) -> Tree | Program:
    """The formula or graph to compile: a file is a graph, a folder is a run, everything else is a formula."""
    path = Path(source)
    if path.suffix in GRAPHS or (_is_file(path) and path.name != "result.json"):
        for option, value in (("--dtype", dtype), ("--params", parameters), ("--index", index)):
            if value is not None:
                raise click.UsageError(f"{option}: is not for graphs, which define it themselves")
        return _graph(path, outputs)
    if outputs:
        raise click.UsageError(f"--output is for graphs, and there is no file {shown(source)}")
    if parameters is not None:
        return parsed(source, parameters)
    return tree_of(source, index)


def _graph(path: Path, outputs: Sequence[str]) -> Program:
    from shine.frontends.graphdef import load_graph

    if not path.exists():
        raise click.UsageError(f"{path}: no such file")
    try:
        return load_graph(path, outputs=list(outputs) or None)
    except GraphImportError as error:
        raise click.UsageError(str(error)) from None


def _described(made: Job) -> dict[str, object]:
    """The description of a job for JSON."""
    target, interface = made.target, made.interface
    return {
        "source": made.description,
        "name": made.name,
        "target": target.triple,
        "cpu": target.cpu or None,
        "features": target.features or None,
        "parameters": [{"name": column.label, "dtype": column.dtype} for column in interface.parameters],
        "outputs": [{"name": column.label, "dtype": column.dtype} for column in interface.outputs],
        "status": interface.can_fail,
    }


def _is_file(path: Path) -> bool:
    # A formula can be too long for a file name, or have characters that a file name cannot have.
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
