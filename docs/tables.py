"""Writes the tables of pages that come from docstrings.

    python docs/tables.py

writes between `<!-- settings: StopSettings -->` and the next `<!-- end -->` the keys of that class: default, allowed
values, meaning. `<!-- record: ModelRecord -->` begins the keys and meanings of a part of result.json, `<!-- names -->`
what a page of the reference documents, and `<!-- docstring: shine.losses.errors -->` the docstring of a function, or of
a class and its methods, which mkdocstrings writes anew for the site. A test compares the pages.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import shine
from shine.faces.config import schema
from shine.faces.runs.records import ResultRecord

DOCS = Path(__file__).parent
PLACE = re.compile(
    r"^<!-- (?:(settings|record|docstring): ([\w.]+)|names) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)
DOCSTRING = re.compile(r"^<!-- docstring: (\S+) -->$", re.MULTILINE)
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
    for path in DOCSTRING.findall(page):
        one, name = named(path), path.rpartition(".")[2]
        first = " ".join((one.__doc__ or "").split("\n\n")[0].split())
        sentence = re.split(r"(?<=[.:;]) ", first)[0].rstrip(":;").replace("|", "\\|").replace("``", "`")
        public = next((f"{each}.{name}" for each in imported if getattr(imported[each], name, None) is one), path)
        rows.append(f"| `{public}` | {sentence} |\n")
    return "| name | what it is |\n|---|---|\n" + "".join(rows)


def named(path: str) -> Any:
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def signature(name: str, one: Any) -> str:
    """How a function or a class is called; with an argument a line, if that is long."""
    arguments: list[str] = []
    try:
        parameters = inspect.signature(one).parameters.values()
    except ValueError:  # an exception of Python
        return name
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not any(text.startswith("*") for text in arguments):
            arguments.append("*")
        kind = "" if each.annotation is each.empty else f": {each.annotation}"
        value = "" if each.default is each.empty else f" = {each.default!r}" if _is_literal(each.default) else " = ..."
        if each.name != "self":
            arguments.append(str(each.replace(annotation=each.empty, default=each.empty)) + kind + value)
    line = f"{name}({', '.join(arguments)})"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {each},\n" for each in arguments) + ")"


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, bool | int | float | str)


HEADING = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.+))?\n((?:    .*\n|\n(?=    ))*)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> (?:.*\n)+?(?=\n|\Z)", re.MULTILINE)


def prose(text: str) -> str:
    """A docstring in Markdown: its sections, their entries, its examples."""
    text = HEADING.sub(r"**\1**\n", text.replace("``", "`") + "\n")
    return EXAMPLE.sub(r"```\n\g<0>```\n", ENTRY.sub(entry, text)).strip() + "\n"


def entry(found: re.Match[str]) -> str:
    """An argument, an attribute or an error, and its meaning."""
    if not found[2] and not found[3]:
        return found[0]
    kind = f" ({found[2]})" if found[2] else ""
    meaning = re.sub(r"\s*\n\s*(\* )?", lambda end: "\n    * " if end[1] else " ", found[3].strip())
    return f"* `{found[1]}`{kind}{': ' * bool(meaning)}{meaning}\n"


def docstring(path: str) -> str:
    """The docstring of a function, or of a class and its methods."""
    one, name = named(path), path.rpartition(".")[2]
    called = "" if not callable(one) else f"```\n{signature(name, one)}\n```\n\n"
    text = f"### `{name}`\n\n{called}{prose(inspect.getdoc(one) or '')}"
    for method, value in inspect.getmembers(one) if inspect.isclass(one) else ():
        about = inspect.getdoc(value) if callable(value) or isinstance(value, property) else None
        of_shine = getattr(getattr(value, "fget", value), "__module__", "") or ""
        if about and not method.startswith("_") and of_shine.startswith("shine") and not inspect.isclass(value):
            head = method if isinstance(value, property) else signature(method, value).replace("\n", " ")
            text += f"\n#### `{head}`\n\n{prose(about)}"
    return text


def written(page: str) -> str:
    """The text of a page with its tables."""

    def filled(place: re.Match[str]) -> str:
        if place[1] == "docstring":
            text = docstring(place[2])
        else:
            text = table(place[1], place[2]) if place[1] else names(page)
        return f"{place[0].partition(chr(10))[0]}\n\n{text}\n<!-- end -->"

    return PLACE.sub(filled, page)


def pages() -> list[Path]:
    """Those that may have tables."""
    return sorted([*DOCS.glob("*.md"), *(DOCS / "reference").glob("*.md")])


if __name__ == "__main__":
    for path in pages():
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
