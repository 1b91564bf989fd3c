"""A system of differential equations, or a map, as exports take it, and the table of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from shlex import quote

from shine.base.errors import ExportError
from shine.data.datasets.preparation import Preparation, PreparedColumn
from shine.formats.write.sources import Headings, PreparedHeadings
from shine.lang.forms.names import check_text, value_text
from shine.lang.forms.tree import Tree


@dataclass(frozen=True)
class Grid:
    """Fields on a regular grid, whose rates depend on them and their derivatives in space.

    Parameters
    ----------
    features : tuple of str
        Names of the derivatives, those of all fields for each of `counts`.
    counts : tuple of tuple of int
        How often each derivative is taken along each axis; zeros stand for the field itself.
    axes : tuple of str
    steps : tuple of float
        Of the axes.
    periodic : bool
        Whether the last point of an axis is followed by the first.
    """

    features: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    axes: tuple[str, ...]
    steps: tuple[float, ...]
    periodic: bool


@dataclass(frozen=True, eq=False)
class System:
    """The right-hand sides ``x' = f(x, u, t)``, or ``x[k+1] = f(x[k], u[k], k)``.

    Parameters
    ----------
    trees : tuple of Tree
        The rate of each state; parameters are states, controls and time, those that a formula uses or more.
    states, controls : tuple of str
    time : str
        Of a map, the number of the step.
    is_map : bool
    grid : Grid, optional
        Of fields.
    runs : tuple of str
        Names of the runs if constants depend on them: the number of the run, from 0, is the last control.
    shown : tuple of str
        The equations for people; by default those of the trees.
    stiff : bool
        Whether an implicit method suits them.
    """

    trees: tuple[Tree, ...]
    states: tuple[str, ...]
    controls: tuple[str, ...] = ()
    time: str = "t"
    is_map: bool = False
    grid: Grid | None = None
    runs: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    stiff: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The controls that are given, without the number of the run."""
        return self.controls[:-1] if self.runs else self.controls

    @property
    def headings(self) -> Headings:
        """What the numbers of the runs mean, for `shine.export`."""
        if not self.runs:
            return {}
        name = self.controls[-1]
        column = PreparedColumn(name, name, "ordinal", (name,), (name,), self.runs)
        return PreparedHeadings({name: name}, Preparation((column,)))

    @property
    def parameters(self) -> tuple[str, ...]:
        """States, controls and time: the parameters of right-hand sides in programs."""
        return (*self.states, *self.controls, self.time) if self.grid is None else self.grid.features

    @property
    def text(self) -> str:
        """The equations, a line each."""
        if self.shown:
            return "\n".join(self.shown)
        left = "[k+1]" if self.is_map else "'" if self.grid is None else "_t"
        return "\n".join(f"{state}{left} = {tree}" for state, tree in zip(self.states, self.trees, strict=True))


SYSTEM_EXPORTS = {
    "python": ("python", "python_program"),
    "c": ("c", "c_program"),
    "julia": ("julia", "julia_program"),
    "jax": ("jax", "jax_program"),
    "sympy": ("mathematics", "sympy_program"),
    "latex": ("mathematics", "latex_system"),
}
"""Module and function that write each form. Modules are imported at their first use."""


OF_FIELDS = "python", "jax", "sympy", "latex"
"""The forms that fields have, too."""


def export_system(system: System, to: str, name: str = "f", file: str | None = None) -> str:
    """A system in another form.

    Parameters
    ----------
    system : System
    to : str
        One of `SYSTEM_EXPORTS`.
    name : str
        Name of the right-hand side, in forms that have one.
    file : str, optional
        Name of the file, without its ending, for the comment that says how to run it; by default `name`.

    Raises
    ------
    ValueError
        If the form is unknown, or does not allow the name.
    ExportError
        If the form cannot hold a formula, or needs a library that is not installed.
    """
    check_text("name", name)
    if not isinstance(to, str) or to not in SYSTEM_EXPORTS:
        raise ValueError(f"unknown export {value_text(to)} of a system; use one of {', '.join(SYSTEM_EXPORTS)}")
    if system.grid is not None and to not in OF_FIELDS:
        raise ExportError(f"there is no export {to} of fields; use one of {', '.join(OF_FIELDS)}")
    module, function = SYSTEM_EXPORTS[to]
    write: Callable[[System, str], str] = getattr(import_module(f"shine.formats.write.systems.{module}"), function)
    return write(system, name).replace("@FILE@", quote(file or name))


def filled(template: str, values: Mapping[str, str]) -> str:
    """A program's text with its blanks ``@NAME@`` filled in."""
    for blank, value in values.items():
        template = template.replace(f"@{blank}@", value)
    return template
