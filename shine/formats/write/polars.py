"""Formulas as expressions of Polars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping

import numpy as np

from shine.data.files.dates import UNITS
from shine.formats.write.infix import Corrected, Phrase, phrase, word, written
from shine.formats.write.python import COMPARISON, Operators, identifiers, numbered
from shine.formats.write.sources import Headings, Source, sourced, takes_models
from shine.lang.forms.names import check_variable
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

DEEPEST = 24
"""Levels of nesting at which an expression is broken into statements; Python's own parser takes about 90."""


@takes_models
def polars_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """Python source that builds a Polars expression, which finds the columns by their headings.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the variable that holds the expression, for ``frame.select(f)``.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature; the names of the features by default.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a primitive has no definition, the text would be too long, or two columns have one heading.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(polars_source(parse("2.5*area"), headings={"area": "my area (m²)"}))
    import polars as pl
    <BLANKLINE>
    area = pl.col('my area (m²)').cast(pl.Float64)
    f = (2.5*area).alias('f')
    <BLANKLINE>
    """
    check_variable(name, "variable")
    tree, sources = sourced(rounded_tree(tree, precision, named=False), headings, "Polars")
    names = identifiers(sources, {"pl", name})
    writer = _Polars({"pl", name, *names.values()})
    arguments = [word(names.get(feature, "None")) for feature in tree.parameters]
    result = writer.numeric(writer.translate(tree, arguments))
    lines = [f"{names[feature]} = {_number(source)}" for feature, source in sources.items()]
    # Without a name, the result would have that of a column that is in it.
    whole = written(writer.atom(result), writer.form)
    return "\n".join(["import polars as pl", "", *lines, *writer.lines, f"{name} = {whole}.alias({name!r})", ""])


def _number(source: Source) -> str:
    """The number of a column."""
    column = f"pl.col({_column(source.heading)})"
    if source.kind == "text":
        made = f"{column}.cast(pl.String).replace_strict({dict(source.codes)!r}, default=None, return_dtype=pl.Float64)"
        if source.mean is None:
            return made
        return f"pl.when({column}.is_null()).then({source.mean!r}).otherwise({made})"
    if source.kind == "date":
        since = f"pl.lit({str(np.datetime64(source.origin, 's'))!r}).str.to_datetime(time_unit='us')"
        column = f"({column}.cast(pl.Datetime('us')) - {since}).dt.total_microseconds()/{UNITS[source.unit]}"
    elif source.kind == "duration":
        column = f"{column}.cast(pl.Duration('us')).dt.total_microseconds()/{UNITS[source.unit]}"
    if source.kind in ("date", "duration"):
        column = f"({column})"
    made = f"{column}.cast(pl.Float64)"
    if source.marks:
        made += f".replace({dict.fromkeys(source.marks)!r})"
    return made if source.mean is None else f"{made}.fill_nan(None).fill_null({source.mean!r})"


def _column(heading: str) -> str:
    """A column's heading for `pl.col`, which reads ``*`` and ``^...$`` as patterns."""
    is_pattern = heading == "*" or (heading.startswith("^") and heading.endswith("$"))
    return repr(f"^{re.escape(heading)}$" if is_pattern else heading)


class _Polars(Operators, Corrected):
    """Writes expressions of Polars. Conditions are expressions of booleans until they are needed as numbers."""

    form = "Polars"

    def __init__(self, taken: Collection[str]) -> None:
        super().__init__()
        self.taken, self.numbers = set(taken), dict[str, int]()
        self.lines: list[str] = []

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The expression of each primitive."""
        methods = {
            "abs": "abs", "sqrt": "sqrt", "exp": "exp", "log": "log", "floor": "floor", "ceil": "ceil", "sign": "sign",
            "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
            "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "cbrt": "cbrt", "log1p": "log1p", "log10": "log10",
        }  # fmt: skip
        return {
            **super().table(),
            **{name: self._method(method) for name, method in methods.items()},
            "min": self._extreme("<"),
            "max": self._extreme(">"),
            "log2": lambda a: phrase(self.atom(a), ".log(2)"),
            "expm1": self.expm1,
            "hypot": self.hypot,
        }

    def positive(self, value: int | float) -> Phrase:
        """The phrase of a number that is not negative, or NaN."""
        return word(repr(float(value)) if math.isfinite(value) else f"float({str(float(value))!r})")

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number: a condition becomes 1.0 or 0.0."""
        return self.where(operand, self.number(1.0), self.number(0.0)) if operand.condition else operand

    def atom(self, operand: Phrase) -> Phrase:
        """An operand as a number that a method can follow."""
        if operand.value is not None:
            return phrase("pl.lit(", operand, ")")
        return self.operand(operand, self.power + 1)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """`pl.when`; one of the operands if the condition is a number."""
        if condition.value is not None:
            return self.numeric(yes if condition.value != 0 else no)
        test, yes, no = self.truth(condition), self.numeric(yes), self.numeric(no)
        return self._shallow(phrase("pl.when(", test, ").then(", yes, ").otherwise(", no, ")"))

    def assigned(self, name: str, value: Phrase) -> Phrase:
        """A variable, unless the value is short."""
        return value if value.simple else self._statement(name, value)

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive, broken into statements if it is deep."""
        return self._shallow(super().apply(name, *operands))

    def _shallow(self, made: Phrase) -> Phrase:
        return made if made.depth < DEEPEST else self._statement("step", made)

    def _statement(self, wanted: str, value: Phrase) -> Phrase:
        name = numbered(wanted, self.taken, self.numbers)
        self.taken.add(name)
        self.lines.append(f"{name} = {written(value, self.form)}")
        return word(name, condition=value.condition)

    def _method(self, method: str) -> Callable[[Phrase], Phrase]:
        return lambda operand: phrase(self.atom(operand), f".{method}()")

    def _extreme(self, symbol: str) -> Callable[[Phrase, Phrase], Phrase]:
        ahead = self.comparison(f" {symbol} ", COMPARISON)

        def rule(left: Phrase, right: Phrase) -> Phrase:
            left, right = self.numeric(left), self.numeric(right)
            # Polars takes NaN for the greatest number.
            ways = [ahead(left, right)]
            if left.value is None and symbol == "<":
                ways.append(self._is_nan(left))
            chosen = ways[0] if len(ways) == 1 else self.either(*ways)
            if right.value is None:
                chosen = self.both(chosen, phrase("~", self._is_nan(right), strength=self.unary, condition=True))
            return self.where(chosen, left, right)

        return rule

    def _is_nan(self, operand: Phrase) -> Phrase:
        return phrase(self.atom(operand), ".is_nan()", condition=True)
