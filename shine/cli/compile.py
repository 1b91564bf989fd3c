"""``shine compile``: a formula, a graph or the formula of a run as native code in files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.aot import EMITTERS, Job, emitted, job
from shine.cli.graphs import ROWS, TENSORS, GraphOptions, described_code, graph_of
from shine.cli.output import print_json, print_text, write_file
from shine.cli.sources import model_of, parsed, shown
from shine.errors import CompilationError, FormError, LoweringError
from shine.lang.program.program import Program
from shine.lang.tree import Tree

if TYPE_CHECKING:
    from shine.search.model import Model
    from shine.tensor.native.code import TensorCode
    from shine.tensor.native.function import TensorFunction

GRAPHS = (*ROWS, *TENSORS)
"""Endings of graph files, even of files that do not exist; an existing file with any other ending is a graph, too."""

NAME = "f"
"""Name of a formula's function, and of a graph's that is compiled for rows of numbers."""


def compile_source(
    source: str,
    name: str | None,
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
    config: Path | None,
    checkpoint: Path | None,
    cpp_class: str | None,
    shapes: Sequence[str],
    as_json: bool,
) -> None:
    """Write the native code of a formula, a graph or the formula of a run."""
    wanted = GraphOptions(tuple(outputs), config, checkpoint, cpp_class, tuple(shapes))
    compiled = _source(source, dtype, parameters, index, wanted)
    made: Job | TensorCode
    try:
        if isinstance(compiled, Tree | Program) or hasattr(compiled, "tree"):
            kinds = _kinds(emit, EMITTERS)
            made = job(compiled, NAME if name is None else name, target, cpu, features, dtype or "float64", None, level)
            files = emitted(made, kinds)
        else:
            from shine.tensor.native import emission

            kinds = _kinds(emit, emission.EMITTERS)
            made = compiled.code(
                name, target=target, cpu=cpu, features=features, cpp_class=cpp_class or "", level=level
            )
            files = emission.emitted(made, kinds)
    except (LoweringError, CompilationError, FormError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be made: {error.strerror}") from None
    for file, content in files.items():
        write_file(out / file, content)
    paths = [str(out / file) for file in files]
    if as_json:
        described = _described(made) if isinstance(made, Job) else described_code(made)
        print_json({**described, "emit": kinds, "files": paths})
    else:
        print_text("\n".join(paths))


def _kinds(emit: Sequence[str], known: Collection[str]) -> list[str]:
    kinds = [kind.strip() for listed in emit for kind in listed.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in known:
            raise click.UsageError(f"--emit {kind}: is not a kind of output; use some of {','.join(known)}")
    if not kinds:
        raise click.UsageError(f"--emit: names nothing; use some of {','.join(known)}")
    return list(dict.fromkeys(kinds))


def _source(
    source: str, dtype: str | None, parameters: str | None, index: int | None, wanted: GraphOptions
) -> Model | Tree | Program | TensorFunction:
    """The formula or graph to compile: a file is a graph, a folder is a run, everything else is a formula."""
    path = Path(source)
    if path.suffix in GRAPHS or (_is_file(path) and path.name != "result.json"):
        for option, value in (("--dtype", dtype), ("--params", parameters), ("--index", index)):
            if value is not None:
                raise click.UsageError(f"{option}: is not for graphs, which define it themselves")
        return graph_of(path, wanted)
    if wanted.given:
        raise click.UsageError(f"{wanted.given} is for graphs, and there is no file {shown(source)}")
    if parameters is not None:
        return parsed(source, parameters)
    return model_of(source, index)[0]


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
