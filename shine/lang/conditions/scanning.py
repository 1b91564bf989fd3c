"""The text of a query as Python reads it: pandas' spellings replaced, with the way back to their places."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.names import cut, normalized, value_text

MOST_CHARACTERS = 100_000
"""Longest text of a query."""

_TOKEN = re.compile(
    r"""(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
    r"""|(?P<quoted>`[^`]*`)|(?P<variable>@\s*[^\W\d]\w*)|(?P<operator>&&?|\|\|?|<>|===|!(?!=)|(?<![<>=!])=(?!=))|(?P<blank>[\r\n\t\f]+|\#[^\n]*)""",
    re.DOTALL,
)
_WORDS = {"&": " and ", "|": " or "}
_NO_OPERATORS = {
    "&&": "'&&' is not an operator; write '&'",
    "||": "'||' is not an operator; write '|'",
    "<>": "'<>' is not an operator; write '!='",
    "===": "'===' is not an operator; write '=='",
    "!": "'!' is not an operator; write 'not' or '~'",
    "=": "a query assigns nothing; write '==' to compare, or assign the result of eval",
}
_NO_KEYWORDS = "functions take no keyword arguments; give values in their order, or compute it before, as a column"


@dataclass(frozen=True)
class Name:
    """Meaning of a name in the text: a column by its heading, or a variable of the caller."""

    text: str
    is_variable: bool = False
    is_quoted: bool = False


@dataclass(frozen=True)
class Scanned:
    """A query as a syntax tree.

    Parameters
    ----------
    text : str
        As the user wrote it.
    tree : ast.expr
        Its names are those of `names`, and names of functions and modules.
    names : mapping of str to Name
    line : str
        As Python reads it.
    starts, origins : tuple of int
        Beginnings of pieces of the line, in the line and in the text.
    """

    text: str
    tree: ast.expr
    names: Mapping[str, Name]
    line: str
    starts: tuple[int, ...]
    origins: tuple[int, ...]

    def place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a node in the user's text, from 1."""
        column = getattr(node, "col_offset", 0)
        return self.place_at(len(self.line.encode()[:column].decode(errors="ignore")))

    def place_at(self, position: int) -> tuple[int, int]:
        """Line and column in the user's text of a position in the line."""
        piece = bisect_right(self.starts, position) - 1
        end = self.origins[piece + 1] if piece + 1 < len(self.origins) else len(self.text)
        origin = min(self.origins[piece] + position - self.starts[piece], end)
        before = self.text[:origin]
        return before.count("\n") + 1, origin - (before.rfind("\n") + 1) + 1

    def reject(self, message: str, node: ast.AST) -> UnsupportedSyntaxError:
        """The error about a node, to be raised."""
        return UnsupportedSyntaxError(message, *self.place(node))


@lru_cache(maxsize=256)
def scan(text: str) -> Scanned:
    """Read a text: ``&``, ``|`` are ``and``, ``or`` with their precedence, as in pandas; backticks quote a heading.

    An `UnsupportedSyntaxError` if it is not an expression.
    """
    if not text.strip():
        raise UnsupportedSyntaxError("the query is empty; write a condition such as 'x > 2.0'")
    if len(text) > MOST_CHARACTERS:
        raise UnsupportedSyntaxError(f"the query has {len(text)} characters; at most {MOST_CHARACTERS} are read")
    prefix = "q_"
    while prefix in text:
        prefix += "_"
    pieces: list[str] = []
    starts, origins, names = [0], [0], dict[str, Name]()
    length = last = 0

    def put(piece: str, origin: int) -> None:
        nonlocal length
        starts.append(length)
        origins.append(origin)
        pieces.append(piece)
        length += len(piece)

    # Blanks before an expression would be an indentation.
    last = len(text) - len(text.lstrip())
    for match in _TOKEN.finditer(text, last):
        put(text[last : match.start()], last)
        found, kind = match.group(), match.lastgroup
        if found in _NO_OPERATORS:
            at = Scanned(text, ast.Constant(0), {}, text, (0,), (0,)).place_at(match.start())
            is_keyword = found == "=" and re.search(r"[(,]\s*[^\W\d]\w*\s*$", text[: match.start()])
            raise UnsupportedSyntaxError(_NO_KEYWORDS if is_keyword else _NO_OPERATORS[found], *at)
        if kind in ("quoted", "variable"):
            name = f"{prefix}{len(names)}"
            own = found[1:-1] if kind == "quoted" else found[1:].strip()
            names[name] = Name(own, kind == "variable", kind == "quoted")
            found = name
            if length:
                put(" ", match.start())  # two headings without a blank between them are no name
        put(_WORDS.get(found, " " if kind == "blank" else found), match.start())
        last = match.end()
        if kind in ("quoted", "variable"):
            put(" ", last)
    put(text[last:].rstrip(), last)
    line = "".join(pieces)
    scanned = Scanned(text, ast.Constant(0), names, line, tuple(starts), tuple(origins))
    tree = _parsed(scanned, line)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names and id(node) not in functions:
            names[node.id] = Name(normalized(node.id))
    return replace(scanned, tree=tree)


def _parsed(scanned: Scanned, line: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about code that it would run; this code never runs
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        position = len(line) if not error.offset else error.offset - 1
        if "digits) for integer string conversion" in str(error.msg):
            raise UnsupportedSyntaxError("the number is too large", *scanned.place_at(position)) from None
        message = (
            f"not an expression: {cut(error.msg)}; a heading that is no name stands in backticks, as in `my column`, "
            "and 'and', 'or', 'not', 'in' join conditions"
        )
        raise UnsupportedSyntaxError(message, *scanned.place_at(position)) from None
    except (MemoryError, RecursionError):
        raise UnsupportedSyntaxError("the query is nested too deeply") from None
    except ValueError as error:
        raise UnsupportedSyntaxError(f"not an expression: {value_text(str(error), 80)}") from None
