"""The basic primitives, and the sets of primitives and features that populations consist of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Indices
from shine.lang.forms.facts import FACTS, basic_where
from shine.lang.forms.names import MOST_PRIMITIVES, listed, shown, similar
from shine.lang.forms.synonyms import FUNCTIONS
from shine.lang.forms.tree import Primitive

CONSTANT = 0
"""Code of a constant on every tape. Codes 1, 2, ... are the features; the functions follow."""


ARITIES: dict[str, int] = {name: facts.arity for name, facts in FACTS.items()}
"""Arity of every basic primitive."""

BASIC: dict[str, Primitive] = {name: Primitive(name, arity) for name, arity in ARITIES.items()}
"""The basic primitives by name."""

FOLDED = basic_where(lambda facts: facts.family == "extremum")
"""Primitives that accept more arguments than their arity; calls are folded from the left."""


@dataclass(frozen=True)
class PrimitiveSet:
    """The functions and features of a population, numbered for its tapes.

    Parameters
    ----------
    functions : tuple of Primitive
    features : tuple of str

    Notes
    -----
    Codes: 0 is a constant, ``1 .. n_features`` are the features, the functions follow in their order.
    """

    functions: tuple[Primitive, ...]
    features: tuple[str, ...]

    def __post_init__(self) -> None:
        for kind, names in (("primitive", [f.name for f in self.functions]), ("feature", self.features)):
            repeated = sorted(name for name, count in Counter(names).items() if count > 1)
            if repeated:
                raise ValueError(f"{kind} {shown(repeated[0])} is listed twice")
        if len(self.features) + len(self.functions) >= np.iinfo(np.int16).max:
            raise ValueError("a primitive set holds fewer than 32767 features and functions")

    @cached_property
    def arities(self) -> Indices:
        """Arity of each code, shape (n_codes,)."""
        terminals = [0] * (1 + len(self.features))
        return np.array(terminals + [f.arity for f in self.functions], dtype=np.int64)

    @cached_property
    def function_codes(self) -> Mapping[str, int]:
        """Code of each function by name."""
        return {f.name: self.first_function + i for i, f in enumerate(self.functions)}

    @cached_property
    def feature_codes(self) -> Mapping[str, int]:
        """Code of each feature by name."""
        return {name: 1 + i for i, name in enumerate(self.features)}

    @cached_property
    def table(self) -> Mapping[str, Primitive]:
        """The functions by name."""
        return {f.name: f for f in self.functions}

    @property
    def frame(self) -> int:
        """Nodes at the end of each tape that belong to no formula; none in an ordinary set."""
        return 0

    @property
    def first_function(self) -> int:
        """Smallest code of a function; all smaller codes are terminals."""
        return 1 + len(self.features)

    def function(self, code: int) -> Primitive:
        """The function with a code."""
        return self.functions[code - self.first_function]


def near_primitive(name: str, known: Iterable[str]) -> str | None:
    """The primitive that an unknown name may mean; None if there is none."""
    return FUNCTIONS.get(name.lower()) or similar(name, known)


def select(table: Mapping[str, Primitive], names: Sequence[str] | Iterable[str]) -> tuple[Primitive, ...]:
    """Look up primitives by name.

    A `ValueError` if a name is unknown; the message names a similar one, and lists the known ones.
    """
    chosen = []
    for name in names:
        if name not in table:
            near = near_primitive(name, table)
            hint = f"did you mean {near!r}? " if near else ""
            known = listed(sorted(table), MOST_PRIMITIVES)
            raise ValueError(f"primitives: unknown primitive {shown(name)}; {hint}known are {known}")
        chosen.append(table[name])
    return tuple(chosen)
