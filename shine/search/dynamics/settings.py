"""The settings of a search for equations of motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from shine.lang.forms.names import name_problem, value_text
from shine.search.problem.settings import SearchSettings

TEMPLATE = ("formula", "unknown", "parameters")
"""Keys of a mapping of known parts."""


def unfit_for_dynamics(fitness: Any) -> list[str]:
    """Settings of fitness that were changed, and that the readings decide."""
    own = {"evidence": None, "noise": "auto", "outliers": "auto"}
    return [name for name, default in own.items() if getattr(fitness, name) != default]


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
    template: str | Mapping[str, Any] = ""
    """Known parts of the equations (see `shine.search.dynamics.known_parts`), or a mapping of ``formula``, these parts,
    and the options ``unknown`` and ``parameters`` of `shine.template`."""
    conserve: str = ""
    """A quantity that the motion leaves as it is (see `shine.search.dynamics.forms`)."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit of each state and control and of the time; empty if units are not known."""

    derivatives: int = 3
    """Highest derivative in space that the rates of fields may use."""
    hidden: str = ""
    """Name of the one state that nobody read; empty if all were."""

    def __post_init__(self) -> None:
        if not isinstance(self.units, Mapping):
            raise ValueError("units is a mapping of names to units, such as {'x': 'm', 't': 's'}")
        for name in unfit_for_dynamics(self.search.fitness):
            raise ValueError(f"{name} is not for dynamics, which estimates it from the readings; leave it out")
        if problem := form_problem(self):
            raise ValueError(problem)
        if not isinstance(self.template, str | Mapping):
            raise ValueError(
                "template must be text such as \"x' = v; v' = f(x)\", a mapping with it as formula, or None, is "
                f"{value_text(self.template)}"
            )
        if not isinstance(self.template, str) and not {"formula"} <= set(self.template) <= set(TEMPLATE):
            raise ValueError(f"template: as a mapping it has {', '.join(TEMPLATE)}, and always a formula")
        if not isinstance(self.template, str) and not isinstance(self.template["formula"], str):
            raise ValueError("template: formula is text, such as \"x' = v; v' = f(x)\"")


def hidden_name(asked: Any) -> str:
    """The name of the hidden state: ``h`` for 1, none for 0.

    A `ValueError` if it is something else than 0, 1 or a name for formulas.
    """
    if isinstance(asked, str) and (not asked or name_problem(asked) is None):
        return asked
    if not isinstance(asked, int | float | np.number | np.bool_) or asked not in (0, 1):
        raise ValueError(f"hidden is {value_text(asked)}; it must be 1, or the name of the one state that nobody read")
    return "h" if asked else ""


def form_problem(asked: Any) -> str:
    """Why settings of these names have no form of equations; empty if they have one."""
    kind, template, conserve = asked.kind, asked.template, asked.conserve
    if asked.units and (template or conserve or kind == "pde"):
        what = "fields" if kind == "pde" else "searches with " + ("template" if template else "conserve")
        return f"units are not for {what}; leave them out"
    if kind != "map" and asked.lags:
        return "lags are for maps: kind='map'"
    if conserve and (kind != "ode" or asked.order == 2):
        return "conserve is for rates: kind='ode' and order=1"
    if conserve and template:
        return "conserve and template are both given; write the quantity's equations into the template"
    if asked.hidden and (kind != "ode" or asked.order == 2 or template or conserve or asked.units):
        return "hidden is for kind='ode' and order=1, without template, conserve and units"
    if kind == "pde" and asked.order == 2:
        return "order=2 is for kind='ode'; give the rate of the field as another field"
    return "order=2 is for kind='ode'; a map takes lags=1" if kind == "map" and asked.order == 2 else ""
