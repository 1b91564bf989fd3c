"""Templates: unknown functions, parameters, and the known part around them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from shine.lang.forms.names import shown
from shine.lang.forms.tree import Tree
from shine.lang.vocabulary import PrimitiveSource
from shine.search.constraints.constraints import Constraints

DEFAULT_START = 1.0
"""Value that a parameter starts from if nothing else is said: not 0, where products do not depend on it."""


LONGEST_IN_REPR = 200
"""Most characters of the formula in the `repr` of a template."""


@dataclass(frozen=True)
class Unknown:
    """A function that the search finds.

    Parameters
    ----------
    name : str
    arguments : tuple of str
        Names of its arguments, in its formula.
    primitives : tuple, optional
        Functions that it is made of; by default those of the search.
    max_size, max_depth : int, optional
        Most nodes and levels of its formula; by default those of the search.
    constraints : Constraints
        Constraints on its formula, whose features are its arguments.
    """

    name: str
    arguments: tuple[str, ...]
    primitives: tuple[PrimitiveSource, ...] | None = None
    max_size: int | None = None
    max_depth: int | None = None
    constraints: Constraints = field(default_factory=Constraints)


@dataclass(frozen=True)
class Parameter:
    """A number that is fitted along with the constants of the unknown functions.

    Parameters
    ----------
    name : str
    by_group : bool
        Whether each group has its own value.
    bounds : (float, float)
        Least and greatest value.
    integer : bool
        Whether it is a whole number.
    value : float, optional
        A fixed value: it is not fitted.
    start : float, optional
        Value to start from.
    """

    name: str
    by_group: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    integer: bool = False
    value: float | None = None
    start: float | None = None

    @property
    def first(self) -> float:
        """The value that a fit starts from, within the bounds."""
        low, high = self.bounds
        if self.value is not None:
            return self.value
        if self.start is not None:
            return self.start
        if low <= DEFAULT_START <= high:
            return DEFAULT_START
        if math.isinf(low) or math.isinf(high):
            # Half as far again as the bound, on the side that is allowed; 0 is no place to start from.
            near = high if math.isinf(low) else low
            found = near + math.copysign(max(abs(near) / 2, DEFAULT_START), -1.0 if math.isinf(low) else 1.0)
        else:
            found = low + (high - low) / 2
        if not self.integer:
            return found
        whole = float(round(found))
        return whole if low <= whole <= high else float(math.ceil(low) if whole < low else math.floor(high))


@dataclass(frozen=True, eq=False, repr=False)
class Template:
    """A law with a known part, before it meets data.

    Parameters
    ----------
    unknowns : tuple of Unknown
    parameters : tuple of Parameter
        In the order of their first use.
    outputs : tuple of Tree
        The known part of each output. Its names are columns and parameters; it calls the unknown functions, and their
        derivatives, by the names in `calls`.
    calls : mapping of str to (str, tuple of int)
        What is called: unknown function, and the arguments that it is differentiated by, one after the other.
    columns : tuple of str
        Names that must be columns of the data.
    open : frozenset of str
        Names of parameters that are columns instead if the data have such a column.
    groups : str, optional
        The column of groups.
    shrinkage : bool
        Whether the values of parameters by group are drawn towards their mean, the more the less their rows determine
        them.
    source : str
        The template as text.
    """

    unknowns: tuple[Unknown, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Tree, ...]
    calls: Mapping[str, tuple[str, tuple[int, ...]]]
    columns: tuple[str, ...] = ()
    open: frozenset[str] = frozenset()
    groups: str | None = None
    shrinkage: bool = False
    source: str = ""

    def __repr__(self) -> str:
        return f"Template({shown(self.source, LONGEST_IN_REPR)})"


def primitives_of(template: Template) -> list[PrimitiveSource]:
    """The functions that unknown functions of a template have of their own."""
    return [primitive for unknown in template.unknowns for primitive in unknown.primitives or ()]
