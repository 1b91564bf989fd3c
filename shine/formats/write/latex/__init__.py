"""Formulas as LaTeX for mathematics mode; the text needs amsmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from shine.formats.write.language import ATOM, Form, Language, binary, comparisons
from shine.formats.write.latex.names import as_text, latex_heading, latex_name, latex_names, operator
from shine.formats.write.printer import Phrase, Printer, phrase, with_opposite, written
from shine.formats.write.sources import Headings, Source, sourced, takes_models
from shine.lang.forms.named_numbers import readable_number
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.forms.visitor import Visit

_BEGIN_CASES = r"\begin{cases} "

_CASES, _OR, _AND, _NOT, _RELATION, _SUM = 0, 1, 2, 3, 3, 4
_BASE = 8
"""Strength that the base of a power needs; fractions, roots and calls bind more weakly."""

_POWERED = frozenset({"sin", "cos", "tan", "sinh", "cosh", "tanh"})
"""Functions whose powers are written after their names; an exponent of -1 would mean the inverse."""


@dataclass(frozen=True, eq=False, slots=True)
class Formula(Phrase):
    """A phrase of LaTeX with the facts that decide how it is written in products and powers.

    Parameters
    ----------
    first, last : str
        What it begins and ends with: a ``digit`` or a ``word``, which would run into a neighbouring one, or a
        ``fraction``, which would read as part of a mixed number after a digit.
    minus_first : bool
        Whether it begins with a minus.
    product : bool
        Whether it is a product, whose factors may join another product.
    function, argument : str, Phrase
        The function that it applies and its argument, if the function's name may carry an exponent.
    """

    first: str = ""
    last: str = ""
    minus_first: bool = False
    product: bool = False
    function: str = ""
    argument: Phrase | None = None


def latex_text(tree: Tree, name: str | None, headings: Headings) -> str:
    """The whole text: one expression, or an `aligned` block with a line a definition."""
    return _Latex(headings).formula(tree, name)


def _symbol(text: str) -> Formula:
    kind = "word" if text.startswith(("{", r"\mathrm", r"\text")) else ""
    return Formula((text,), ATOM, len(text), 0, first=kind, last=kind)


def _minus_first(operand: Phrase) -> bool:
    return operand.opposite is not None or (isinstance(operand, Formula) and operand.minus_first)


def _formula(made: Phrase, first: Phrase | None = None, last: Phrase | None = None) -> Formula:
    """A phrase that begins like its first factor and ends like its last one."""
    return Formula(
        made.parts, made.strength, made.length, made.depth, made.condition, made.value, made.opposite,
        first=first.first if isinstance(first, Formula) else "", last=last.last if isinstance(last, Formula) else "",
    )  # fmt: skip


def _run_together(first: Phrase, second: Phrase) -> bool:
    """Whether two factors need a sign between them."""
    ends = first.last if isinstance(first, Formula) else ""
    begins = second.first if isinstance(second, Formula) else ""
    return begins == "digit" or (ends, begins) in (("digit", "fraction"), ("word", "word"))


_LATEX = Language(
    "LaTeX",
    forms={
        "abs": Form(r"\left|{0}\right|", _BASE),
        "floor": Form(r"\left\lfloor {0}\right\rfloor", _BASE),
        "ceil": Form(r"\left\lceil {0}\right\rceil", _BASE),
        "sqrt": Form(r"\sqrt{{0}}", _BASE - 1),
        "cbrt": Form(r"\sqrt[3]{{0}}", _BASE - 1),
        # Only parentheses show where the operands of a remainder begin and end.
        "mod": Form(r"{0} \bmod {1}", _RELATION, (_BASE - 1, _BASE - 1)),
    },
    conditions={
        **comparisons(
            {"lt": " < ", "le": r" \le ", "gt": " > ", "ge": r" \ge ", "eq": " = ", "ne": r" \ne "}, _RELATION, _SUM
        ),
        "logical_and": binary(r"{0} \land {1}", _AND, 0, 1),
        "logical_or": binary(r"{0} \lor {1}", _OR, 0, 1),
        "logical_not": Form(r"\lnot {0}", _NOT, (_RELATION + 1,), (0,)),
    },
    nonzero=Form(r"{0} \ne 0", _RELATION, (_SUM,)),
    zero=Form("{0} = 0", _RELATION, (_SUM,)),
    # Iverson's bracket: 1 where the condition holds, else 0.
    as_number=Form(r"\left[{0}\right]", conditions=(0,)),
    strengths=(_SUM, _SUM + 1, _SUM, _BASE - 1),
    folds=False,
)


class _Latex(Printer):
    """Writes formulas as they are and computes nothing: a third stays a third."""

    def __init__(self, headings: Headings) -> None:
        super().__init__(_LATEX)
        self.headings = headings
        self.pi = _symbol(r"\pi")
        self.exponential = True
        self.symbols: dict[str, str] = {}
        self.lines: list[tuple[str, Phrase]] = []
        self.primitives: list[Primitive] = []
        self.inside = False

    def formula(self, tree: Tree, name: str | None) -> str:
        """The whole text: one expression, or an `aligned` block with a line a definition."""
        tree, sources = sourced(tree, self.headings, self.form, None)
        self.symbols = latex_names([*tree.parameters, *(assigned for assigned, _ in tree.assignments)], self.headings)
        # e is Euler's number unless a name of the formula looks the same.
        self.exponential = "e" not in self.symbols.values()
        arguments = [_symbol(self.symbols[parameter]) for parameter in tree.parameters]
        result = self.numeric(self.translate(tree, arguments))
        lines = [*self._codes(sources), *self.lines]
        for primitive in self.primitives:  # grows while it is walked
            lines.append(self.definition(primitive))
        if not lines:
            text = written(result, self.form)
            return text if name is None else f"{latex_name(self._free(name))} = {text}"
        lines.append((latex_name(self._free(name or tree.name)), result))
        rows = [f"{left} &= {written(right, self.form)}" for left, right in lines]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _free(self, name: str) -> str:
        """A name for the whole formula that means nothing else in the text: the wanted one, or else y, y_2, ..."""
        others = {operator(primitive.name) for primitive in self.primitives} | set(self.symbols.values())
        taken = others | {latex_name(primitive.name) for primitive in self.primitives}
        wanted = chain([name, "y"], (f"y_{number}" for number in count(2)))
        return next(each for each in wanted if latex_name(each) not in taken)

    def _codes(self, sources: Mapping[str, Source]) -> list[tuple[str, Phrase]]:
        """The lines that define the numbers of texts, except where a heading says them: ``site is A``."""
        lines = []
        for name, source in sources.items():
            if source.kind != "text" or self.headings.get(name, source.heading) != source.heading:
                continue
            column, cases = latex_heading(source.heading), list[str | Phrase]()
            for text, code in source.codes.items():
                cases += [self.number(code), rf" & \text{{if }} {column} = {as_text(text)} \\ "]
            cases[-1] = str(cases[-1]).removesuffix(r" \\ ") + r" \end{cases}"
            lines.append((self.symbols[name], phrase(_BEGIN_CASES, *cases, strength=_CASES)))
        return lines

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        functions = {
            "sin": r"\sin", "cos": r"\cos", "tan": r"\tan", "asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan",
            "sinh": r"\sinh", "cosh": r"\cosh", "tanh": r"\tanh", "log": r"\ln", "log2": r"\log_{2}",
            "log10": r"\log_{10}", "min": r"\min", "max": r"\max", "sign": r"\operatorname{sgn}",
        }  # fmt: skip
        number = self.number
        return {
            **{name: self._function(name, symbol) for name, symbol in functions.items()},
            "floordiv": lambda a, b: self.formed("floor", self.divided(a, b)),
            "pow": self._pow,
            "exp": self._exp,
            "where": self.where,
            "square": lambda a: self._pow(a, number(2)),
            "cube": lambda a: self._pow(a, number(3)),
            "inv": lambda a: self.divided(number(1), a),
            "relu": lambda a: self.rules()["max"](a, number(0)),
            "sigmoid": lambda a: self.divided(number(1), self.add(number(1), self._exp(self.neg(a)))),
            "hypot": lambda a, b: self._root_of(self._pow(a, number(2)), self._pow(b, number(2))),
            "aq": lambda a, b: self.divided(a, self._root_of(number(1), self._pow(b, number(2)))),
            "log1p": lambda a: self.rules()["log"](self.add(number(1), a)),
            "expm1": lambda a: self.sub(self._exp(a), number(1)),
            "protected_sqrt": lambda a: self.formed("sqrt", self.formed("abs", a)),
        }

    def number(self, value: int | float) -> Phrase:
        made = super().number(value)
        if made.opposite is None:
            return made
        # A negative number begins with a minus, so its power needs parentheses.
        return replace(_formula(made, None, made.opposite), parts=("-", made.opposite), value=float(value))

    def positive(self, value: int | float) -> Phrase:
        if not math.isfinite(value):
            return _symbol(r"\mathrm{NaN}" if math.isnan(value) else r"\infty")
        mantissa, _, exponent = readable_number(float(value), named=False).partition("e")
        power = rf"10^{{{int(exponent)}}}" if exponent else ""
        text = power if power and mantissa == "1" else mantissa + (rf" \cdot {power}" if power else "")
        strength = self.product if exponent else ATOM
        return Formula((text,), strength, len(text), 0, first="digit", last="digit")

    def enclosed(self, operand: Phrase, minimum: int) -> Phrase:
        if operand.strength >= minimum:
            return operand
        return phrase(r"\left(", operand, r"\right)")

    def call(self, name: str, *operands: Phrase) -> Phrase:
        parts: list[str | Phrase] = [name, r"\left("]
        for position, operand in enumerate(operands):
            parts += [", "] * (position > 0) + [self.numeric(operand)]
        return phrase(*parts, r"\right)", strength=_BASE - 1)

    def _function(self, name: str, symbol: str) -> Callable[..., Phrase]:
        def rule(*operands: Phrase) -> Phrase:
            made = _formula(self.call(symbol, *operands))
            return replace(made, function=symbol, argument=self.numeric(operands[0])) if name in _POWERED else made

        return rule

    def _root_of(self, left: Phrase, right: Phrase) -> Phrase:
        return self.formed("sqrt", self.add(left, right))

    def neg(self, operand: Phrase) -> Phrase:
        number = self.numeric(operand)
        enclosed = number if number.strength > self.sum and number.opposite is None else self.enclosed(number, ATOM + 1)
        return with_opposite(phrase("-", enclosed, strength=self.unary), number)

    def infix(self, left: Phrase, symbol: str, right: Phrase, strength: int) -> Phrase:
        first, second = self.operand(left, strength), self.numeric(right)
        # An added sum needs no parentheses; a subtracted one does.
        joins = symbol == " + " and second.strength == self.sum and not _minus_first(second)
        made = phrase(first, symbol, second if joins else self.enclosed(second, strength + 1), strength=strength)
        return replace(_formula(made), minus_first=_minus_first(first))

    def multiplied(self, left: Phrase, right: Phrase) -> Phrase:
        if left.simple and right.simple and left.value is None and left.parts == right.parts:
            return self._pow(left, self.number(2))
        first = self._factor(left, self.product)
        second = self._factor(right, self.product + 1)
        made = phrase(first, r" \cdot " if _run_together(first, second) else " ", second, strength=self.product)
        return replace(_formula(made, first, second), minus_first=_minus_first(first), product=True)

    def _factor(self, operand: Phrase, minimum: int) -> Phrase:
        number = self.numeric(operand)
        # Only the first factor may begin with a minus; then the product does, too.
        if number.opposite is not None and minimum == self.product and number.strength >= self.unary:
            return number
        if isinstance(number, Formula) and number.product and not number.minus_first:
            return number
        return self.enclosed(number, minimum)

    def divided(self, left: Phrase, right: Phrase) -> Phrase:
        made = _formula(phrase(r"\frac{", self.numeric(left), "}{", self.numeric(right), "}", strength=_BASE - 1))
        return replace(made, first="fraction")

    def div(self, left: Phrase, right: Phrase) -> Phrase:
        if right.value is not None and right.opposite is not None:
            left, right = self.negated(left), right.opposite
        numerator = self.numeric(left)
        if numerator.opposite is None:
            return self.divided(numerator, right)
        positive = self.divided(numerator.opposite, right)
        return with_opposite(phrase("-", positive, strength=self.unary), positive)

    def _pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        value = exponent.value
        if (
            isinstance(base, Formula)
            and base.function
            and base.argument
            and value is not None
            and value in range(2, 10)
        ):
            parts = base.function, f"^{{{int(value)}}}", r"\left(", base.argument, r"\right)"
            return phrase(*parts, strength=_BASE - 1)
        made = phrase(self.operand(base, _BASE), "^{", self.numeric(exponent), "}", strength=self.power)
        return _formula(made, base if base.strength >= _BASE else None)

    def _exp(self, exponent: Phrase) -> Phrase:
        if not self.exponential:
            return self.call(r"\exp", exponent)
        return phrase("e^{", self.numeric(exponent), "}", strength=self.power)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        parts = self.numeric(yes), r" & \text{if } ", self.truth(condition), r" \\ "
        # A condition in the place of "otherwise" has further rows of the same cases.
        rest = no.parts[1:] if no.parts[0] == _BEGIN_CASES else (self.numeric(no), r" & \text{otherwise} \end{cases}")
        return phrase(_BEGIN_CASES, *parts, *rest, strength=_CASES)

    def assigned(self, name: str, value: Phrase) -> Phrase:
        # Names in a function that is written out in place would mean something else at every call.
        if self.inside or value.simple:
            return value
        symbol = self.symbols[name]
        self.lines.append((symbol, value))
        return replace(_symbol(symbol), condition=value.condition)

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Phrase]) -> Visit:
        if not any(known is primitive for known in self.primitives):
            self.primitives.append(primitive)
        return self.call(operator(primitive.name), *operands)
        yield

    def definition(self, primitive: Primitive) -> tuple[str, Phrase]:
        """The line that defines a function: its left and right side."""
        assert primitive.definition is not None
        symbols = latex_names(primitive.definition.parameters, {})
        arguments = [_symbol(symbol) for symbol in symbols.values()]
        self.inside = True
        self.exponential = "e" not in symbols.values()
        result = self.numeric(self.translate(primitive.definition, arguments))
        return written(self.call(operator(primitive.name), *arguments), self.form), result


@takes_models
def latex(tree: Tree, name: str | None = None, *, headings: Headings | None = None, precision: Precision = None) -> str:
    r"""The formula in LaTeX's mathematics mode.

    Names of several letters are upright, Greek letters are recognized, and the part after an underscore, or a number
    at the end, is a subscript. If the formula has assignments or calls the user's own functions, the text is an
    `aligned` block with a line for each of them.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    name : str, optional
        The left side; nothing by default, or the formula's own name in an `aligned` block.

    Raises
    ------
    ExportError
        If a primitive has no definition, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(latex(parse("alpha*x1**2/(speed + 1)")))
    \frac{\alpha x_{1}^{2}}{\mathrm{speed} + 1}
    >>> print(latex(parse("3*area"), headings={"area": "my area (m²)"}))
    3 {\text{my area (m}^{2}\text{)}}
    """
    return latex_text(rounded_tree(tree, precision), name, headings or {})
