"""The settings of a search for equations of motion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shine.search.problem.settings import SearchSettings


@dataclass(frozen=True)
class DynamicsSettings:
    """Settings of a search for equations of motion, with the defaults."""

    search: SearchSettings = field(default_factory=SearchSettings)
    """Settings of the search for each state; the seconds are those of all."""
    autonomous: bool = True
    """Whether rates depend on states and controls alone, and not on the time."""
    kind: Literal["ode", "map", "pde"] = "ode"
    """Whether the equations give the rates of the states (`ode`) or of fields (`pde`), or the states a step later
    (`map`)."""
    lags: int = 0
    """Steps back whose states a map may use, too."""
    order: Literal[1, 2] = 1
    """Whether the equations give rates (1), or the rates of these (2), where positions alone are read."""
    template: str = ""
    """Known parts of the equations (see `shine.search.dynamics.known_parts`)."""

    derivatives: int = 3
    """Highest derivative in space that the rates of fields may use."""

    def __post_init__(self) -> None:
        if problem := form_problem(self.kind, self.lags, self.order):
            raise ValueError(problem)


def form_problem(kind: str, lags: int, order: int) -> str:
    """Why a kind of equations has no such lags or order; empty if it has."""
    if kind != "map" and lags:
        return "lags are for maps: kind='map'"
    if kind == "pde" and order == 2:
        return "order=2 is for kind='ode'; give the rate of the field as another field"
    return "order=2 is for kind='ode'; a map takes lags=1" if kind == "map" and order == 2 else ""
