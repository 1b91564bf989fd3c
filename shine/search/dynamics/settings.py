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
    kind: Literal["ode", "map"] = "ode"
    """Whether the equations give the rates of the states (`ode`), or the states a step later (`map`)."""
    lags: int = 0
    """Steps back whose states a map may use, too."""
