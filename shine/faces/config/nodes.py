"""YAML text -> nodes with their places; nothing is constructed, and aliases are measured before they expand."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from shine.base.errors import ConfigError

MAX_DEPTH = 30
"""Deepest nesting, with aliases expanded."""
MAX_NODES = 100_000
"""Most values in one document, with aliases expanded."""


@dataclass(frozen=True, order=True)
class SourcePosition:
    """The place where a value was written; places sort in the order of reading.

    Parameters
    ----------
    override : int
        0 for the file, and 1, 2, ... for the ``--set`` options after it.
    line, column : int
        One-based; 0 if there is no line.
    source : str
        The file as the user named it, or the option.
    """

    override: int
    line: int
    column: int
    source: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class _Composer(yaml.SafeLoader):
    """Composes nodes and constructs nothing. It measures each node as if its aliases were expanded."""

    # YAML 1.2's core schema: 1e-12 is a number; `no`, 12:30 and 2024-01-01 are text.
    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML declares it as an attribute of instances

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.open = 0
        self.extents: dict[int, tuple[int, int]] = {}  # node -> (nodes, height)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        self.open += 1
        if self.open > MAX_DEPTH:
            raise _error(f"nested more than {MAX_DEPTH} deep", event)
        node = super().compose_node(parent, index)
        self.open -= 1
        assert node is not None
        known = self.extents.get(id(node))
        if known is None and isinstance(event, yaml.AliasEvent):
            raise _error(f"*{event.anchor} contains itself", event)
        nodes, height = known or self._extent(node)
        if nodes > MAX_NODES or height > MAX_DEPTH:
            limit = f"{MAX_NODES} values" if nodes > MAX_NODES else f"{MAX_DEPTH} levels"
            raise _error(f"aliases expand to more than {limit}" if self.anchors else f"more than {limit}", event)
        self.extents[id(node)] = nodes, height
        return node

    def _extent(self, node: yaml.Node) -> tuple[int, int]:
        parts = [self.extents[id(part)] for part in _children(node)]
        return 1 + sum(nodes for nodes, _ in parts), 1 + max((height for _, height in parts), default=0)


def _error(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, problem, event.start_mark)  # type: ignore[arg-type]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


_RESOLVERS: dict[str, tuple[str, list[str]]] = {
    "null": (r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    "bool": (r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    "int": (r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)", list("-+0123456789")),
    "float": (
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))",
        list("-+.0123456789"),
    ),
}
"""Pattern of each kind of plain scalar, and its possible first characters (YAML 1.2, section 10.3.2)."""


def add_resolvers(target: type[yaml.SafeLoader] | type[yaml.SafeDumper]) -> None:
    """Make a loader or a dumper distinguish numbers from text as YAML 1.2 does."""
    for kind, (pattern, first) in _RESOLVERS.items():
        target.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern + r"\Z"), first)


add_resolvers(_Composer)


def compose(text: str, origin: SourcePosition) -> yaml.Node | None:
    """The root node of one YAML document; None if it is empty.

    A `ConfigError` if the text is not YAML, nested too deeply, or too large once its aliases are expanded.
    """
    loader = None
    try:
        loader = _Composer(text)
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.context, error.problem) if part)
        message += "" if mark is None else _advice(text.split("\n")[: mark.line + 1][-2:])
        raise ConfigError([f"{origin if mark is None else at(mark, origin)}: not valid YAML: {message}"]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1
        where = origin if origin.override else SourcePosition(0, line, column, origin.source)
        raise ConfigError([f"{where}: not valid YAML: character {text[error.position]!r} is not allowed"]) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        # PyYAML lets Python's own errors through: chr() of an escape beyond Unicode, int() of a long version number.
        raise ConfigError([f"{origin}: not valid YAML: {error}"]) from None
    finally:
        if loader is not None:
            loader.dispose()


def _advice(lines: list[str]) -> str:
    """What is probably wrong in the last lines that were read; empty if nothing stands out."""
    if re.match(r" *\t", lines[-1]):
        return "; indent with blanks, not with tabs"
    closed = (re.match(r"\s*([\w-]+):([^\s:/].*)", line) for line in lines)
    return next((f"; a colon needs a blank after it: '{found[1]}: {found[2]}'" for found in closed if found), "")


def at(mark: yaml.Mark, origin: SourcePosition) -> SourcePosition:
    """Place of a mark in the text that came from `origin`."""
    return origin if origin.override else SourcePosition(0, mark.line + 1, mark.column + 1, origin.source)
