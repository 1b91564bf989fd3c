"""pydantic's errors as messages that say what is allowed and what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from shine.evaluate.validation import worded
from shine.faces.config.document import Json, Loc
from shine.faces.keywords import KEYWORDS
from shine.lang.forms.names import listed, similar
from shine.lang.forms.synonyms import NOTES, synonym

Problem = tuple[Loc, str]


def checked(model: type[BaseModel], value: Json, schema: dict[str, Any]) -> tuple[BaseModel | None, list[Problem]]:
    """A value as a model, or None and all its problems, which list the keys that the schema of the document allows."""
    try:
        # In JSON's strict mode a list can be a tuple, but text is never a number and a boolean never an integer.
        return model.model_validate_json(json.dumps(value), strict=True), []
    except ValidationError as error:
        return None, [_problem(details, schema) for details in error.errors()]


def _problem(details: ErrorDetails, schema: dict[str, Any]) -> Problem:
    kind, value = details["type"], details["input"]
    # A part in brackets is the tag of a union (see `shine.faces.config.models`), not a key.
    loc = tuple(part for part in details["loc"] if not str(part).startswith("("))
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return loc, unknown_key(str(loc[-1]), loc[:-1], schema)
    if kind == "missing" and isinstance(loc[-1], int):
        return loc, "is missing; the list is too short"
    message = worded(details, shown)
    key, _, rest = message.partition(" ")
    if kind == "value_error" and isinstance(value, dict) and key in value:
        # If a check across the keys of a class blames one key, its message begins with that key.
        return (*loc, key), rest
    return loc, message


def unknown_key(name: str, loc: Loc, schema: dict[str, Any]) -> str:
    """The message for a key that a JSON schema does not allow at a place."""
    allowed = allowed_keys(schema, loc)
    key, colon, value = name.partition(":")
    if colon and key in allowed:
        return f"unknown key {shown(name)}; a colon needs a blank after it: '{key}: {value}'"
    # A key that is not indented is beside the section that it belongs to.
    places = [f"{each}.{name}" for each in allowed_keys(schema, ()) if name in allowed_keys(schema, (each,))]
    return unknown("key", name, allowed, synonym(name, allowed) or '" or "'.join(places))


def unknown(kind: str, name: str, allowed: Sequence[str], near: str | None = None) -> str:
    """The message for a name that is not allowed; it suggests the nearest allowed name if none is given."""
    near = near or synonym(name, allowed) or (_keyword_path(name) if kind == "key" else None)
    if kind == "key" and not near and name in NOTES:
        return f"unknown key {shown(name)}; {NOTES[name]}; allowed are {listed(allowed, 100)}"
    near = near or similar(name, allowed)
    hint = f'did you mean "{near}"? ' if near else ""
    return f"unknown {kind} {shown(name)}; {hint}allowed are {listed(allowed, 100)}"


def _keyword_path(name: str) -> str | None:
    """The key, with its section, that an unknown key of any face or library means; None if there is none."""
    keyword = synonym(name, KEYWORDS)
    return None if keyword is None else ".".join(KEYWORDS[keyword])


def shown(value: object) -> str:
    """A value as one line of YAML, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    text = text if text.isprintable() else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def allowed_keys(schema: dict[str, Any], loc: Sequence[str | int]) -> list[str]:
    """Keys that a JSON schema allows at a place."""
    node: dict[str, Any] = schema
    for part in loc:
        node = _resolved(schema, node)
        properties: dict[str, Any] = node.get("properties", {})
        node = properties.get(str(part)) or node.get("additionalProperties") or node.get("items") or {}
    return list(_resolved(schema, node).get("properties", {}))


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """A node of the schema without references and choices; of several choices, the last one, which has keys."""
    while True:
        options = [each for each in (*node.get("anyOf", ()), *node.get("oneOf", ())) if each.get("type") != "null"]
        if options:
            node = options[-1]
        elif "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        else:
            return node
