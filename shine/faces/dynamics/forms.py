"""A system in other forms: programs, LaTeX, HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shine.formats.page.markup import element
from shine.formats.write.systems.system import Grid, System, export_system
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.search.dynamics.fields.model import FieldModel
from shine.search.models.notebook import formula_element, page_part

if TYPE_CHECKING:
    from shine.search.dynamics.result import SystemFront
    from shine.search.dynamics.system import SystemModel


def system_of(model: SystemModel, precision: Precision = None, rounded: bool = False) -> System:
    """A system as exports take it.

    Parameters
    ----------
    model : SystemModel
        Constants by run are written as cases of the run; see `SystemModel.of_run` for one.
    precision : int, "exact" or None
        Significant digits of constants.
    rounded : bool
        Whether None means the digits that the data support, not all.
    """
    shown = tuple(model.lines("exact" if precision is None else precision)) if model.runs else ()
    model = model if model.runs else model.of_run(0)
    trees = [
        each.rounded(precision) if rounded else rounded_tree(each.tree, precision, named=False)
        for each in model.equations
    ]
    grid = None
    if isinstance(model, FieldModel):
        grid = Grid(tuple(model.features), tuple(model.counts), model.axes, model.steps[1:], model.periodic)
    kinds = model.is_map, grid, model.runs, shown, model.stiff
    return System(tuple(trees), model.states, model.controls, model.time or "t", *kinds)


def exported(model: SystemModel, to: str, name: str = "f", *, precision: Precision = None) -> str:
    """A system in another form (see `shine.formats.write.systems.system.export_system`).

    Parameters
    ----------
    model : SystemModel
    to, name : str
    precision : int, "exact" or None
        Significant digits of constants; by default all, and in LaTeX those that the data support.
    """
    return export_system(system_of(model, precision, rounded=to == "latex"), to, name)


def notebook_html(front: SystemFront) -> str:
    """The chosen system, typeset, and the table of all, for notebooks."""
    best = front.best
    equations = [
        element("tr", element("td", f"{left} ="), element("td", formula_element(best.equations[place].rounded(), {})))
        for left, place in zip(best.lefts, best.sought, strict=True)
    ]
    return page_part(element("table", element("tbody", equations)), element("pre", repr(front)))
