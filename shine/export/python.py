"""Tree -> Python source that needs NumPy only, and behaves as the reference tier does to the last special value."""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from shine.export.phrases import Infix, Phrase, phrase, word, written
from shine.export.translation import composites
from shine.lang.tree import Primitive, Tree
from shine.lang.visitor import Visit

DEEPEST = 24
"""Levels of nesting an expression may have before it is broken into statements; Python's own parser takes about 90."""

_COMPARISON, _OR, _AND = 1, 2, 3

_HELPERS = {
    "minimum": (
        "a, b",
        "The lesser of two numbers; NaN if either is, and b where they are equal.",
        "np.where((a < b) | (a != a), a, b)",
    ),
    "maximum": (
        "a, b",
        "The greater of two numbers; NaN if either is, and b where they are equal.",
        "np.where((a > b) | (a != a), a, b)",
    ),
    "power_half": (
        "x",
        "x to the power of 0.5: the square root, but for 0.0 at -0.0 and inf at -inf.",
        "np.where(x == -np.inf, np.inf, np.sqrt(x) + 0.0)",
    ),
}
"""Parameters, meaning and value of the functions that NumPy lacks, or has with other special values."""


def python_source(tree: Tree, name: str = "f", *, digits: int | None = None) -> str:
    """A module with the formula as a function of NumPy arrays.

    It imports NumPy and nothing else. Functions that the formula calls become functions of the module; what is nested
    too deeply to be read is broken into statements. Its values are those of the reference tier, NaN, infinities and
    signed zeros included.

    Parameters
    ----------
    tree : Tree
    name : str
        What the function is called.
    digits : int, optional
        Significant digits of constants; all they have by default.

    Raises
    ------
    ValueError
        If the name is no Python identifier.
    ExportError
        If a primitive has no meaning, or the text would be too long.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name for a Python function")
    module = _Module(digits, name)
    function = module.function(tree, name)
    helpers = [
        f"def {module.helper_names[helper]}({parameters}):\n    {_docstring(meaning)}\n    return {value}\n"
        for helper, (parameters, meaning, value) in _HELPERS.items()
        if helper in module.helper_names
    ]
    parts = ['"""A formula found by Shine."""\n\nimport numpy as np\n', *helpers, *reversed(module.bodies), function]
    return "\n\n".join(parts)


def python_expression(tree: Tree, *, digits: int | None = None) -> str:
    """The formula as one NumPy expression of its parameters, which are float64 arrays.

    Assigned values and functions are written out wherever they are used. Of 0.0 and -0.0, `np.minimum` and
    `np.maximum` may return either.

    Raises
    ------
    ExportError
        If a primitive has no meaning, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> python_expression(parse("sqrt(a*a + 1) if a > 0 else 0"))
    'np.where(a > 0, np.sqrt(a*a + 1), 0.0)'
    """
    writer = _Expression(digits)
    names = identifiers(tree.parameters, {"np"})
    result = writer.translate(tree, [word(names[name]) for name in tree.parameters])
    return written(writer.numeric(result), "a Python expression")


def identifiers(names: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """A Python identifier for each name: the name itself where it is one that is free.

    Python takes names for the same that Unicode's NFKC form makes the same.
    """
    used, result = set(taken), {}
    for name in names:
        if name not in result:
            result[name] = _identifier(name, used)
            used.add(result[name])
    return result


def _identifier(name: str, used: Collection[str]) -> str:
    text = unicodedata.normalize("NFKC", name)
    text = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in text)
    if not text.isidentifier() or keyword.iskeyword(text):
        text = f"{text}_" if text.isidentifier() else f"_{text}"
    return _numbered(text, used, {})


def _numbered(text: str, used: Collection[str], numbers: dict[str, int]) -> str:
    """An identifier that is free, with a number behind it if need be; `numbers` says how far each has come."""
    candidate, number = text, numbers.get(text, 1)
    while candidate in used:
        number += 1
        candidate = f"{text}_" if number == 2 else f"{text}_{number - 1}"
    numbers[text] = number
    return candidate


class _Expression(Infix):
    """NumPy expressions. Conditions are arrays of bool, and become numbers only where they are used as such."""

    form = "a Python expression"
    sum, product, unary, power = 4, 5, 6, 7

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        functions = {
            "abs": "abs", "sqrt": "sqrt", "exp": "exp", "log": "log", "floor": "floor", "ceil": "ceil", "sign": "sign",
            "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
            "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
            "log1p": "log1p", "expm1": "expm1", "log2": "log2", "log10": "log10", "cbrt": "cbrt",
        }  # fmt: skip
        comparisons = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
        return {
            **{name: self.calls(f"np.{function}") for name, function in functions.items()},
            **{name: self._comparison(symbol) for name, symbol in comparisons.items()},
            "add": self.add,
            "sub": self.sub,
            "mul": self.mul,
            "div": self.div,
            "floordiv": lambda a, b: self.infix(a, "//", b, self.product),
            "mod": lambda a, b: self.infix(a, " % ", b, self.product),
            "pow": self._pow,
            "neg": self.neg,
            "min": self.calls("np.minimum"),
            "max": self.calls("np.maximum"),
            "logical_and": self._and,
            "logical_or": self._or,
            "logical_not": self._not,
            "where": self._where,
            "square": lambda a: self._pow(a, self.number(2)),
            "cube": lambda a: self._pow(a, self.number(3)),
            "inv": lambda a: self.div(self.number(1), a),
            "protected_sqrt": lambda a: self.call("np.sqrt", self.call("np.abs", a)),
        }

    def positive(self, value: int | float) -> Phrase:
        if not math.isfinite(value):
            return word("np.nan" if math.isnan(value) else "np.inf")
        # Python's integers beyond 64 bits would become objects; as floats they are the numbers they stand for.
        exact = value if abs(value) <= 2**53 else float(value)
        return word(self.digits_of(exact))

    def digits_of(self, value: int | float) -> str:
        """A finite number as Python text."""
        if self.digits is None or isinstance(value, int):
            return repr(value)
        return repr(float(f"{value:.{self.digits}g}"))

    def numeric(self, operand: Phrase) -> Phrase:
        if not operand.condition:
            return operand
        return phrase("np.where(", operand, ", 1.0, 0.0)")

    def truth(self, operand: Phrase) -> Phrase:
        """An operand as a condition: whether a number is not 0."""
        if operand.condition:
            return operand
        return phrase(self.enclosed(operand, _OR), " != 0", strength=_COMPARISON, condition=True)

    def _comparison(self, symbol: str) -> Callable[[Phrase, Phrase], Phrase]:
        def rule(left: Phrase, right: Phrase) -> Phrase:
            left, right = self.operand(left, self.sum), self.operand(right, self.sum)
            return phrase(left, f" {symbol} ", right, strength=_COMPARISON, condition=True)

        return rule

    def _pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        if exponent.value == 0.5:
            # For this exponent, given as a scalar, NumPy takes the square root: NaN at -inf, -0.0 at -0.0.
            return self.power_half(self.numeric(base))
        parts = self.operand(base, self.power + 1), "**", self.operand(exponent, self.unary)
        return phrase(*parts, strength=self.power)

    def power_half(self, base: Phrase) -> Phrase:
        """``base**0.5``, the exponent as an array."""
        return phrase("np.power(", base, ", np.full_like(", base, ", 0.5))")

    def _and(self, left: Phrase, right: Phrase) -> Phrase:
        if left.condition and right.condition:
            parts = self.enclosed(left, _AND), " & ", self.enclosed(right, _AND + 1)
            return phrase(*parts, strength=_AND, condition=True)
        return self._where(left, right, self.number(0.0) if left.condition else left)

    def _or(self, left: Phrase, right: Phrase) -> Phrase:
        if left.condition and right.condition:
            parts = self.enclosed(left, _OR), " | ", self.enclosed(right, _OR + 1)
            return phrase(*parts, strength=_OR, condition=True)
        return self._where(left, self.number(1.0) if left.condition else left, right)

    def _not(self, operand: Phrase) -> Phrase:
        if operand.condition:
            return phrase("~", self.enclosed(operand, self.unary), strength=self.unary, condition=True)
        return phrase(self.enclosed(operand, self.sum), " == 0", strength=_COMPARISON, condition=True)

    def _where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        if condition.value is not None:
            chosen, other = (yes, no) if condition.value != 0 else (no, yes)
            # A number that stays in an array's place has no shape.
            if chosen.value is None or other.value is not None:
                return chosen
        # Two integers would make an array of integers.
        yes, no = (operand if operand.value is None else self.number(operand.value) for operand in (yes, no))
        return phrase("np.where(", self.truth(condition), ", ", self.numeric(yes), ", ", self.numeric(no), ")")


class _Module(_Expression):
    """Functions of NumPy arrays: the formula's own, and one for each function it calls."""

    form = "Python"

    def __init__(self, digits: int | None, name: str) -> None:
        super().__init__(digits)
        self.taken = {"np", name}
        self.helper_names: dict[str, str] = {}
        self.function_names: dict[int, str] = {}
        self.constants: set[int] = set()
        self.primitives: list[Primitive] = []
        self.bodies: list[str] = []
        self.lines: list[str] = []
        self.numbers: dict[str, int] = {}
        self.local: set[str] = set()

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        return {
            **super().table(),
            "min": lambda a, b: self.call(self._helper("minimum"), a, b),
            "max": lambda a, b: self.call(self._helper("maximum"), a, b),
        }

    def power_half(self, base: Phrase) -> Phrase:
        return self.call(self._helper("power_half"), base)

    def _helper(self, helper: str) -> str:
        if helper not in self.helper_names:
            self.helper_names[helper] = self._free(f"_{helper}")
        return self.helper_names[helper]

    def _free(self, wanted: str) -> str:
        name = _identifier(wanted, self.taken)
        self.taken.add(name)
        return name

    def function(self, tree: Tree, name: str) -> str:
        """Text of the formula's function; those it calls are in `bodies` afterwards, callers first."""
        self.constants = _constant_functions(tree, self.form)
        names, result = self._body(tree)
        value = written(result, self.form)
        parameters = [names[parameter] for parameter in tree.parameters]
        used: Collection[str] = set()
        if result.value is not None:
            value = f"np.full(np.shape({parameters[0]}), {value})" if parameters else f"np.float64({value})"
        else:
            used = set(re.findall(r"\w+", "\n".join([*self.lines, value])))
            value = f"{value}.copy()" if value in parameters else value
        lines = [
            _docstring(_meaning(tree, names)),
            *(f"{own} = np.asarray({own}, dtype=np.float64)" for own in parameters if own in used),
            'with np.errstate(all="ignore"):',
            *(f"    {line}" for line in self.lines),
            f"    return {value}",
        ]
        for primitive in self.primitives:  # grows while it is walked
            self.bodies.append(self._function(primitive))
        return _block(name, parameters, lines)

    def _function(self, primitive: Primitive) -> str:
        assert primitive.definition is not None
        names, result = self._body(primitive.definition)
        return _block(
            self.function_names[id(primitive)], names.values(), [*self.lines, f"return {written(result, self.form)}"]
        )

    def _body(self, tree: Tree) -> tuple[dict[str, str], Phrase]:
        """Statements, in `lines`, and the result of a function; with its parameters' names in Python."""
        # None of the module's names must be hidden, neither those there are nor, being taken, those to come.
        reserved = {"np", *(f"_{helper}" for helper in _HELPERS), *self.function_names.values()}
        names = identifiers(tree.parameters, reserved)
        self.taken |= set(names.values())
        self.lines, self.numbers, self.local = [], {}, reserved | set(names.values())
        result = self.translate(tree, [word(names[parameter]) for parameter in tree.parameters])
        return names, self.numeric(result)

    def assigned(self, name: str, value: Phrase) -> Phrase:
        return value if value.simple else self._statement(name, value)

    def _statement(self, wanted: str, value: Phrase) -> Phrase:
        name = _numbered(wanted, self.local, self.numbers)
        self.local.add(name)
        self.taken.add(name)
        self.lines.append(f"{name} = {written(value, self.form)}")
        return word(name, condition=value.condition)

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        return self._shallow(super().apply(name, *operands))

    def _shallow(self, made: Phrase) -> Phrase:
        return made if made.depth < DEEPEST else self._statement("step", made)

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Phrase]) -> Visit:
        # Among numbers that are no arrays, Python's own arithmetic would apply: 1/0 is an error there.
        if any(operand.value is not None for operand in operands) or id(primitive) in self.constants:
            return (yield from self.expanded(definition, operands))
        known = self.function_names.get(id(primitive))
        if known is None:
            known = self.function_names[id(primitive)] = self._free(primitive.name)
            self.primitives.append(primitive)
        return self._shallow(self.call(known, *operands))


def _constant_functions(tree: Tree, form: str) -> set[int]:
    """The functions, by the `id` of their primitives, whose value no parameter changes."""
    constants: set[int] = set()
    for primitive in composites(tree, form):
        if primitive.definition is not None and _is_constant(primitive.definition, constants):
            constants.add(id(primitive))
    return constants


def _is_constant(tree: Tree, constants: Collection[int]) -> bool:
    known = dict.fromkeys(tree.parameters, False)
    stack: list[bool] = []
    for kind, detail in tree.tokens[1:]:
        match kind:
            case "constant":
                stack.append(True)
            case "name":
                stack.append(known[detail])
            case "assign":
                known[detail] = stack.pop()
            case _:
                first = len(stack) - (len(detail) + 1 if kind == "compare" else detail)
                constant = id(tree.functions.get(kind)) in constants or all(stack[first:])
                stack[first:] = [constant]
    return stack[-1]


def _block(name: str, parameters: Iterable[str], lines: Sequence[str]) -> str:
    return f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)


def _meaning(tree: Tree, names: Mapping[str, str]) -> str:
    """What the docstring of the formula says: the formula itself where it fits."""
    same = all(name == own for name, own in names.items())
    text = str(tree) if same and tree.size < 60 and not tree.assignments else ""
    lines = [
        text if 0 < len(text) < 90 else "Value of the formula for each row; the parameters are arrays, or numbers."
    ]
    renamed = [f"    {own} is {name!a}" for name, own in names.items() if name != own]
    if renamed:
        lines += ["", *renamed, "    "]
    return "\n".join(lines)


def _docstring(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', "'")
    return f'"""{escaped}"""'
