"""The tokens of the text form, and a reader of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from shine.base.errors import FormError

_TOKEN = re.compile(
    r"(?P<space>(?:\s|//[^\n]*)+)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<hex>0x[0-9a-fA-F]*)"
    r"|(?P<number>[-+]?(?:inf\b|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))"
    r"|(?P<name>[@%'][A-Za-z_0-9.]+)"
    r"|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>->|[][(){}<>:,=])",
    re.ASCII,
)
"""Each kind of token, and spaces with comments. Names have a mark: `@`, `%`, or `'` for blocks."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Token:
    """A word of the text.

    Parameters
    ----------
    kind : str
        "text", "hex", "number", "name", "word", "sign", or "end".
    text : str
        As it is written.
    at : int
        Where it starts, in characters from 0.
    """

    kind: str
    text: str
    at: int


class Tokens:
    """The tokens of a text, taken one after the other.

    Parameters
    ----------
    text : str

    Raises
    ------
    FormError
        If a character is not part of the text form.
    """

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.tokens = self._split()

    def _split(self) -> list[Token]:
        found, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.fail(at, f"{self.text[at]!r} is not part of the text form")
            if match.lastgroup != "space":
                found.append(Token(str(match.lastgroup), match[0], at))
            at = match.end()
        return [*found, Token("end", "", len(self.text))]

    @property
    def peek(self) -> Token:
        """The next token."""
        return self.tokens[self.place]

    def take(self, kind: str, wanted: str) -> Token:
        """Take a token of a kind; the message of the error says what was wanted."""
        token = self.peek
        if token.kind != kind:
            self.fail(token.at, f"expected {wanted}, and found {token.text or 'the end'!r:.60}")
        self.place += 1
        return token

    def expect(self, text: str, wanted: str) -> None:
        """Take a token with a text."""
        if not self.takes(text):
            self.fail(self.peek.at, f"expected {wanted}, and found {self.peek.text or 'the end'!r:.60}")

    def takes(self, text: str) -> bool:
        """Take the next token if it has this text, outside of quotation marks."""
        takes = self.peek.text == text and self.peek.kind != "end"
        self.place += takes
        return takes

    def word(self, text: str) -> None:
        """Take a keyword or a sign."""
        self.expect(text, f"`{text}`")

    sign = word

    def name(self, mark: str) -> str:
        """Take a name; without the character that it begins with."""
        token = self.take("name", f"a name that begins with {mark}")
        if token.text[0] != mark:
            self.fail(token.at, f"expected a name that begins with {mark}, and found {token.text!r}")
        return token.text[1:]

    def integer(self) -> int:
        """Take an integer of any size."""
        token = self.take("number", "an integer")
        try:
            return int(token.text)
        except ValueError:
            self.fail(token.at, f"{token.text!r:.60} is no integer")

    def list_of(self, item: Callable[[], Item]) -> list[Item]:
        """Items with commas between them."""
        items = [item()]
        while self.takes(","):
            items.append(item())
        return items

    def between(self, first: str, last: str, item: Callable[[], Item]) -> list[Item]:
        """Any number of items in brackets, with commas between them."""
        self.sign(first)
        items = [] if self.peek.text == last else self.list_of(item)
        self.sign(last)
        return items

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise FormError with the line and the column of a character."""
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        raise FormError(f"line {line}, column {column}: {message}")
