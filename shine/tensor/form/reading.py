"""Text -> module: the reverse of `printing`; errors have a line and a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from shine.base.errors import FormError
from shine.lang.forms.names import check_text, choices
from shine.tensor.form.module import Attribute, Function, GradientDeclaration, Instruction, Module, Value
from shine.tensor.form.operations import OPERATIONS, Kind, result_types
from shine.tensor.form.shapes import Signature
from shine.tensor.form.types import DTYPES, TensorType
from shine.tensor.form.verifier import verify

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
        Its start, in characters from 0.
    """

    kind: str
    text: str
    at: int


class Tokens:
    """The tokens of a text, taken one after the other.

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


_LABEL = re.compile(r"(?:[^\\]|\\(?:[\\\"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))*")
"""A label with the escape sequences that it may contain."""


def module_of(text: str) -> Module:
    r"""Read and verify the text of a module.

    Parameters
    ----------
    text : str
        As `text_of` writes it. Comments are `//` to the end of the line; functions may stand in any order.

    Raises
    ------
    FormError
        With line and column if it is not such a text; without, if what it says is not valid.

    Examples
    --------
    >>> text = "module @m func @twice: (f32) -> f32 { 'entry(%x: f32): %y = add %x: f32, %x: f32 return %y: f32 }"
    >>> print(module_of(text).function("twice").body[0].operation)
    add
    """
    check_text("text", text)
    return verify(_Reader(text).module())


class _Reader(Tokens):
    """Recursive descent: a method for each part of the text, which takes its tokens."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.signatures = self._signatures()

    def module(self) -> Module:
        self.word("module")
        name, labels = self.name("@"), {}
        while self.takes("label"):
            value = self.name("%")
            self.sign("=")
            token = self.take("text", "a label in quotation marks")
            if value in labels:
                self.fail(token.at, f"there are two labels of %{value}")
            labels[value] = self._label(token)
        functions: dict[str, Function | GradientDeclaration] = {}
        while self.peek.kind != "end":
            at = self.peek.at
            marked = self.takes("[")
            separate = marked and self.takes("separate")
            if separate:
                self.sign("]")
            function = self._declaration() if marked and not separate else self._function(separate)
            if function.name in functions:
                self.fail(at, f"there are two functions @{function.name}")
            functions[function.name] = function
        return Module(name, functions, labels)

    def _label(self, token: Token) -> str:
        written = token.text[1:-1]
        try:
            if _LABEL.fullmatch(written):
                return written.encode("ascii", "backslashreplace").decode("unicode_escape")
        except UnicodeDecodeError:
            pass
        self.fail(token.at, "the label has a broken escape sequence")

    def _declaration(self) -> GradientDeclaration:
        self.word("gradient")
        of = self.name("@")
        self.word("wrt")
        wrt = self._indices()
        keeping = self._indices() if self.takes("keeping") else ()
        seedable = self.takes("seedable")
        self.sign("]")
        name, parameters, results = self._head()
        return GradientDeclaration(name, of, wrt, keeping, seedable, parameters, results)

    def _function(self, separate: bool) -> Function:
        at = self.peek.at
        name, parameter_types, result_types_ = self._head()
        self.sign("{")
        self.expect("'entry", "the block 'entry")
        values: dict[str, Value] = {}
        parameters = self.between("(", ")", lambda: self._define(self.name("%"), self._typed(), values))
        self.sign(":")
        body = []
        while not self.takes("return"):
            body.append(self._instruction(values))
        results = () if self.peek.text == "}" else self.list_of(lambda: self._use(values))
        self.sign("}")
        function = Function(name, tuple(parameters), tuple(body), tuple(results), separate)
        if (function.parameter_types, function.result_types) != (parameter_types, result_types_):
            self.fail(at, f"the types of @{name} are not those of its parameters and results")
        return function

    def _head(self) -> tuple[str, tuple[TensorType, ...], tuple[TensorType, ...]]:
        self.word("func")
        name = self.name("@")
        self.sign(":")
        parameters = tuple(self.between("(", ")", self._type))
        self.sign("->")
        results = tuple(self.between("(", ")", self._type)) if self.peek.text == "(" else (self._type(),)
        return name, parameters, results

    def _instruction(self, values: dict[str, Value]) -> Instruction:
        at, names = self.peek.at, []
        if self.peek.text.startswith("%"):
            names = self.list_of(lambda: self.name("%"))
            self.sign("=")
        token = self.take("word", "an operation or return")
        operation = OPERATIONS.get(token.text)
        if operation is None:
            self.fail(token.at, f"there is no operation {token.text!r}; {choices(token.text, OPERATIONS)}")
        operands = self.list_of(lambda: self._use(values)) if self.peek.text.startswith("%") else []
        # A result of the next line begins with % as well, but an operand has a type.
        attributes: dict[str, Attribute] = {}
        if self.peek.text == "{":
            self.between("{", "}", lambda: self._attribute(operation.attributes, attributes))
        try:
            types = result_types(token.text, tuple(v.type for v in operands), attributes, self._signature_of)
        except FormError as error:
            self.fail(token.at, str(error))
        if len(names) != len(types):
            self.fail(at, f"{token.text} has {len(types)} results, and {len(names)} are named")
        results = tuple(self._define(name, type, values, at) for name, type in zip(names, types, strict=True))
        return Instruction(results, token.text, tuple(operands), attributes)

    def _attribute(self, kinds: Mapping[str, Kind], found: dict[str, Attribute]) -> None:
        key = self.take("word", "an attribute")
        if key.text not in kinds:
            self.fail(key.at, f"there is no attribute {key.text!r} here; there are {', '.join(kinds) or 'none'}")
        if key.text in found:
            self.fail(key.at, f"there are two attributes {key.text!r}")
        self.sign("=")
        readers: dict[Kind, Callable[[], Attribute]] = {
            "array": self._array,
            "function": lambda: self.name("@"),
            "dtype": lambda: self.take("word", "an element type").text,
            "integers": lambda: tuple(self.between("[", "]", self.integer)),
            "integer": self.integer,
            "truth": self._truth,
        }
        found[key.text] = readers[kinds[key.text]]()

    def _truth(self) -> bool:
        token = self.take("word", "true or false")
        if token.text not in ("true", "false"):
            self.fail(token.at, f"{token.text!r} is neither true nor false")
        return token.text == "true"

    def _array(self) -> np.ndarray:
        at, found = self.peek.at, self._type()
        if self.peek.kind == "hex":
            token = self.take("hex", "bytes")
            try:
                data = bytes.fromhex(token.text[2:])
            except ValueError:
                self.fail(token.at, "the bytes of an array have two hexadecimal digits each")
            if len(data) != found.bytes:
                self.fail(token.at, f"{found} has {found.bytes} bytes, and {len(data)} are given")
            if found.dtype == "bool" and data.strip(b"\0\1"):
                self.fail(token.at, "the bytes of truth are 00 and 01")
            array = np.frombuffer(data, found.numpy.newbyteorder("<")).astype(found.numpy)
        else:
            with np.errstate(over="ignore"):
                elements = self.between("[", "]", lambda: self._number(found))
            if len(elements) != found.elements:
                self.fail(at, f"{found} has {found.elements} elements, and {len(elements)} are given")
            array = np.array(elements, found.numpy)
        array = array.reshape(found.shape)
        array.flags.writeable = False
        return array

    def _number(self, type: TensorType) -> Any:
        """A number of a type: NaN as the hexadecimal of its bytes, the first one first; others are not rounded away."""
        token, dtype = self.peek, type.numpy
        try:
            if type.dtype == "bool":
                made: Any = {"true": True, "false": False}[token.text]
            elif token.kind == "hex" and dtype.kind == "f":
                (made,) = np.frombuffer(bytes.fromhex(token.text[2:]), dtype.newbyteorder(">")).astype(dtype)
            else:
                value = (float if dtype.kind == "f" else int)(token.text)
                # NumPy 1 lets integers wrap.
                if dtype.kind != "f" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
                    raise OverflowError
                made = np.array(value, dtype)[()]
        except (ValueError, KeyError, OverflowError):
            self.fail(token.at, f"{token.text!r:.60} is no element {type.dtype}")
        if dtype.kind == "f" and np.isinf(made) and "inf" not in token.text and token.kind != "hex":
            self.fail(token.at, f"{token.text!r:.60} is beyond the elements {type.dtype}")
        self.place += 1
        return made

    def _type(self) -> TensorType:
        at, sizes = self.peek.at, []
        if self.peek.kind == "word":
            dtype = self.take("word", "a type").text
        else:
            self.sign("<")
            while self.peek.kind == "number":
                sizes.append(self._size())
            dtype = self.take("word", "an element type").text
            self.sign(">")
        if dtype not in DTYPES:
            self.fail(at, f"there is no element type {dtype!r}; there are {', '.join(DTYPES)}")
        try:
            return TensorType(dtype, tuple(sizes))
        except FormError as error:
            self.fail(at, str(error))

    def _size(self) -> int:
        size = self.integer()
        self.word("x")
        return size

    def _use(self, values: dict[str, Value]) -> Value:
        at, name = self.peek.at, self.name("%")
        found = values.get(name)
        if found is None:
            self.fail(at, f"%{name} is not defined before")
        if self._typed() != found.type:
            self.fail(at, f"%{name} has the type {found.type}")
        return found

    def _define(self, name: str, type: TensorType, values: dict[str, Value], at: int | None = None) -> Value:
        if name in values:
            self.fail(self.tokens[self.place - 1].at if at is None else at, f"%{name} is defined twice")
        values[name] = Value(name, type)
        return values[name]

    def _signatures(self) -> dict[str, Signature]:
        """Types of all functions: they may be called before they are defined."""
        found = {}
        for place, token in enumerate(self.tokens):
            if token.kind == "word" and token.text == "func":
                self.place = place
                name, parameters, results = self._head()
                found[name] = parameters, results
        self.place = 0
        return found

    def _signature_of(self, name: str) -> Signature:
        if name not in self.signatures:
            raise FormError(f"there is no function @{name}")
        return self.signatures[name]

    def _indices(self) -> tuple[int, ...]:
        return tuple(self.list_of(self.integer))

    def _typed(self) -> TensorType:
        self.sign(":")
        return self._type()
