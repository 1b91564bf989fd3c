"""The settings of a search: what they are, their defaults, and how the keywords of `evolve` become them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le, Lt

from shine.data.of_r import whole
from shine.frontends.guesses import Guess
from shine.gp.constraints.constraints import Constraints
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.lang.vocabulary import PrimitiveSource, check_primitives

Section = TypeVar("Section", EvolutionSettings, StopSettings, Constraints)

DEFAULT_PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
"""Functions that a search draws from by default."""


@dataclass(frozen=True)
class FitnessSettings:
    """The loss of formulas, and how it is computed."""

    loss: Literal["mse", "rmse", "mae", "nmse", "r2"] = "mse"
    """The loss to minimize; `nmse` is the mse over the target's variance, and `r2` is the same number, 1 - R^2."""
    noise: Literal["auto", "absolute", "relative", "log", "counts"] = "auto"
    """How the noise of the target grows: not at all (`absolute`), with its values (`relative`, `log` if it is that of
    their logarithms), with their roots (`counts`), or chosen by evidence if the target has one sign and is
    wide or has whole numbers from 0, and absolute otherwise (`auto`). The standard deviations of the
    rows, if they are known, are part of the data."""
    validation: Literal["random", "groups", "time"] | None = None
    """Rows that the search never sees, and whose errors choose the formula: at random, whole groups, or the last rows
    (`time`). When left out, whole groups if the data have groups; otherwise none, and the shortest description of all
    rows decides."""
    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Least share of the rows to keep back."""
    linear_scaling: bool = True
    """Judge `intercept + slope * formula` with the best slope and intercept, instead of the formula itself."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the evaluation."""
    tier: Literal["auto", "machine", "native", "reference"] = "auto"
    """The evaluator: the tile machine (`machine`), code compiled for each formula (`native`), NumPy (`reference`), or
    the fastest for the task (`auto`)."""
    threads: Annotated[int, Ge(1), Le(1024)] | None = None
    """Threads of the tile machine; all processors when left out. Their number does not change the result."""


@dataclass(frozen=True)
class SearchSettings:
    """Everything that a user may set about a search, with the defaults.

    `shine.evolve` and the estimators spell some of them out in their signatures; the parts are the sections of the YAML
    file (see `shine.config`).
    """

    primitives: tuple[PrimitiveSource, ...] = DEFAULT_PRIMITIVES
    """Functions that formulas are made of."""
    evolution: EvolutionSettings = field(default_factory=EvolutionSettings)
    """Operators and limits of the evolution."""
    fitness: FitnessSettings = field(default_factory=FitnessSettings)
    """The loss, and how it is computed."""
    constraints: Constraints = field(default_factory=Constraints)
    """Constraints on formulas."""
    stop: StopSettings = field(default_factory=StopSettings)
    """Limits that end the search."""
    seed: int = 0
    """Seed of the random generator: the same seed gives the same front."""
    guesses: tuple[Guess, ...] = ()
    """Formulas that join the first population; those that break a constraint die out at once."""


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
}
"""Place of each keyword of `shine.evolve` in the settings."""

FORMER_KEYWORDS = {"seeds": "guesses"}
"""Names of keywords in former versions, and their names now."""


def settings_from(**keywords: Any) -> SearchSettings:
    """The settings that keywords of `shine.evolve` stand for.

    Parameters
    ----------
    **keywords
        Keywords of `KEYWORDS`; the other settings have their defaults.

    Raises
    ------
    TypeError
        If a keyword is unknown.
    ValueError
        If a value is outside its bounds.

    Warns
    -----
    FutureWarning
        If a keyword has the name of a former version.
    """
    for former, keyword in FORMER_KEYWORDS.items():
        if former in keywords:
            if len(keywords.get(keyword, ())):
                raise TypeError(f"{former!r} is the former name of {keyword!r}; pass only {keyword!r}")
            warnings.warn(f"evolve() calls {former!r} {keyword!r} now", FutureWarning, stacklevel=3)
            keywords[keyword] = keywords.pop(former)
    parts: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {"evolution": {}, "fitness": {}, "stop": {}}
    for keyword, value in keywords.items():
        if keyword not in KEYWORDS:
            raise TypeError(f"evolve() got an unexpected keyword argument {keyword!r}")
        *section, name = KEYWORDS[keyword]
        (sections[section[0]] if section else parts)[name] = value
    if "primitives" in parts:
        check_primitives(parts["primitives"])
        parts["primitives"] = tuple(parts["primitives"])
    if "seed" in parts:
        parts["seed"] = whole(parts["seed"])
    return SearchSettings(
        **{
            **parts,
            "evolution": valid_settings(EvolutionSettings, sections["evolution"]),
            # The evaluators check these, and more than their bounds.
            "fitness": FitnessSettings(**sections["fitness"]),
            "stop": valid_settings(StopSettings, sections["stop"]),
            "constraints": constraints_from(parts.get("constraints")),
            "guesses": tuple(parts.get("guesses", ())),
        }
    )


def constraints_from(given: Constraints | Mapping[str, Any] | None) -> Constraints:
    """Constraints, given as such or as a mapping of their fields.

    Names are checked by hand, because pydantic's message would not list the known ones.
    """
    if isinstance(given, Constraints):
        return given
    known = [each.name for each in fields(Constraints)]
    for name in given or {}:
        if name not in known:
            raise ValueError(f"constraints has no {name!r}; it has {', '.join(known)}")
    return valid_settings(Constraints, given or {})


def valid_settings(kind: type[Section], values: Mapping[str, Any]) -> Section:
    """Settings within their bounds; a `ValueError` names those outside."""
    from pydantic import TypeAdapter, ValidationError  # a fifth of Shine's import time, and needed only here

    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise ValueError("; ".join(problems)) from None
