"""Writes the tables of pages that come from docstrings.

    python docs/tables.py

writes between `<!-- settings: StopSettings -->` and the next `<!-- end -->` the keys of that class: default, allowed
values, meaning. `<!-- record: ModelRecord -->` begins the keys and meanings of a part of result.json, and
`<!-- names -->` what a page of the reference documents. A test compares the pages.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import shine
from shine.faces.config import schema
from shine.faces.runs.records import ResultRecord

DOCS = Path(__file__).parent
PLACE = re.compile(r"^<!-- (?:(settings|record): (\w+)|names) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
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


def names(page: str) -> str:
    """The names that a page documents, each with the first sentence of its docstring."""
    modules = ["shine", *(f"shine.{path.stem}" for path in sorted(Path(shine.__path__[0]).glob("[a-z]*.py")))]
    imported = {each: importlib.import_module(each) for each in modules if each != "shine.__main__"}
    rows = []
    for path in re.findall(r"^::: (\S+)$", page, re.MULTILINE):
        module, _, name = path.rpartition(".")
        one = getattr(importlib.import_module(module), name)
        first = " ".join((one.__doc__ or "").split("\n\n")[0].split())
        sentence = re.split(r"(?<=[.:;]) ", first)[0].rstrip(":;").replace("|", "\\|").replace("``", "`")
        public = next((f"{each}.{name}" for each in imported if getattr(imported[each], name, None) is one), path)
        rows.append(f"| `{public}` | {sentence} |\n")
    return "| name | what it is |\n|---|---|\n" + "".join(rows)


def written(page: str) -> str:
    """The text of a page with its tables."""

    def filled(place: re.Match[str]) -> str:
        text = table(place[1], place[2]) if place[1] else names(page)
        return f"{place[0].partition(chr(10))[0]}\n\n{text}\n<!-- end -->"

    return PLACE.sub(filled, page)


def pages() -> list[Path]:
    """Those that may have tables."""
    return sorted([*DOCS.glob("*.md"), *(DOCS / "reference").glob("*.md")])


if __name__ == "__main__":
    for path in pages():
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
