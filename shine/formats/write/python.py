"""Formulas as Python source that needs only NumPy, with the values of the reference tier, special values included."""

from __future__ import annotations

import keyword
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shine.formats.write.language import SPACED, Form, Language, binary, calls, comparisons, identifiers
from shine.formats.write.printer import Phrase, Printer, word, written
from shine.formats.write.sources import Headings, notes, takes_models
from shine.formats.write.straightline import straight_line
from shine.lang.forms.names import check_variable
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.forms.visitor import Visit

COMPARISON, _OR, _AND, _SUM, _PRODUCT, SIGN, POWER = range(1, 8)

OPERATORS = {
    "floordiv": binary("{0}//{1}", _PRODUCT),
    "mod": binary("{0} % {1}", _PRODUCT),
    "pow": Form("{0}**{1}", POWER, (POWER + 1, SIGN)),
}
"""Python's other operators between arrays or columns."""

CONDITIONS = {
    **comparisons(SPACED, COMPARISON, _SUM),
    # In Python, & and | bind more strongly than comparisons.
    "logical_and": binary("{0} & {1}", _AND, 0, 1),
    "logical_or": binary("{0} | {1}", _OR, 0, 1),
    "logical_not": Form("~{0}", SIGN, (SIGN,), (0,)),
}
"""Conditions of arrays or columns, which are of truth values."""

NONZERO, ZERO = Form("{0} != 0", COMPARISON, (_OR,)), Form("{0} == 0", COMPARISON, (_SUM,))


def digits(value: int | float, nan: str, infinity: str) -> str:
    """A number that is not negative, or NaN."""
    if not math.isfinite(value):
        return nan if math.isnan(value) else infinity
    # NumPy makes objects of integers beyond 64 bits; floats have the same value.
    return repr(value if abs(value) <= 2**53 else float(value))


_SAME = "abs sqrt exp log floor ceil sign sin cos tan sinh cosh tanh log1p expm1 log2 log10 cbrt"
NUMPY = Language(
    "a Python expression",
    forms={
        **OPERATORS,
        **calls(_SAME, "np.{}".format, asin="np.arcsin", acos="np.arccos", atan="np.arctan"),
        **calls(min="np.minimum", max="np.maximum"),
        "where": Form("np.where({0}, {1}, {2})", conditions=(0,)),
    },
    conditions=CONDITIONS,
    nonzero=NONZERO,
    zero=ZERO,
    as_number=Form("np.where({0}, 1.0, 0.0)", conditions=(0,)),
    number=partial(digits, nan="np.nan", infinity="np.inf"),
)


class Expression(Printer):
    """Writes NumPy expressions. Conditions are arrays of bool until they are needed as numbers."""

    def __init__(self, language: Language = NUMPY) -> None:
        super().__init__(language)

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rules of powers and quotients."""
        return {
            "pow": self.pow,
            "square": lambda a: self.pow(a, self.number(2)),
            "cube": lambda a: self.pow(a, self.number(3)),
            "inv": lambda a: self.div(self.number(1), a),
            "protected_sqrt": lambda a: self.formed("sqrt", self.formed("abs", a)),
            "where": self.where,
        }

    def pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        """``a**b``."""
        # For the scalar exponent 0.5 NumPy takes the square root: NaN at -inf, -0.0 at -0.0.
        if exponent.value == 0.5:
            return self.power_half(base)
        return self.formed("pow", base, exponent)

    def power_half(self, base: Phrase) -> Phrase:
        """``base**0.5`` with the exponent as an array."""
        return self.filled(Form("np.power({0}, np.full_like({0}, 0.5))"), base)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """A call of `np.where`; one of the operands if the condition is a number."""
        if condition.value is not None:
            chosen, other = (yes, no) if condition.value != 0 else (no, yes)
            # A number in place of an array would lose the shape.
            if chosen.value is None or other.value is not None:
                return chosen
        # Two integers would give an array of integers.
        yes, no = (operand if operand.value is None else self.number(operand.value) for operand in (yes, no))
        return self.formed("where", condition, yes, no)


def identifier(name: str, used: Collection[str]) -> str:
    """An identifier like a name that is not used yet."""
    text = unicodedata.normalize("NFKC", name)
    text = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in text)
    if not text.isidentifier() or keyword.iskeyword(text):
        text = f"{text}_" if text.isidentifier() else f"_{text}"
    return numbered(text, used, {})


def numbered(text: str, used: Collection[str], numbers: dict[str, int]) -> str:
    """A free identifier: the text, with a number added if it is used; `numbers` holds the last number of each text."""
    candidate, number = text, numbers.get(text, 1)
    while candidate in used:
        number += 1
        candidate = f"{text}_" if number == 2 else f"{text}_{number - 1}"
    numbers[text] = number
    return candidate


class Assigning(Printer):
    """Printer of Python that assigns long values to variables, by `lines`.

    Parameters
    ----------
    language : Language
    local : set of str
        Names that variables must not have.
    """

    def __init__(self, language: Language, local: set[str]) -> None:
        super().__init__(language)
        self.local, self.numbers, self.lines = local, dict[str, int](), list[str]()

    def assigned(self, name: str, value: Phrase) -> Phrase:
        """A variable, unless the value is short."""
        return value if value.simple else self._statement(name, value)

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive, broken into statements if it is deep."""
        return self.shallow(super().apply(name, *operands))

    def shallow(self, made: Phrase) -> Phrase:
        """A phrase, or a variable if it is deep."""
        # Levels of nesting at which an expression is broken into statements; Python's own parser takes about 90.
        return made if made.depth < 24 else self._statement("step", made)

    def _statement(self, wanted: str, value: Phrase) -> Phrase:
        name = self.named(wanted)
        self.lines.append(f"{name} = {written(value, self.form)}")
        return word(name, condition=value.condition)

    def named(self, wanted: str) -> str:
        """A free name for a variable."""
        name = numbered(wanted, self.local, self.numbers)
        self.local.add(name)
        return name


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
        "x to the power of 0.5: the square root, except 0.0 at -0.0 and inf at -inf.",
        "np.where(x == -np.inf, np.inf, np.sqrt(x) + 0.0)",
    ),
}
"""Parameters, docstring and value of the functions that NumPy lacks, or defines differently for special values."""


class Module(Assigning, Expression):
    """Writes one module.

    Parameters
    ----------
    name : str
        Name of the formula's function.
    headings : mapping of str to str
        Original headings of the columns, by feature.
    taken : sequence of str
        Other names that the module must not use.
    """

    def __init__(self, name: str, headings: Headings, taken: Collection[str] = ()) -> None:
        super().__init__(replace(NUMPY, name="Python"), set())
        self.headings = headings
        self.taken = {"np", name, *taken}
        self.helper_names: dict[str, str] = {}
        self.function_names: dict[int, str] = {}
        self.constants: set[int] = set()
        self.primitives: list[Primitive] = []
        self.bodies: list[str] = []

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rules of expressions, with the module's own helpers."""
        return {
            **super().table(),
            "min": lambda a, b: self.call(self._helper("minimum"), a, b),
            "max": lambda a, b: self.call(self._helper("maximum"), a, b),
        }

    def power_half(self, base: Phrase) -> Phrase:
        """``base**0.5``, by a helper."""
        return self.call(self._helper("power_half"), base)

    def _helper(self, helper: str) -> str:
        if helper not in self.helper_names:
            self.helper_names[helper] = self._free(f"_{helper}")
        return self.helper_names[helper]

    def _free(self, wanted: str) -> str:
        name = identifier(wanted, self.taken)
        self.taken.add(name)
        return name

    def module(self, tree: Tree, name: str) -> str:
        """The whole module."""
        function = self._formula(tree, name)
        helpers = [
            f"def {self.helper_names[helper]}({parameters}):\n    {_docstring(meaning)}\n    return {value}\n"
            for helper, (parameters, meaning, value) in _HELPERS.items()
            if helper in self.helper_names
        ]
        parts = ['"""A formula found by Shine."""\n\nimport numpy as np\n', *helpers, *reversed(self.bodies), function]
        return "\n\n".join(parts)

    def _formula(self, tree: Tree, name: str) -> str:
        """Text of the formula's function; fills `bodies` with the functions it calls, callers first."""
        self.constants = _constant_functions(tree, self.form)
        names, result = self._body(tree)
        value = written(result, self.form)
        parameters = [names[parameter] for parameter in tree.parameters]
        used: Collection[str] = set()
        if result.value is not None:
            value = f"np.full(np.shape({parameters[0]}), {value})" if parameters else f"np.float64({value})"
        else:
            used = {names[feature] for feature in tree.used_parameters}
            value = f"{value}.copy()" if value in parameters else value
        lines = [
            _docstring(_meaning(tree, names, self.headings)),
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
        """Parameters' names in Python, and the result of a function; its statements go to `lines`."""
        # Locals must not hide a name of the module: existing names are reserved, and later ones avoid `taken`.
        reserved = {"np", *(f"_{helper}" for helper in _HELPERS), *self.function_names.values()}
        names = identifiers(identifier, tree.parameters, reserved)
        self.taken |= set(names.values())
        self.lines, self.numbers, self.local = [], {}, reserved | set(names.values())
        result = self.translate(tree, [word(names[parameter]) for parameter in tree.parameters])
        return names, self.numeric(result)

    def named(self, wanted: str) -> str:
        """A free name for a variable of the function."""
        self.taken.add(name := super().named(wanted))
        return name

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Phrase]) -> Visit:
        """A call of a function of the module."""
        # Not a call: inside it, Python's arithmetic would apply to these numbers, and 1/0 would be an error.
        if any(operand.value is not None for operand in operands) or id(primitive) in self.constants:
            return (yield from self.expanded(definition, operands))
        known = self.function_names.get(id(primitive))
        if known is None:
            known = self.function_names[id(primitive)] = self._free(primitive.name)
            self.primitives.append(primitive)
        return self.shallow(self.call(known, *operands))


def _constant_functions(tree: Tree, form: str) -> set[int]:
    """The `id` of each called primitive whose value depends on no parameter."""
    code, constants = straight_line(tree, form), set[int]()
    identities = {name: identity for identity, name in code.names.items()}
    for name, body in code.functions.items():
        known: list[bool] = []
        for step in body.steps:
            of_constants = not isinstance(step.leaf, str) and all(known[operand] for operand in step.operands)
            known.append(of_constants or id(step.primitive) in constants)
        if known[-1]:
            constants.add(identities[name])
    return constants


def _block(name: str, parameters: Iterable[str], lines: Sequence[str]) -> str:
    return f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)


def _meaning(tree: Tree, names: Mapping[str, str], headings: Headings) -> str:
    """The docstring of the formula's function: the formula itself if it fits."""
    same = all(name == own for name, own in names.items())
    text = str(tree) if same and tree.size < 60 and not tree.assignments else ""
    lines = [
        text if 0 < len(text) < 90 else "Value of the formula for each row; the parameters are arrays, or numbers."
    ]
    renamed = [f"    {own} is {heading}" for own, heading in notes(names, headings).items()]
    if renamed:
        lines += ["", *renamed, "    "]
    return "\n".join(lines)


def _docstring(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}"""'


@takes_models
def python_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A module with the formula as a function of NumPy arrays.

    It imports only NumPy. Functions that the formula calls become functions of the module; deeply nested expressions
    are broken into statements. Its values are those of the reference tier, NaN, infinities and signed zeros included.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    name : str
        Name of the function.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a primitive has no definition, or the text would be too long.
    """
    check_variable(name, "function")
    return Module(name, headings or {}).module(rounded_tree(tree, precision, named=False), name)


@takes_models
def python_expression(tree: Tree, *, precision: Precision = None) -> str:
    """The formula as one NumPy expression of its parameters, which are float64 arrays.

    Assigned values and functions are written out at every use. `np.minimum` and `np.maximum` may return either of 0.0
    and -0.0.

    Raises
    ------
    ExportError
        If a primitive has no definition, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> python_expression(parse("sqrt(a*a + 1) if a > 0 else 0"))
    'np.where(a > 0, np.sqrt(a*a + 1), 0.0)'
    """
    tree, writer = rounded_tree(tree, precision, named=False), Expression()
    names = identifiers(identifier, tree.parameters, {"np"})
    return writer.text(tree, names)
