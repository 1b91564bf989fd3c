"""Files of graphs among guesses -> programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.guesses import Guess, is_graph_file
from shine.lang.program.program import Program


def read_program(path: Path, output: str | None = None) -> Program:
    """The graph in a file, as a program.

    Raises
    ------
    GraphImportError
        If the file cannot be read, is not a graph, or has no such output.
    """
    from shine.tensor.graphdef.programs import load_graph  # slow: it defines the messages of the file format

    try:
        return load_graph(path, None if output is None else [output])
    except OSError as error:
        raise GraphImportError(f"{path}: cannot be read: {error.strerror}") from None


def with_programs(guesses: Iterable[Guess], word: str) -> tuple[Guess, ...]:
    """Guesses, with programs in the place of paths of graphs.

    Raises
    ------
    GraphImportError
        If a graph cannot be read; the message begins with the user's word for the guesses.
    """
    found: list[Guess] = []
    for position, guess in enumerate(guesses):
        try:
            found.append(_with_program(guess))
        except GraphImportError as error:
            raise GraphImportError(f"{word}[{position}]: {error}") from None
    return tuple(found)


def _with_program(guess: Any) -> Guess:
    if is_graph_file(guess):
        return read_program(Path(str(guess).strip()))
    if isinstance(guess, Mapping) and is_graph_file(guess.get("graph")):
        output = guess.get("output")
        return {**guess, "graph": read_program(Path(str(guess["graph"]).strip()), output)}
    return guess
