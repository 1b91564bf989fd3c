"""A YAML file -> plain values, each with its place; nothing in the text is ever executed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from shine.base.errors import ConfigError, reason
from shine.faces.config.nodes import SourcePosition, at, compose
from shine.lang.forms.names import value_text

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Loc = tuple[str | int, ...]

MAX_BYTES = 1 << 20
"""Largest file that is read, in bytes."""
MAX_BITS = 1024
"""Most bits of a whole number that is read. Larger numbers exceed float64, and Python refuses to print very large
ones."""
KEYED = ("--set", "--grid", "--range")
"""Options that are named with the key that the user wrote after them."""
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that JSON takes as they are, and YAML does not."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass
class Document:
    """A mapping read from YAML, and the places of its parts."""

    value: dict[str, Json] = field(default_factory=dict)
    places: dict[Loc, SourcePosition] = field(default_factory=dict)
    problems: list[tuple[SourcePosition, str]] = field(default_factory=list)
    """Problems of single values, such as a key that occurs twice."""
    unreadable: set[Loc] = field(default_factory=set)
    """Values that could not be read; they are None in `value`, and `problems` says why."""

    def place(self, loc: Loc) -> SourcePosition:
        """Place of a value, or of the nearest enclosing value that has one."""
        while loc and loc not in self.places:
            loc = loc[:-1]
        return self.places[loc]

    def is_unreadable(self, loc: Loc) -> bool:
        """Whether a value, or a value that contains it, could not be read."""
        return any(loc[:depth] in self.unreadable for depth in range(len(loc) + 1))

    def override(self, text: str, position: int) -> None:
        """Apply ``key.key=value``, which may stand after the option that it comes from; the value is YAML."""
        named = re.fullmatch(r"(--[\w-]+) (.*)", text, re.DOTALL)
        option, text = named.groups() if named else ("--set", text)
        key, equals, value = text.partition("=")
        place = SourcePosition(position, 0, 0, f"{option} {key}" if option in KEYED else option)
        if not equals or not all(re.fullmatch(r"[\w-]+", part) for part in key.split(".")):
            self.problems.append((place, f"{value_text(text)} is not of the form key.key=value"))
            return
        *parents, last = key.split(".")
        target = self.value
        for depth, part in enumerate(parents, start=1):
            inner = target.setdefault(part, {})
            if not isinstance(inner, dict):
                self.problems.append((place, f"{'.'.join(parents[:depth])} is not a mapping of keys to values"))
                return
            target = inner
        loc = (*parents, last)
        try:
            node = compose(value, place)
        except ConfigError as error:
            # The option is a short text: its name says more than a place within it.
            self.problems.append((place, error.problems[0].split(": ", 1)[1]))
            return
        self.places = {known: place for known, place in self.places.items() if known[: len(loc)] != loc}
        self.unreadable = {known for known in self.unreadable if known[: len(loc)] != loc}
        self.places[loc] = place
        target[last] = None if node is None else _Reader(self, place).value(node, loc)


def read_document(path: Path, overrides: Sequence[str] = ()) -> Document:
    """Read a YAML file and apply overrides to it, each ``key.key=value``, with the value in YAML.

    Errors name an override by the option before it, as in ``--targets data.target=y``, or else by ``--set``.

    A `ConfigError` if the file cannot be read at all. Problems of single values are collected in the document.
    """
    document = parse_document(_file_text(path), str(path))
    for position, text in enumerate(overrides, start=1):
        document.override(text, position)
    return document


def parse_document(text: str, source: str) -> Document:
    """Parse YAML text whose root is a mapping.

    A `ConfigError` if the text is not YAML, not a mapping, nested too deeply, or too large once its aliases are
    expanded.
    """
    return _document(text, SourcePosition(0, 1, 1, source))


def document_of(values: Mapping[str, Any], source: str) -> Document:
    """Values of JSON that another program has given, as a document: they pass the checks of a file, and have no lines.

    A `ConfigError` if a text holds a forbidden character, or they are nested too deeply or too many.
    """
    text = _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(values, ensure_ascii=False))
    return _document(text, SourcePosition(1, 0, 0, source))


def _document(text: str, root: SourcePosition) -> Document:
    node = compose(text, root)
    document = Document(places={(): root})
    if node is None:
        raise ConfigError([f"{root.source}: the file is empty; a configuration needs at least 'data'"])
    if not isinstance(node, yaml.MappingNode):
        told = "a configuration is a mapping of keys to values; it names a table: 'data: {path: ..., target: ...}'"
        raise ConfigError([f"{at(node.start_mark, root)}: {told}"])
    value = _Reader(document, root).value(node, ())
    if not isinstance(value, dict):  # the whole has a tag
        raise ConfigError([f"{place}: {message}" for place, message in document.problems])
    document.value = value
    return document


def _file_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise ConfigError([f"{path}: is not a file"])
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise ConfigError([f"{path}: cannot be read: {reason(error)}"]) from None
    if len(data) > MAX_BYTES:
        raise ConfigError([f"{path}: is longer than {MAX_BYTES} bytes; a configuration is a short text"])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        raise ConfigError([f"{path}:{line}:{column}: byte {data[error.start]:#04x} is not UTF-8 text"]) from None


def _integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        number = int(text[2:] if base != 10 else text, base)
    except ValueError:
        if not re.fullmatch("[-+]?[0-9]+", text):
            raise ValueError("is not a whole number that can be read") from None
        number = 2**MAX_BITS  # Python refuses to read so many digits
    if abs(number) >= 2**MAX_BITS:
        raise ValueError(f"is too large; whole numbers are below 2**{MAX_BITS}, as all are that float64 holds")
    return number


def _real(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def _text(text: str) -> str:
    if _UNPRINTABLE.search(text):
        raise ValueError("contains a control character")
    return text


_SCALARS: dict[str, Callable[[str], Json]] = {
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": _integer,
    "tag:yaml.org,2002:float": _real,
    "tag:yaml.org,2002:str": _text,
}
"""Value of a scalar by its tag; every other tag is an error, `!!python/...` too."""

_COLLECTIONS = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


@dataclass
class _Reader:
    """Reads the values of composed nodes, whose depth and number the composer has limited."""

    document: Document
    origin: SourcePosition

    def value(self, node: yaml.Node, loc: Loc) -> Json:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        if node.tag not in _COLLECTIONS:
            self._problem(node, f"tag {value_text(node.tag)} is not allowed; write plain values")
            self.document.unreadable.add(loc)
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        assert isinstance(node, yaml.SequenceNode)
        for index, part in enumerate(node.value):
            self._note((*loc, index), part)
        return [self.value(part, (*loc, index)) for index, part in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Json]:
        values: dict[str, Json] = {}
        first: dict[str, SourcePosition] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                self._problem(key_node, f"key {value_text(key_node.value)} is not text; put it in quotes")
                continue
            key = key_node.value
            if key in values:
                self._problem(key_node, f"key {value_text(key)} occurs twice; it is first at {first[key]}")
                continue
            first[key] = at(key_node.start_mark, self.origin)
            self._note((*loc, key), key_node)
            if self._scalar(key_node, (*loc, key)) is not None:
                values[key] = self.value(value_node, (*loc, key))
        return values

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> Json:
        try:
            return _SCALARS[node.tag](node.value)
        except KeyError:
            self._problem(node, f"tag {value_text(node.tag)} is not allowed; write plain values")
        except ValueError as error:
            self._problem(node, f"{value_text(node.value)} {error}")
        self.document.unreadable.add(loc)
        return None

    def _note(self, loc: Loc, node: yaml.Node) -> None:
        if not self.origin.override:
            self.document.places[loc] = at(node.start_mark, self.origin)

    def _problem(self, node: yaml.Node, message: str) -> None:
        self.document.problems.append((at(node.start_mark, self.origin), message))
