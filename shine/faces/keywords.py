"""The keywords of `shine.evolve`, and what they set: checked values, and errors in the words that the user typed.

Files of graphs among guesses become programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError, placed, reason
from shine.data.columns.numbers import int_if_exact
from shine.evaluate.losses import loss_text
from shine.evaluate.validation import valid_settings
from shine.formats.read.guesses import Guess, is_graph_file
from shine.lang.forms.names import is_list, value_text
from shine.lang.forms.synonyms import meant, unexpected
from shine.lang.program.program import Program
from shine.lang.vocabulary import PrimitiveSource, check_primitives
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem.settings import FitnessSettings, SearchSettings
from shine.search.templates.reading import template

KEYWORDS: dict[str, tuple[str, ...]] = {
    **{each.name: ("evolution", each.name) for each in fields(EvolutionSettings)},
    **{each.name: ("fitness", each.name) for each in fields(FitnessSettings)},
    "generations": ("stop", "generations"),
    "seconds": ("stop", "seconds"),
    "stagnation": ("stop", "stagnation"),
    "stop_loss": ("stop", "loss"),
    "primitives": ("primitives",),
    "constraints": ("constraints",),
    "seed": ("seed",),
    "guesses": ("guesses",),
    "template": ("template",),
}
"""Place of each keyword of `shine.evolve` in the settings."""

NO_SETTINGS = (
    "sample_weight",
    "features",
    "sigma",
    "groups",
    "times",
    "loss_columns",
    "objective",
    "report",
    "workers",
    "executor",
    "live",
)
"""The other keywords of `shine.evolve`."""


def settings_from(*, words: Mapping[str, str] | None = None, **keywords: Any) -> SearchSettings:
    """The settings that keywords of `shine.evolve` stand for.

    Parameters
    ----------
    words : mapping of str to str, optional
        The user's words for keywords, if they are others, for the messages.
    **keywords
        Keywords of `KEYWORDS`; the other settings have their defaults.

    Raises
    ------
    TypeError
        If a keyword is unknown.
    ValueError
        If a value is outside its bounds.
    """
    parts: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {"evolution": {}, "fitness": {}, "stop": {}}
    typed: dict[str, dict[str, str]] = {"evolution": {}, "fitness": {}, "stop": {}}
    for keyword, value in keywords.items():
        if keyword not in KEYWORDS:
            raise unexpected("evolve", keyword, [*KEYWORDS, *NO_SETTINGS])
        word = (words or {}).get(keyword, keyword)
        *section, name = KEYWORDS[keyword]
        if keyword == "loss":
            value = loss_text(value)
        if section:
            sections[section[0]][name], typed[section[0]][name] = value, word
        else:
            parts[name] = CHECKS[name](value, word)
    return SearchSettings(
        **{
            **parts,
            "evolution": valid_settings(EvolutionSettings, sections["evolution"], typed["evolution"]),
            "fitness": valid_settings(FitnessSettings, sections["fitness"], typed["fitness"]),
            "stop": valid_settings(StopSettings, sections["stop"], typed["stop"]),
        }
    )


def constraints_from(given: Constraints | Mapping[str, Any] | None) -> Constraints:
    """Constraints, given as such or as a mapping of their fields.

    Names are checked by hand, because pydantic's message would not list the known ones.
    """
    if isinstance(given, Constraints):
        return given
    known = [each.name for each in fields(Constraints)]
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"constraints must be a mapping or shine.Constraints, is {value_text(given)}")
    for name, value in (given or {}).items():
        if name not in known:
            near = meant(str(name), known)
            hint = f"did you mean {near!r}? " if near else ""
            if not near and isinstance(value, int | tuple | list):
                # PySR's spelling.
                hint = f"for sizes of its arguments write constraints={{'arguments': {{{name!r}: {value!r}}}}}; "
            raise ValueError(f"constraints has no {value_text(name)}; {hint}it has {', '.join(known)}")
    # Making the validator takes a fifteenth of a first search.
    return valid_settings(Constraints, given, prefix="constraints: ") if given else Constraints()


def _primitives(given: Any, word: str) -> tuple[PrimitiveSource, ...]:
    check_primitives(given)
    return tuple(given)


def _guesses(given: Any, word: str) -> tuple[Guess, ...]:
    if not is_list(given):
        raise TypeError(f"{word} must be a list of formulas, such as ['x0*x1'], is {value_text(given)}")
    return with_programs(given, word)


def _seed(given: Any, word: str) -> int:
    given = int_if_exact(given)
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer) or given < 0:
        raise ValueError(f"{word} must be a whole number of at least 0, is {value_text(given)}")
    return int(given)


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "constraints": lambda given, word: constraints_from(given),
    "primitives": _primitives,
    "guesses": _guesses,
    "seed": _seed,
    "template": lambda given, word: None if given is None else template(given),
}
"""Checks of the settings that are in no section: value and the user's word for it -> the setting."""


def read_program(path: Path, output: str | None = None) -> Program:
    """The graph in a file, as a program.

    A `GraphImportError` if the file cannot be read, is not a graph, or has no such output.
    """
    from shine.tensor.graphdef.programs import load_graph  # slow: it defines the messages of the file format

    with placed(f"{path}: cannot be read", OSError, kind=GraphImportError, told=reason):
        return load_graph(path, None if output is None else [output])


def with_programs(guesses: Iterable[Guess], word: str) -> tuple[Guess, ...]:
    """Guesses, with programs in the place of paths of graphs.

    A `GraphImportError` if a graph cannot be read; the message begins with the user's word for the guesses.
    """
    found: list[Guess] = []
    for position, guess in enumerate(guesses):
        with placed(f"{word}[{position}]", GraphImportError):
            found.append(_with_program(guess))
    return tuple(found)


def _with_program(guess: Any) -> Guess:
    if is_graph_file(guess):
        return read_program(Path(str(guess).strip()))
    if isinstance(guess, Mapping) and is_graph_file(guess.get("graph")):
        output = guess.get("output")
        return {**guess, "graph": read_program(Path(str(guess["graph"]).strip()), output)}
    return guess
