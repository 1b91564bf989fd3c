"""Tree -> an SQL expression over the columns of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shine.base.errors import ExportError
from shine.data.files.dates import UNITS
from shine.formats.write.language import SPACED, Form, Language, binary, calls, comparisons
from shine.formats.write.printer import Corrected, Phrase, phrase, word, written
from shine.formats.write.sources import Headings, Source, sourced, takes_models, with_preparation
from shine.lang.forms.names import shown, value_text
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation


def source_sql(source: Source, column: str, dialect: str) -> str:
    """An SQL expression of a number; NULL where the model would have no number.

    Parameters
    ----------
    source : Source
    column : str
        SQL text of the table's column: numbers, texts, timestamps or dates, intervals or times of day.
    dialect : str
        See `shine.formats.write.sql.sql_expression`.

    Raises
    ------
    ExportError
        If the database has no such values.
    """
    text = _WRITERS[source.kind](source, column, dialect)
    if dialect == "sqlite" and source.kind == "number" and (source.marks or source.mean is not None):
        text = _real(text)
    for mark in source.marks:
        text = f"NULLIF({text}, {_written(mark, dialect)})"
    # A text that is not known has no number either, but is not missing.
    return (
        text if source.mean is None or source.kind == "text" else f"COALESCE({text}, {_written(source.mean, dialect)})"
    )


def prepared_notes(sources: Iterable[Source], dialect: str) -> list[str]:
    """Notes on the columns that an expression reads: a line for each date and duration."""
    written = "texts such as 2023-12-31" if dialect == "sqlite" else "of type DATE or TIMESTAMP"
    forms = {"date": f"dates, {written}", "duration": "of type TIME or INTERVAL"}
    headings = {source.heading: source.kind for source in sources if source.kind in forms}
    return [
        f"the expression takes the values of column {heading!r} to be {forms[kind]}"
        for heading, kind in headings.items()
    ]


def _text(source: Source, column: str, dialect: str) -> str:
    texts: dict[float, list[str]] = {}
    for text, code in source.codes.items():
        texts.setdefault(code, []).append(_quoted(text))
    if len(texts) == len(source.codes) and source.mean is None:
        cases = " ".join(f"WHEN {each[0]} THEN {_written(code, dialect)}" for code, each in texts.items())
        return f"CASE {column} {cases} END"
    cases = " ".join(f"WHEN {column} {_one_of(each)} THEN {_written(code, dialect)}" for code, each in texts.items())
    missing = "" if source.mean is None else f" WHEN {column} IS NULL THEN {_written(source.mean, dialect)}"
    return f"CASE {cases}{missing} END"


def _written(number: float, dialect: str) -> str:
    # DuckDB reads a number without an exponent as a decimal.
    text = repr(number)
    return f"{text}E0" if dialect == "duckdb" and "e" not in text and not number.is_integer() else text


def _one_of(texts: list[str]) -> str:
    return f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"


def _date(source: Source, column: str, dialect: str) -> str:
    origin = str(np.datetime64(source.origin, "s")).replace("T", " ")
    if dialect != "sqlite":
        return _in_unit(f"EXTRACT(EPOCH FROM CAST({column} AS TIMESTAMP) - TIMESTAMP '{origin}')", source.unit)
    # Dates are texts in ISO 8601 there.
    if source.unit == "days":
        return f"(JULIANDAY({column}) - JULIANDAY('{origin}'))"
    # Whole seconds are exact, unlike fractions of days.
    whole = f"STRFTIME('%s', {column}) - STRFTIME('%s', '{origin}')"
    return _in_unit(f"({whole} + STRFTIME('%f', {column}) - STRFTIME('%S', {column}))", source.unit)


def _duration(source: Source, column: str, dialect: str) -> str:
    if dialect == "sqlite":
        raise ExportError(
            f"SQL (sqlite) has no durations; make a column of {source.unit} from {source.heading!r}, and name it with "
            "columns={...}"
        )
    return _in_unit(f"EXTRACT(EPOCH FROM CAST({column} AS INTERVAL))", source.unit)


_WRITERS = {
    "number": lambda source, column, dialect: column,
    "truth": lambda source, column, dialect: column if dialect == "sqlite" else f"CAST({column} AS INTEGER)",
    "text": _text,
    "date": _date,
    "duration": _duration,
}
"""The writer of each kind of column."""


def _in_unit(seconds: str, unit: str) -> str:
    return f"({seconds} / {UNITS[unit] / UNITS['seconds']!r})"


def _quoted(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


_OR, _AND, _COMPARISON, _SUM = range(1, 5)

DIALECTS = ("standard", "sqlite", "postgres", "duckdb")
"""Known dialects; PostgreSQL understands the standard one."""

DEEPEST: dict[str, int] = {"sqlite": 1000, "duckdb": 1000}
"""Levels of nesting that an expression may have, for databases with a limit."""

CASELESS = frozenset({"sqlite", "duckdb"})
"""Dialects in which even quoted names differ by more than the case of their letters."""

NAMELESS = frozenset({"sqlite"})
"""Dialects in which a column may have an empty name."""

_RESERVED = """
    add all alter analyse analyze and anti any array as asc asof asymmetric at authorization begin between bigint
    binary bit boolean both by call case cast char character check coalesce collate collation column columns commit
    concurrently constraint create cross cube current current_catalog current_date current_role current_schema
    current_time current_timestamp current_user date day dec decimal default deferrable delete desc describe
    distinct do double drop else end escape except exists extract false fetch filter first float for foreign freeze
    from full function generated glob grant greatest group grouping having hour if ilike in index initially inner
    inout insert int integer intersect interval into is isnull join lambda last lateral leading least left like
    limit localtime localtimestamp map match minute month national natural nchar none normalize not nothing notnull
    null nullif numeric of offset on only option or order out outer over overlaps overlay pivot pivot_longer
    pivot_wider placing position positional precision primary qualify raise real references regexp returning right
    rollback row rows second select semi session_user set setof show similar smallint some struct substring
    summarize symmetric system_user table tablesample then time timestamp to trailing transaction treat trim true
    try_cast tuple union unique unpack unpivot update user using values varchar variadic verbose view virtual when
    where window with within without year
"""
RESERVED = frozenset(_RESERVED.split())
"""Words that need quotes as column names, in SQL or in one of the dialects."""


@takes_models
def sql_expression(
    tree: Tree,
    columns: Mapping[str, str] | None = None,
    *,
    dialect: str = "standard",
    headings: Headings | None = None,
    preparation: Preparation | None = None,
    precision: Precision = None,
) -> str:
    """The formula as an SQL expression.

    Assigned values and functions are written out at every use. NULL stands for NaN: arithmetic with NULL gives NULL,
    and comparisons with it are false.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    columns : mapping of str to str, optional
        SQL text of each feature, or of the column that it is made of, copied as it is. By default the
        column with the feature's heading; headings that are not lower case, or are reserved words, get quotes.
        Columns hold double precision; integers work, too.
    dialect : {"standard", "sqlite", "postgres", "duckdb"}
    preparation : Preparation, optional
        How columns of the user's table became numbers; models know theirs. The expression reads the columns and makes
        the numbers itself. Missing values are NULL, dates are dates, timestamps or, in SQLite, texts in ISO 8601.

    Raises
    ------
    ValueError
        If the dialect is unknown, or `columns` lacks a feature of the formula.
    ExportError
        If a primitive has no definition, the formula is too long or too deeply nested for the database, or the database
        cannot have a column with a heading, or not beside another one.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> sql_expression(parse("log(speed)*2 + Mass**0.5"))
    '2.0 * LN(speed) + POWER("Mass", 0.5)'
    >>> sql_expression(parse("2*unit_price"), headings={"unit_price": "unit price (€)"})
    '2.0 * "unit price (€)"'
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {value_text(dialect)}; use one of {', '.join(DIALECTS)}")
    headings = headings if preparation is None else with_preparation(headings, preparation)
    form, same = f"SQL ({dialect})", _in_lower_case if dialect in CASELESS else str
    tree, sources = sourced(rounded_tree(tree, precision, named=False), headings, form, None if columns else same)
    texts = {name: _number(name, source, columns, form, dialect) for name, source in sources.items()}
    writer = _Sql(dialect)

    def result_of(texts: Mapping[str, str]) -> Phrase:
        # Features that the formula does not use have no text, and need none.
        return writer.numeric(writer.translate(tree, [word(texts.get(name, "NULL")) for name in tree.parameters]))

    result = result_of(texts)
    if dialect == "sqlite" and _COMPARING.search(written(result, writer.form)):
        numbers = {name for name, source in sources.items() if source.kind == "number"}
        result = result_of({name: _real(text) if name in numbers else text for name, text in texts.items()})
    deepest = DEEPEST.get(dialect)
    if deepest is not None and result.depth > deepest:
        raise ExportError(f"the formula is nested {result.depth} levels deep; {dialect} allows {deepest}")
    return written(result, writer.form)


_COMPARING = re.compile(r"\b(?:CASE|MIN|MAX)\b")
"""Comparisons. Columns of SQLite's ``.import`` are texts: arithmetic turns them into numbers, comparisons do not."""


def _real(text: str) -> str:
    return f"CAST({text} AS REAL)"


def _number(name: str, source: Source, columns: Mapping[str, str] | None, form: str, dialect: str) -> str:
    """SQL text of a number that a formula uses."""
    if columns is None:
        return source_sql(source, _checked(source.heading, source.name, form, dialect), dialect)
    if name in columns and (name != source.name or source.kind == "number"):
        return columns[name]
    if source.name not in columns:
        raise ValueError(f"columns lacks the feature {source.name!r}; it has {', '.join(columns)}")
    return source_sql(source, columns[source.name], dialect)


def _checked(heading: str, name: str, form: str, dialect: str) -> str:
    """A column's name in an expression, if the database can have such a column."""
    if "\0" in heading or (not heading and dialect not in NAMELESS):
        problem = "with a NUL character" if heading else "without a name"
        raise ExportError(f"{form} has no column {problem}; name the column of {shown(name)} with columns={{...}}")
    return quoted(heading)


def _in_lower_case(text: str) -> str:
    """A text as databases compare names: only the letters of ASCII have two cases."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def quoted(name: str) -> str:
    """A column's name in an expression, in quotes if it needs them."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in RESERVED:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_SAME = "sqrt exp sin cos tan asin acos atan sinh cosh tanh log10 sign abs floor ceil min max"

_SQL = Language(
    "SQL",
    forms={
        **calls(_SAME, str.upper, log="LN", pow="POWER"),
        "where": Form("CASE WHEN {0} THEN {1} ELSE {2} END", conditions=(0,)),
    },
    conditions={
        **comparisons({**SPACED, "eq": " = "}, _COMPARISON, _SUM),
        "logical_and": binary("{0} AND {1}", _AND, 0, 1),
        "logical_or": binary("{0} OR {1}", _OR, 0, 1),
    },
    times=" * ",
    over=" / ",
)


class _Sql(Corrected):
    """A condition in SQL can be unknown, which counts as false here.

    The opposite of a condition holds where the condition is false or unknown: NULL, like NaN, is not 0.
    """

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        super().__init__(_SQL)

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        own: dict[str, Callable[..., Phrase]] = {
            "add": self.add, "sub": self.sub, "mul": self.mul, "div": self.div, "neg": self.neg,
            "floordiv": self._floordiv, "mod": self._mod, "square": self.squared, "cbrt": self._cbrt,
            "log1p": self.log1p, "expm1": self.expm1, "hypot": self.hypot,
        }  # fmt: skip
        if self.dialect != "sqlite":
            own |= {"min": self._extreme("lt", "ge"), "max": self._extreme("gt", "le")}
        own = {**{name: partial(self.formed, name) for name in _SQL.forms}, **own}
        alike, either = ("abs", "floor", "ceil", "neg", "mod", "min", "max", "square"), ("add", "sub", "mul")
        reals = {**dict.fromkeys(alike, all), **dict.fromkeys(either, any)}
        return {
            **{name: self._real(rule, reals.get(name)) for name, rule in own.items()},
            "ne": lambda a, b: self._opposite(self.rules()["eq"](a, b)),
            "sign": partial(self.formed, "sign"),
            "logical_not": lambda a: self._opposite(self.truth(a)),
            "where": self.where,
        }

    def _real(
        self, rule: Callable[..., Phrase], test: Callable[[Iterable[bool]], bool] | None
    ) -> Callable[..., Phrase]:
        """The rule of real numbers; `test` says from those of the operands whether it is one, by default it is."""

        def made(*operands: Phrase) -> Phrase:
            real = test is None or test(self.numeric(operand).real for operand in operands)
            return replace(rule(*operands), real=real)

        return made

    def number(self, value: int | float) -> Phrase:
        return replace(super().number(value), real=True)

    def positive(self, value: int | float) -> Phrase:
        number = float(value)
        if math.isnan(number):
            return word(
                {"postgres": "CAST('NaN' AS DOUBLE PRECISION)", "duckdb": "'NaN'::DOUBLE"}.get(self.dialect, "NULL")
            )
        if math.isinf(number):
            infinity = {"sqlite": "9E999", "duckdb": "'Infinity'::DOUBLE"}
            return word(infinity.get(self.dialect, "CAST('Infinity' AS DOUBLE PRECISION)"))
        text = repr(number).upper()
        # DuckDB reads a number without an exponent as a decimal, which overflows after 38 digits.
        return word(f"{text}E0" if self.dialect == "duckdb" and "E" not in text else text)

    def numeric(self, operand: Phrase) -> Phrase:
        return self.where(operand, self.number(1.0), self.number(0.0)) if operand.condition else operand

    def truth(self, operand: Phrase) -> Phrase:
        """An operand as a condition: whether a number is not 0."""
        if operand.condition:
            return operand
        return self._opposite(self.rules()["eq"](operand, self.number(0)))

    def _opposite(self, condition: Phrase) -> Phrase:
        if condition.opposite is not None:
            return condition.opposite
        made = phrase("(", condition, ") IS NOT TRUE", strength=_COMPARISON, condition=True)
        return replace(made, opposite=condition)

    def divided(self, left: Phrase, right: Phrase) -> Phrase:
        left, right = self.numeric(left), self.numeric(right)
        if not left.real and not right.real:
            # Most databases truncate the quotient of integers.
            left = phrase("CAST(", left, " AS DOUBLE PRECISION)")
        return super().divided(left, right)

    def squared(self, base: Phrase) -> Phrase:
        return self.infix(base, " * ", base, self.product) if base.simple else self.call("POWER", base, self.number(2))

    def _remainder(self, left: Phrase, right: Phrase) -> Phrase | None:
        """The exact remainder, with the sign of the dividend; None if the database lacks it."""
        return self.call("MOD", left, right) if self.dialect in ("sqlite", "duckdb") else None

    def _other_sign(self, remainder: Phrase, right: Phrase) -> Phrase:
        if right.value is not None and right.value > 0:
            return phrase(remainder, " < 0", strength=_COMPARISON, condition=True)
        return phrase(
            self.call("SIGN", remainder), " = -", self.call("SIGN", right), strength=_COMPARISON, condition=True
        )

    def _mod(self, left: Phrase, right: Phrase) -> Phrase:
        remainder = self._remainder(left, right)
        if remainder is None:
            quotient = self.call("FLOOR", self.div(left, right))
            return self.infix(left, " - ", self.infix(right, " * ", quotient, self.product), self.sum)
        moved = self.infix(remainder, " + ", right, self.sum)
        return self.where(self._other_sign(remainder, right), moved, remainder)

    def _floordiv(self, left: Phrase, right: Phrase) -> Phrase:
        remainder = self._remainder(left, right)
        if remainder is None:
            return self.call("FLOOR", self.div(left, right))
        whole = self.call(
            "ROUND", self.divided(self.infix(left, " - ", replace(remainder, real=True), self.sum), right)
        )
        lower = self.infix(whole, " - ", self.number(1), self.sum)
        return self.where(self._other_sign(remainder, right), lower, whole)

    def _extreme(self, before: str, after: str) -> Callable[[Phrase, Phrase], Phrase]:
        def rule(left: Phrase, right: Phrase) -> Phrase:
            # LEAST and GREATEST ignore NULL.
            left, right = self.numeric(left), self.numeric(right)
            first, second = self.formed(before, left, right), self.formed(after, left, right)
            return phrase("CASE WHEN ", first, " THEN ", left, " WHEN ", second, " THEN ", right, " END")

        return rule

    def _cbrt(self, operand: Phrase) -> Phrase:
        if self.dialect in ("postgres", "duckdb"):
            return self.call("CBRT", operand)
        power = self.call("POWER", self.call("ABS", operand), self.number(1 / 3))
        return self.infix(self.call("SIGN", operand), " * ", power, self.product)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        condition, yes, no = self.truth(condition), self.numeric(yes), self.numeric(no)
        if condition.opposite is not None:
            condition, yes, no = condition.opposite, no, yes
        return replace(self.formed("where", condition, yes, no), real=yes.real and no.real)
