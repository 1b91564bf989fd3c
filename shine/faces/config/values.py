"""The settings in a configuration that Shine wrote, without their places: six times as fast as `read_document`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from shine.faces.config.document import read_document
from shine.faces.config.former import current_names
from shine.faces.config.nodes import add_resolvers

LARGEST = 1 << 16
"""Characters of a text that is read the fast way."""
DEEPEST = 200
"""Most signs that may open a value within a value: the fast reader's own stack is not measured."""

_UNUSUAL = re.compile(r"[&!?]|(?<![\w.])[-+]?0[0-9ox]")
"""Aliases, tags and numbers of YAML 1.1, which are for the other reader."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Constructs plain values only; numbers and text as in YAML 1.2."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


add_resolvers(_Loader)


def read_values(path: Path) -> tuple[dict[str, Any], str]:
    """The settings in a configuration, under their names now, and a problem with them.

    Raises
    ------
    ConfigError
        If the file cannot be read at all.
    """
    values = _fast(path)
    if values is not None:
        return current_names(values), ""
    document = read_document(path)
    return document.value, document.problems[0][1] if document.problems else ""


def _fast(path: Path) -> dict[str, Any] | None:
    """The values; None if there is anything about them that the other reader has a message for."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        text = path.read_text(encoding="utf-8")
        # A block of indented values cannot be deep within `LARGEST`.
        if _UNUSUAL.search(text) or sum(map(text.count, ("[", "{", "- -"))) > DEEPEST:
            return None
        values = yaml.load(text, Loader=_Loader)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return values if isinstance(values, dict) and all(isinstance(key, str) for key in values) else None
