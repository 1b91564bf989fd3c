"""LLVM's text of a function's body -> basic blocks of instructions; a cursor reads their tokens one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shine.base.errors import GraphImportError

MAX_INSTRUCTIONS = 20_000
"""Most instructions of a function."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[%@](?:"[^"]*"|[-\w.$]+))
      | (?P<number>0x[KLMHR]?[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
      | (?P<word>[A-Za-z_][\w.$]*)
      | (?P<other>c?"[^"]*"|[!\#][-\w.$]*|\.\.\.|[][(){}<>,=*:|^])
    )""",
    re.VERBOSE,
)
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_COMMENT = re.compile(r'("[^"]*")|;.*')
_RESULT = re.compile(r'\s*%("[^"]*"|[-\w.$]+)\s*=\s*')
_OPENING, _CLOSING = {"(", "[", "{", "<"}, {")", "]", "}", ">"}


@dataclass(frozen=True)
class Type:
    """Type of a value.

    Parameters
    ----------
    element : str
        As LLVM writes it: ``double``, ``i1``, ``ptr``, ``[4 x double]``, ...
    lanes : int
        Elements of a vector; 1 otherwise.
    """

    element: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def width(self) -> int:
        """Bits of an integer type; 0 for any other."""
        match = re.fullmatch(r"i(\d+)", self.element)
        return int(match[1]) if match else 0


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    result : str
        Name of its value; empty if it has none.
    opcode : str
    text : str
        The whole instruction, for messages.
    operands : str
        The text after the opcode.
    """

    result: str
    opcode: str
    text: str
    operands: str


@dataclass(frozen=True)
class Block:
    """A basic block: instructions in order; the last one jumps or returns."""

    name: str
    instructions: tuple[Instruction, ...]


def blocks(body: str) -> tuple[Block, ...]:
    """The basic blocks of a function's body, the entry first.

    A `GraphImportError` if there are too many instructions, or the text is not LLVM's.
    """
    found: list[tuple[str, list[Instruction]]] = []
    count = 0
    for line in _logical_lines(body):
        label = _LABEL.match(line)
        if label:
            found.append((label[1], []))
            continue
        count += 1
        if count > MAX_INSTRUCTIONS:
            raise GraphImportError(f"it has more than {MAX_INSTRUCTIONS} instructions after inlining and unrolling")
        if not found:
            raise GraphImportError(f"instruction {line.strip()!r} is outside the basic blocks")
        found[-1][1].append(_instruction(line))
    if not found or not all(instructions for _, instructions in found):
        raise GraphImportError("one of its basic blocks has no instructions")
    return tuple(Block(name, tuple(instructions)) for name, instructions in found)


def _logical_lines(body: str) -> Iterator[str]:
    """Lines without comments and debug records; a switch, printed on several lines, becomes one line."""
    pending = ""
    for raw in body.splitlines():
        line = _COMMENT.sub(lambda match: match[1] or "", raw).rstrip()
        if not line or line.lstrip().startswith("#dbg_"):
            continue
        pending += line
        if pending.lstrip().startswith("switch ") and "]" not in pending:
            continue
        yield pending
        pending = ""


def _instruction(line: str) -> Instruction:
    text = " ".join(line.split())
    result = _RESULT.match(text)
    rest = text[result.end() :] if result else text
    opcode, _, operands = rest.partition(" ")
    if opcode in ("tail", "musttail", "notail"):
        opcode, _, operands = operands.partition(" ")
    return Instruction(result[1] if result else "", opcode, text, operands)


class Cursor:
    """Reads the operands of an instruction from left to right.

    Raises
    ------
    GraphImportError
        By every method, if the next token is not the expected one.
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        text = text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise GraphImportError(f"{text[position : position + 20]!r} is not understood")
            self._tokens.append(match[match.lastgroup or 0])
            position = match.end()
        self._position = 0

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def take(self) -> str:
        """Read a token."""
        token = self.next
        self._position += 1
        return token

    def expect(self, token: str) -> None:
        """Read a token, which must be this one."""
        found = self.take()
        if found != token:
            raise GraphImportError(f"{token!r} is missing before {found!r}")

    def skip(self, *words: str) -> None:
        """Read any number of these words."""
        while self.next in words:
            self.take()

    def type(self) -> Type:
        """Read a type."""
        if self.next == "<":
            self.take()
            lanes = self.take()
            self.expect("x")
            element = self.type()
            self.expect(">")
            if not lanes.isdigit() or element.lanes != 1:
                return Type(f"<{lanes} x {element}>")  # a scalable vector
            return Type(element.element, int(lanes))
        if self.next in _OPENING:
            return Type(" ".join(self._enclosed()))
        return Type(self.take())

    def _enclosed(self) -> list[str]:
        """Read the tokens from an opening bracket to its closing one, both included."""
        taken, depth = [], 0
        while True:
            token = self.take()
            depth += (token in _OPENING) - (token in _CLOSING)
            taken.append(token)
            if depth <= 0 or not token:
                return taken

    def attributes(self) -> None:
        """Read the attributes before an argument: `noundef`, `align 8`, `range(i32 0, 9)`, ..."""
        while re.fullmatch(r"[a-z_]+|\".*\"", self.next) and self.next not in _CONSTANT_WORDS:
            word = self.take()
            if self.next == "(":
                self._enclosed()
            elif word == "align":
                self.take()
            elif self.next == "=":
                self.take()
                self.take()

    def name(self) -> str:
        """Read the name of a local value or basic block, without the %."""
        token = self.take()
        if not token.startswith("%"):
            raise GraphImportError(f"a name is missing before {token!r}")
        return token[1:]

    def callee(self) -> str:
        """Read up to the parenthesis after the name of the called function; returns the name."""
        while self.next and not self.next.startswith("@"):
            self.take()
        name = self.take()
        if not name:
            raise GraphImportError("calls through function pointers are not supported")
        self.expect("(")
        return name[1:].strip('"')

    def label(self) -> str:
        """Read ``label %name``."""
        self.expect("label")
        return self.name()


_CONSTANT_WORDS = {"true", "false", "poison", "undef", "zeroinitializer", "null", "none", "splat"}
