"""Tree -> a formula for a cell of Excel, LibreOffice or Google Sheets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from shine.base.errors import ExportError
from shine.data.files.dates import UNITS
from shine.formats.write.language import ATOM, SIGNS, Form, Language, calls, comparisons
from shine.formats.write.printer import Corrected, Phrase, phrase, word, written
from shine.formats.write.sources import Headings, Source, sourced, sources_of, takes_models
from shine.lang.forms.names import shown
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

LONGEST = 8192
"""Longest formula that Excel takes, in characters."""

DEEPEST = 64
"""Levels of nested functions and parentheses that Excel takes."""

MOST_TEXTS = 127
"""Most cases that `IFS` takes."""

LONGEST_TEXT = 255
"""Longest text within a formula that Excel takes, in characters."""

_DAY_ZERO, _FIRST_DATE = np.datetime64("1899-12-30", "s"), np.datetime64("1900-03-01", "s")
"""The day that Excel's dates count from; before 1900-03-01 they are off by one."""

_COMPARISON, _SUM, _PRODUCT, _POWER, _SIGN = range(1, 6)


@takes_models
def excel_formula(
    tree: Tree,
    cells: Mapping[str, str] | Literal["table"] | None = None,
    *,
    headings: Headings | None = None,
    precision: Precision = None,
) -> str:
    """The formula for a cell, beginning with ``=``.

    Assigned values and functions are written out at every use.

    Parameters
    ----------
    tree : Tree or Model
    cells : mapping of str to str, or "table", optional
        Place of each feature, or of the column that it is made of: a cell (``"B2"``, ``"$B$2"``), a name of the
        workbook, a column of a table (``"[@speed]"``). "table" means the columns of the table that the formula stands
        in, by their headings. By default the cells of the first row, in the order of the columns: A1, B1, ...
    headings : mapping of str to str, optional
        Original headings of the columns, by feature; the names of the features by default.
    precision : int, "exact" or None
        Significant digits of constants; all by default. Excel itself reads the first 15.

    Raises
    ------
    ValueError
        If `cells` lacks a feature that the formula uses.
    ExportError
        If a primitive has no definition, the formula is longer or more deeply nested than Excel allows, or a table
        cannot have these headings.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> excel_formula(parse("-a**2 + sqrt(b)"))
    '=-(A1^2) + SQRT(B1)'
    >>> excel_formula(parse("2*a"), "table", headings={"a": "price [€]"})
    "=2*[@[price '[€']]]"
    """
    if isinstance(cells, str) and cells != "table":
        raise ValueError(f"cells is a mapping of features to cells, or 'table'; it is {cells!r}")
    columns = dict.fromkeys(source.name for source in sources_of(tree.parameters, headings).values())
    by_heading, same = (cells == "table"), (str.casefold if cells == "table" else None)
    tree, sources = sourced(rounded_tree(tree, precision, named=False), headings, "a table in Excel", same)
    if by_heading:
        places = {source.name: _table_column(source.heading) for source in sources.values()}
    elif cells is None:
        places = {name: f"{column_letters(position)}1" for position, name in enumerate(columns)}
    else:
        places = dict(cells)  # type: ignore[arg-type]  # no "table" here
    writer = _Excel(_EXCEL)
    texts = {name: _cell(name, source, places, writer) for name, source in sources.items()}
    result = writer.translate(tree, [texts.get(name, word("#REF!")) for name in tree.parameters])
    text = written(writer.numeric(result), writer.form, LONGEST - 1)
    depth = _nesting(text)
    if depth > DEEPEST:
        raise ExportError(f"the formula is nested {depth} levels deep; Excel allows {DEEPEST}")
    return f"={text}"


def column_letters(position: int) -> str:
    """Letters of the column at a position: A for 0, ..., Z, AA, ..."""
    letters, number = "", position + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _table_column(heading: str) -> str:
    """A reference to a column of the table that the formula stands in."""
    if not heading:
        raise ExportError("a table in Excel has no column without a heading; give the column one")
    # An apostrophe escapes the characters that have a meaning in references.
    escaped = re.sub(r"(['#@\[\]])", r"'\1", heading)
    return f"[@[{escaped}]]"


def _cell(name: str, source: Source, places: Mapping[str, str], writer: _Excel) -> Phrase:
    """A number that the formula uses, made of a cell."""
    if name in places and (name != source.name or source.kind == "number"):
        cell, source = word(places[name]), replace(source, kind="number")
    elif source.name in places:
        cell = word(places[source.name])
    else:
        raise ValueError(f"cells lacks the feature {source.name!r}; it has {', '.join(places)}")
    made = _FROM_CELLS[source.kind](cell, source, writer)
    marked: list[str | Phrase] = []
    for mark in source.marks:
        marked += [", ", cell, "=", writer.number(mark)]
    if source.mean is None and not marked:
        return made
    missing = ["OR(", cell, '=""', *marked, ")"] if marked else [cell, '=""']
    gap = math.nan if source.mean is None else source.mean
    return phrase("IF(", *missing, ", ", writer.number(gap), ", ", made, ")")


def _of_text(cell: Phrase, source: Source, writer: _Excel) -> Phrase:
    if len(source.codes) > MOST_TEXTS:
        raise ExportError(
            f"column {shown(source.heading)} has {len(source.codes)} texts, and a formula in Excel distinguishes at "
            f"most {MOST_TEXTS}; look their numbers up in a table of the workbook, and name the cell with cells={{...}}"
        )
    parts: list[str | Phrase] = []
    for text, code in source.codes.items():
        if len(text) > LONGEST_TEXT:
            raise ExportError(f"a formula in Excel has no text of more than {LONGEST_TEXT} characters: {shown(text)}")
        escaped = text.replace('"', '""')
        parts += ["IFS(" if not parts else ", ", "EXACT(", cell, f', "{escaped}"), ', writer.number(code)]
    return phrase(*parts, ")")


def _of_date(cell: Phrase, source: Source, writer: _Excel) -> Phrase:
    origin = np.datetime64(source.origin, "s")
    if origin < _FIRST_DATE:
        raise ExportError(f"Excel has no dates before 1900-03-01, but {shown(source.heading)} counts from {origin}")
    serial = float((origin - _DAY_ZERO) / np.timedelta64(1, "D"))
    return _in_unit(phrase("(", cell, "-", writer.number(serial), ")"), source, writer)


def _in_unit(days: Phrase, source: Source, writer: _Excel) -> Phrase:
    each = UNITS["days"] // UNITS[source.unit]
    return days if each == 1 else phrase("(", days, "*", writer.number(float(each)), ")")


_FROM_CELLS: dict[str, Callable[[Phrase, Source, _Excel], Phrase]] = {
    "number": lambda cell, source, writer: cell,
    "truth": lambda cell, source, writer: phrase("N(", cell, ")"),
    "text": _of_text,
    "date": _of_date,
    "duration": _in_unit,
}
"""The number in a cell, by what the cell holds: dates are days since 1899-12-30, and durations parts of days."""


_QUOTED = re.compile(r""""[^"]*"|\[(?:'.|[^'\]])*\]|'[^']*'""")
"""Texts, names of columns of a table and of sheets: parentheses in them do not nest."""


def _nesting(text: str) -> int:
    depth = deepest = 0
    for letter in _QUOTED.sub("", text):
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    return deepest


_SAME = "abs sqrt exp sign sin cos tan asin acos atan sinh cosh tanh min max mod log10"

_EXCEL = Language(
    "Excel",
    forms={
        **calls(_SAME, str.upper, log="LN", floor="INT"),
        # All bases except words get parentheses: people, and other languages, read -2^2 and 2^3^2 differently.
        "pow": Form("{0}^{1}", _POWER, (ATOM, _SIGN)),
        "log2": Form("LOG({0}, 2)"),
        "where": Form("IF({0}, {1}, {2})", conditions=(0,)),
    },
    conditions={
        **comparisons({**SIGNS, "eq": "=", "ne": "<>"}, _COMPARISON, _SUM),
        "logical_and": Form("AND({0}, {1})", conditions=(0, 1)),
        "logical_or": Form("OR({0}, {1})", conditions=(0, 1)),
        "logical_not": Form("NOT({0})", conditions=(0,)),
    },
    nonzero=Form("{0}<>0", _COMPARISON, (_SUM,)),
    zero=Form("{0}=0", _COMPARISON, (_SUM,)),
    as_number=Form("IF({0}, 1, 0)", conditions=(0,)),
    # Minus binds more strongly than ^, and ^ groups to the left.
    strengths=(_SUM, _PRODUCT, _SIGN, _POWER),
)


class _Excel(Corrected):
    """Rules of Excel."""

    pi = word("PI()")

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        pow, number = partial(self.formed, "pow"), self.number
        return {
            "floordiv": lambda a, b: self.call("INT", self.divided(a, b)),
            "ceil": lambda a: self.neg(self.call("INT", self.neg(a))),
            "square": lambda a: pow(a, number(2)),
            "cube": lambda a: pow(a, number(3)),
            "log1p": self.log1p,
            "expm1": self.expm1,
            "hypot": self.hypot,
            "cbrt": lambda a: self.mul(self.call("SIGN", a), pow(self.call("ABS", a), word("(1/3)"))),
        }

    def positive(self, value: int | float) -> Phrase:
        if not math.isfinite(value):
            return word("#NUM!")
        number = float(value)
        if number > 9.99999999999999e307:  # the largest number that Excel reads; larger numbers are written as products
            return phrase("(", self.positive(number / 2), "*2)")
        return word(repr(number).removesuffix(".0").upper())
