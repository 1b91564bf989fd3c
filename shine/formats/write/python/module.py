"""Formulas as Python modules: a function of NumPy arrays for the formula, and one for each function it calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from shine.formats.write.expressions.phrases import Phrase, word, written
from shine.formats.write.expressions.translation import composites
from shine.formats.write.headings import Headings
from shine.formats.write.python.expression import Expression
from shine.formats.write.python.names import identifier, identifiers, numbered
from shine.formats.write.sources import notes
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.forms.visitor import Visit

DEEPEST = 24
"""Levels of nesting at which an expression is broken into statements; Python's own parser takes about 90."""

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


class Module(Expression):
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

    form = "Python"

    def __init__(self, name: str, headings: Headings, taken: Collection[str] = ()) -> None:
        super().__init__()
        self.headings = headings
        self.taken = {"np", name, *taken}
        self.helper_names: dict[str, str] = {}
        self.function_names: dict[int, str] = {}
        self.constants: set[int] = set()
        self.primitives: list[Primitive] = []
        self.bodies: list[str] = []
        self.lines: list[str] = []
        self.numbers: dict[str, int] = {}
        self.local: set[str] = set()

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

    def text(self, tree: Tree, name: str) -> str:
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
        names = identifiers(tree.parameters, reserved)
        self.taken |= set(names.values())
        self.lines, self.numbers, self.local = [], {}, reserved | set(names.values())
        result = self.translate(tree, [word(names[parameter]) for parameter in tree.parameters])
        return names, self.numeric(result)

    def assigned(self, name: str, value: Phrase) -> Phrase:
        """A variable of the function, unless the value is short."""
        return value if value.simple else self._statement(name, value)

    def _statement(self, wanted: str, value: Phrase) -> Phrase:
        name = numbered(wanted, self.local, self.numbers)
        self.local.add(name)
        self.taken.add(name)
        self.lines.append(f"{name} = {written(value, self.form)}")
        return word(name, condition=value.condition)

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive, broken into statements if it is deep."""
        return self._shallow(super().apply(name, *operands))

    def _shallow(self, made: Phrase) -> Phrase:
        return made if made.depth < DEEPEST else self._statement("step", made)

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Phrase]) -> Visit:
        """A call of a function of the module."""
        # Not a call: inside it, Python's arithmetic would apply to these numbers, and 1/0 would be an error.
        if any(operand.value is not None for operand in operands) or id(primitive) in self.constants:
            return (yield from self.expanded(definition, operands))
        known = self.function_names.get(id(primitive))
        if known is None:
            known = self.function_names[id(primitive)] = self._free(primitive.name)
            self.primitives.append(primitive)
        return self._shallow(self.call(known, *operands))


def _constant_functions(tree: Tree, form: str) -> set[int]:
    """The `id` of each called primitive whose value depends on no parameter."""
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
