"""Formulas as expressions of Polars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from shine.data.files.dates import UNITS
from shine.formats.write.language import Form, Language, identifiers
from shine.formats.write.printer import Corrected, Phrase, phrase, word, written
from shine.formats.write.python import CONDITIONS, NONZERO, OPERATORS, ZERO, Assigning, identifier
from shine.formats.write.sources import Headings, Source, sourced, takes_models
from shine.lang.forms.names import check_variable
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree


@takes_models
def polars_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """Python source that builds a Polars expression, which finds the columns by their headings.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    name : str
        Name of the variable that holds the expression, for ``frame.select(f)``.

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
    names = identifiers(identifier, sources, {"pl", name})
    writer = _Polars(_POLARS, {"pl", name, *names.values()})
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


METHODS = "abs sqrt exp log floor ceil sign sin cos tan sinh cosh tanh cbrt log1p log10"

_POLARS = Language(
    "Polars",
    forms={**OPERATORS, "where": Form("pl.when({0}).then({1}).otherwise({2})", conditions=(0,))},
    conditions=CONDITIONS,
    nonzero=NONZERO,
    zero=ZERO,
    as_number=Form("pl.when({0}).then(1.0).otherwise(0.0)", conditions=(0,)),
    number=lambda value: repr(float(value)) if math.isfinite(value) else f"float({str(float(value))!r})",
)


class _Polars(Assigning, Corrected):
    """Writes expressions of Polars. Conditions are expressions of booleans until they are needed as numbers."""

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The expression of each primitive."""
        methods = {name: name for name in METHODS.split()} | {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
        pow = partial(self.formed, "pow")
        return {
            **{name: self._method(method) for name, method in methods.items()},
            "square": lambda a: pow(a, self.number(2)),
            "cube": lambda a: pow(a, self.number(3)),
            "where": self.where,
            "min": self._extreme("lt"),
            "max": self._extreme("gt"),
            "log2": lambda a: phrase(self.atom(a), ".log(2)"),
            "expm1": self.expm1,
            "hypot": self.hypot,
        }

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number: a condition becomes 1.0 or 0.0."""
        return self.shallow(super().numeric(operand)) if operand.condition else operand

    def atom(self, operand: Phrase) -> Phrase:
        """An operand as a number that a method can follow."""
        if operand.value is not None:
            return phrase("pl.lit(", operand, ")")
        return self.operand(operand, self.power + 1)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """`pl.when`; one of the operands if the condition is a number."""
        if condition.value is not None:
            return self.numeric(yes if condition.value != 0 else no)
        return self.shallow(self.formed("where", condition, yes, no))

    def _method(self, method: str) -> Callable[[Phrase], Phrase]:
        return lambda operand: phrase(self.atom(operand), f".{method}()")

    def _extreme(self, name: str) -> Callable[[Phrase, Phrase], Phrase]:
        def rule(left: Phrase, right: Phrase) -> Phrase:
            left, right = self.numeric(left), self.numeric(right)
            # Polars takes NaN for the greatest number.
            chosen = self.formed(name, left, right)
            if left.value is None and name == "lt":
                chosen = self.formed("logical_or", chosen, self._is_nan(left))
            if right.value is None:
                chosen = self.formed("logical_and", chosen, self.formed("logical_not", self._is_nan(right)))
            return self.where(chosen, left, right)

        return rule

    def _is_nan(self, operand: Phrase) -> Phrase:
        return phrase(self.atom(operand), ".is_nan()", condition=True)
