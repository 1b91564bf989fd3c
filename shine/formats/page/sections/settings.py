"""Settings and timing of the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shine.formats.page.markup import Content, element
from shine.formats.page.sections.parts import setting_text, table
from shine.formats.page.subject import ResultLike
from shine.formats.page.wording import count, duration

_STOPPED = {
    "loss": "The target loss was reached",
    "generations": "All generations were bred",
    "seconds": "The time was up",
    "stagnation": "Nothing had improved for long",
    "interrupted": "It was interrupted",
    "callback": "The user, or a function of theirs, ended it",
}
"""Why a search ended."""


def settings_tables(
    result: ResultLike, settings: Mapping[str, Any] | None, history: Sequence[Mapping[str, Any]] = ()
) -> Content:
    """Tables of the timing and of the settings; the history says which formulas a person put in."""
    timing: dict[str, Any] = {
        "Stopped because": _STOPPED.get(result.stopped_by, result.stopped_by),
        "Time": duration(result.seconds),
        "Generations": count(result.generations),
        "Evaluations": count(result.evaluations),
        "Evaluations a second": count(result.evaluations / result.seconds) if result.seconds > 0 else None,
        "Seed": result.seed,
    }
    tables = [table("The run", timing)]
    put_in = {
        f"After generation {line.get('generation')}": ", ".join(map(str, line["put_in"]))
        for line in history
        if isinstance(line.get("put_in"), list)
    }
    if put_in:
        tables.append(table("Formulas put in by a person", put_in))
    tables += [table(name, values) for name, values in _groups(settings or {}).items()]
    return element("div", tables, class_="columns")


def _groups(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings by group; nested groups get dotted names, and unset settings are left out."""
    groups: dict[str, dict[str, Any]] = {"General": {}}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            groups[str(name).capitalize()] = dict(_dotted(value))
        else:
            groups["General"][str(name)] = value
    told = {name: {key: value for key, value in group.items() if setting_text(value)} for name, group in groups.items()}
    return {name: group for name, group in told.items() if group}


def _dotted(group: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    stack = [("", group.items().__iter__())]
    while stack:
        prefix, items = stack[-1]
        for name, value in items:
            if isinstance(value, Mapping) and value:
                stack.append((f"{prefix}{name}.", value.items().__iter__()))
                break
            yield f"{prefix}{name}", value
        else:
            stack.pop()
