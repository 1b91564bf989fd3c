"""Keys of former versions: those that are gone, and those that have another name now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shine.lang.synonyms import FORMER

RETIRED: dict[str, Any] = {"evolution.canonical": False}
"""Settings that no longer exist, each with the one value that is still accepted, and ignored."""


def is_retired(key: str, value: object) -> bool:
    """Whether a setting no longer exists, but its value changes nothing. Configurations of older runs have it."""
    return key in RETIRED and RETIRED[key] is value


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a configuration, under their names now."""
    return {FORMER.get(name, name): value for name, value in settings.items()}
