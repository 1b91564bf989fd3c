"""Writes tables of pages from docstrings of fields; mkdocs.yml names this file as a hook.

`<!-- settings: StopSettings -->` becomes a table of the keys of that class: default, allowed values, meaning.
`<!-- record: ModelRecord -->` becomes a table of the keys and meanings of a part of result.json.
"""

from __future__ import annotations

import json
import re
from typing import Any

from shine.faces.config import schema
from shine.faces.runs.records import ResultRecord

PLACE = re.compile(r"^<!-- (settings|record): (\w+) -->$", re.MULTILINE)
HEADS = {
    "settings": "| key | default | allowed | meaning |\n|---|---|---|---|\n",
    "record": "| key | meaning |\n|---|---|\n",
}


def models(kind: str) -> dict[str, dict[str, Any]]:
    """The schema of each class of settings or records, by its name."""
    document = schema() if kind == "settings" else ResultRecord.model_json_schema()
    return {"Config" if kind == "settings" else "ResultRecord": document, **document["$defs"]}


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


def table(kind: str, name: str) -> str:
    """The keys of a class."""
    model = models(kind)[name]
    rows = []
    for key, each in model["properties"].items():
        required = key in model.get("required", ())
        meaning = " ".join(each["description"].split()).replace("|", "\\|").replace("``", "`")
        middle = f" {default(each, required)} | {allowed(each)} |" if kind == "settings" else ""
        rows.append(f"| `{key}` |{middle} {meaning} |\n")
    return HEADS[kind] + "".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with its tables, as mkdocs asks for it."""
    return PLACE.sub(lambda place: table(place[1], place[2]), markdown)
