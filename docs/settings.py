"""Writes the tables of config.md from the settings' docstrings; mkdocs.yml names this file as a hook.

`<!-- settings: StopSettings -->` on a page becomes a table of the keys of that class: default, allowed values, meaning.
"""

from __future__ import annotations

import json
import re
from typing import Any

from shine.faces.config import schema

PLACE = re.compile(r"^<!-- settings: (\w+) -->$", re.MULTILINE)
HEAD = "| key | default | allowed | meaning |\n|---|---|---|---|\n"


def models() -> dict[str, dict[str, Any]]:
    """The schema of each class of settings, by its name."""
    document = schema()
    return {"Config": document, **document["$defs"]}


def default(key: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    if "default" not in key:
        return "`{}`" if "additionalProperties" in key else "see below"
    return "" if key["default"] is None else f"`{json.dumps(key['default'])}`".replace('"', "")


def allowed(key: dict[str, Any]) -> str:
    """The values or the range that a key may have; empty where its type says enough."""
    key = next((one for one in key.get("anyOf", ()) if one.get("type") != "null"), key)
    if "enum" in key:
        return ", ".join(f"`{value}`" for value in key["enum"])
    low, above = key.get("minimum"), key.get("exclusiveMinimum")
    high, below = key.get("maximum"), key.get("exclusiveMaximum")
    words = [f"{word} {bound}" for word, bound in (("from", low), ("above", above), ("to", high), ("below", below))]
    return " ".join(text for text in words if not text.endswith("None"))


def table(name: str) -> str:
    """The keys of a class of settings."""
    model = models()[name]
    rows = []
    for key, each in model["properties"].items():
        required = key in model.get("required", ())
        meaning = " ".join(each["description"].split()).replace("|", "\\|").replace("``", "`")
        rows.append(f"| `{key}` | {default(each, required)} | {allowed(each)} | {meaning} |\n")
    return HEAD + "".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with its tables, as mkdocs asks for it."""
    return PLACE.sub(lambda place: table(place[1]), markdown)
