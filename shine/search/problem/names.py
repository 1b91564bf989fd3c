"""Columns and functions as a user calls them -> their names in formulas, for constraints and complexities.

A column goes by its heading, or by its name in formulas; a function by any word that `primitives` takes. A search
translates its settings before anything else: its problem takes `TranslatedSettings` only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NewType, TypeVar

from shine.base.errors import placed
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import normalized, shown
from shine.lang.vocabulary import primitive_named
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.problem.settings import SearchSettings
from shine.search.templates.template import Template, Unknown

Value = TypeVar("Value")
Name = Callable[[str], str]
"""A user's word -> the name in formulas; words that mean nothing stay as they are."""

TranslatedSettings = NewType("TranslatedSettings", SearchSettings)
"""Settings with the names in formulas; `translated` makes them."""


def column_name(dataset: Dataset) -> Name:
    """Finds the names of columns."""
    names = {normalized(heading): name for name, heading in dataset.headings.items()}
    names |= {heading: name for name, heading in dataset.headings.items()}
    names |= {name: name for name in dataset.features}
    return lambda word: names.get(word, word)


def any_name(dataset: Dataset) -> Name:
    """Finds the names of columns, functions and constants. The name of a function always means the function."""
    return _any_name(column_name(dataset), dataset.features)


def _any_name(column: Name, features: Collection[str]) -> Name:
    def name(word: str) -> str:
        if word in STANDARD or word == CONSTANT_NAME:
            return word
        found = column(word)
        return found if found in features else primitive_named(word)

    return name


def constraints_in_formulas(constraints: Constraints, dataset: Dataset) -> Constraints:
    """Constraints with the names in formulas; a `ValueError` if two words mean the same."""
    return _constraints(constraints, column_name(dataset), dataset.features)


def _constraints(constraints: Constraints, column: Name, features: Collection[str]) -> Constraints:
    name = _any_name(column, features)
    return replace(
        constraints,
        limits=renamed(constraints.limits, name, "limits"),
        nesting={
            outer: renamed(inner, name, f"nesting of {outer}")
            for outer, inner in renamed(constraints.nesting, name, "nesting").items()
        },
        arguments=renamed(constraints.arguments, name, "arguments"),
        required=_each(constraints.required, column),
        forbidden=_each(constraints.forbidden, column),
        monotonic=renamed(constraints.monotonic, column, "monotonic"),
        units=renamed(constraints.units, column, "units"),
    )


def translated(settings: SearchSettings, dataset: Dataset) -> TranslatedSettings:
    """The settings of a search with the names in formulas; a `ValueError` if two words mean the same."""
    weights = renamed(settings.evolution.complexity, any_name(dataset), "complexity")
    return TranslatedSettings(
        replace(
            settings,
            constraints=constraints_in_formulas(settings.constraints, dataset),
            evolution=replace(settings.evolution, complexity=weights),
            template=None if settings.template is None else _template(settings.template),
        )
    )


def _template(template: Template) -> Template:
    """A template whose unknown functions have constraints with the names in formulas."""
    return replace(template, unknowns=tuple(_unknown(each) for each in template.unknowns))


def _unknown(unknown: Unknown) -> Unknown:
    with placed(f"unknown {unknown.name!r}", ValueError):
        return replace(unknown, constraints=_constraints(unknown.constraints, lambda word: word, unknown.arguments))


def renamed(given: Mapping[str, Value], name: Name, what: str) -> dict[str, Value]:
    """A mapping by names in formulas; `what` it is, for the error of two words that mean the same."""
    words: dict[str, str] = {}
    for word in given:
        known = words.setdefault(name(word), word)
        if known != word:
            raise ValueError(f"{what} has {shown(known)} and {shown(word)}, which are the same; remove one of them")
    return {found: given[word] for found, word in words.items()}


def _each(words: Iterable[str], name: Name) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(name, words)))
