"""Graphs of the command line -> programs of rows, or tensor programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import FormError, GraphImportError

if TYPE_CHECKING:
    from shine.lang.program.program import Program
    from shine.tensor.native.function import TensorFunction

WORDS: dict[str, dict[str, str]] = {
    "graphdef": {"--output": "fetches", "--config": "config", "--checkpoint": "checkpoint", "--shape": "shapes"},
    "onnx": {"--shape": "shapes"},
}
"""Keywords of `shine.tensor.load` for options, in each format that has them."""

NAMES = {"graphdef": "TensorFlow", "onnx": "ONNX"}
"""Names of formats for people."""


@dataclass(frozen=True)
class GraphOptions:
    """Options that are for graphs only.

    Parameters
    ----------
    outputs : tuple of str
        Nodes.
    config : Path or None
        TensorFlow's configuration of feeds and fetches.
    checkpoint : Path or None
        Values of a TensorFlow graph's variables.
    cpp_class : str or None
        Name of a class in C++.
    shapes : tuple of str
        ``NAME=SIZES`` for arguments, with commas between the sizes.
    """

    outputs: tuple[str, ...]
    config: Path | None
    checkpoint: Path | None
    cpp_class: str | None
    shapes: tuple[str, ...] = ()

    @property
    def first_option(self) -> str | None:
        """The first option that is given."""
        named: dict[str, Any] = {"--output": self.outputs, "--config": self.config, "--checkpoint": self.checkpoint}
        named |= {"--cpp-class": self.cpp_class, "--shape": self.shapes}
        return next((name for name, value in named.items() if value), None)

    @property
    def is_of_tensors(self) -> bool:
        """Whether an option is given that only tensor programs have."""
        return bool(self.config or self.checkpoint or self.cpp_class or self.shapes)


def graph_of(path: Path, options: GraphOptions) -> Program | TensorFunction:
    """The graph of a file: a program of rows if all its operations are elementwise and no option says otherwise.

    A `click.UsageError` if there is no such file, or it cannot be read.
    """
    from shine.tensor.graphdef.programs import load_graph
    from shine.tensor.loading import OF_TORCH

    if not path.exists():
        raise click.UsageError(f"{path}: no such file")
    # Only TensorFlow's graphs may be formulas of rows.
    if options.is_of_tensors or path.suffix.lower() in OF_TORCH or _format(path) != "graphdef":
        return _tensors(path, options)
    try:
        return load_graph(path, outputs=list(options.outputs) or None)
    except GraphImportError as error:
        problem = str(error)
    try:
        return _tensors(path, options)
    except click.UsageError as error:
        more = "" if error.message == problem else f"; nor is it a graph of tensors: {error.message}"
        raise click.UsageError(f"{problem}{more}") from None


def reading_of(path: Path, options: GraphOptions) -> dict[str, Any]:
    """Keywords of `shine.tensor.load` for a file and its options.

    Raises
    ------
    click.UsageError
        If an option is for another format, or options exclude each other.
    GraphImportError
        If the file cannot be read.
    """
    named: dict[str, Any] = {
        "--output": list(options.outputs),
        "--config": options.config,
        "--checkpoint": options.checkpoint,
        "--shape": _shapes(options.shapes),
    }
    named = {name: value for name, value in named.items() if value}
    kind = _format(path)
    for name in named:
        if name not in WORDS.get(kind, {}):
            known = [NAMES[other] for other in WORDS if name in WORDS[other]]
            raise click.UsageError(f"{name} is for graphs of {' and '.join(known)}, and {path} is none")
    if "--config" in named and len(named.keys() & {"--output", "--shape"}):
        raise click.UsageError("--config: names outputs and shapes; leave out --output and --shape")
    return {"format": kind, **{WORDS[kind][name]: value for name, value in named.items()}}


def _tensors(path: Path, options: GraphOptions) -> TensorFunction:
    from shine.tensor.loading import load

    try:
        return load(path, **reading_of(path, options))
    except (GraphImportError, FormError) as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise click.UsageError(f"{where}{error}") from None


def _shapes(texts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes by name."""
    shapes = {}
    for text in texts:
        name, equals, sizes = text.rpartition("=")
        parts = [size.strip() for size in sizes.split(",") if size.strip()]
        if not (name and equals and all(part.isdecimal() for part in parts)):
            raise click.UsageError(f"--shape {text}: write a name and sizes, such as --shape input=1,28,28")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes


def _format(path: Path) -> str:
    """The format of a file: a GraphDef if neither its ending nor its beginning says something else."""
    from shine.tensor.loading import OF_TORCH, format_of

    try:
        return format_of(path)
    except GraphImportError:
        if path.suffix.lower() in OF_TORCH:
            raise
        return "graphdef"
