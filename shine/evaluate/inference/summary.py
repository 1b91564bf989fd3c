"""The table of a formula's constants, in the words of statsmodels, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.inference.bands import UNKNOWN
from shine.evaluate.inference.quantiles import tail_of_t
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.lang.forms.names import listed

DIGITS_OF_ERRORS = 2
"""Significant digits of standard errors; constants and ends of intervals have as many decimals."""

CONDITIONS = "given: the form of the formula is right, these constants are all free"
"""Assumptions of intervals and bands, beside independent rows."""

LOSSES = {
    "squared": "squared errors",
    "absolute": "absolute errors",
    "poisson": "counts (Poisson)",
}
"""Names of the errors."""


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """The constants of a formula with their standard errors and intervals.

    Parameters
    ----------
    formula : str
        With names in place of the constants.
    known : Uncertainty
    intervals : ndarray of shape (n_constants, 2)
    level : float
    method : {"profile", "wald"}
    """

    formula: str
    known: Uncertainty
    intervals: Floats
    level: float
    method: str

    def rows(self) -> Iterator[dict[str, Any]]:
        """The table as plain values: name, coef, std_err, t, p, low, high."""
        known = self.known
        for index, name in enumerate(known.names):
            value, error = float(known.values[index]), float(known.errors[index])
            ratio = value / error if error > 0 else math.inf
            ratio = ratio if math.isfinite(error) else math.nan
            tail = tail_of_t(ratio, float(known.freedoms[index])) if math.isfinite(error) else math.nan
            low, high = self.intervals[index].tolist()
            yield {"name": name, "coef": value, "std_err": error, "t": ratio, "p": tail, "low": low, "high": high}

    @property
    def headings(self) -> list[str]:
        """Headings of the columns."""
        letter = "t" if np.isfinite(self.known.freedoms).any() else "z"
        ends = [f"[{tail:.3g}" for tail in ((1 - self.level) / 2,)] + [f"{(1 + self.level) / 2:.3g}]"]
        return ["", "coef", "std err", letter, f"P>|{letter}|", *ends]

    def cells(self) -> list[list[str]]:
        """Texts of the rows."""
        return [_cells(row) for row in self.rows()]

    @property
    def heading(self) -> str:
        """The table's subject, in one line."""
        known = self.known
        parts = [LOSSES.get(known.error, known.error), f"{round(known.rows, 1):g} row{'s' * (known.rows != 1)}"]
        if math.isfinite(known.freedom):
            parts.append(f"{round(known.freedom, 1):g} degrees of freedom")
        if math.isfinite(known.freedom) and math.isfinite(known.scale) and known.noise != UNKNOWN:
            parts.append(f"noise {known.scale:.4g}{_grows(known.noise)}")
        return ", ".join(parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the numbers."""
        known = self.known.notes
        outside = [row["name"] for row in self.rows() if row["coef"] < row["low"] or row["coef"] > row["high"]]
        outside = [name for name in outside if not any(f"{name} =" in note for note in known)]
        return (
            (*known, f"outside of the interval around the most likely value: {listed(outside)}") if outside else known
        )

    def __str__(self) -> str:
        """The table as text."""
        known = self.known
        lines = [self.formula, self.heading]
        if known.names:
            lines += aligned([self.headings, *self.cells()])
            lines.append(f"intervals: {'profile likelihood' if self.method == 'profile' else 'by standard errors'}")
            lines.append(CONDITIONS + ("" if known.kind == "dependent" else ", and rows are independent"))
        else:
            lines.append("no constants to be uncertain of")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks, smaller on narrow screens."""
        from html import escape

        fit = 'style="padding: 0.2em 0.4em"'
        cells = [
            "<tr>" + "".join(f"<{kind} {fit}>{escape(text)}</{kind}>" for text in row) + "</tr>"
            for kind, row in [("th", self.headings), *(("td", row) for row in self.cells())]
        ]
        notes = "".join(f"<br>{escape(note)}" for note in (self.heading, *self.notes))
        table = f'<table style="font-size: min(1em, 2.6vw)">{"".join(cells)}</table>'
        return f"<div><code>{escape(self.formula)}</code>{table}<small>{notes}</small></div>"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number_text(value: float, error: float) -> str:
    """A number with the digits that its standard error leaves."""
    if not math.isfinite(value):
        return str(value)
    if not (math.isfinite(error) and error > 0) or not value:
        return f"{value:.6g}"  # significant digits of a constant whose standard error is not known
    size = math.floor(math.log10(abs(value)))
    digits = min(max(size - math.floor(math.log10(error)) + DIGITS_OF_ERRORS, DIGITS_OF_ERRORS), 15)
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    decimals = digits - 1 - size
    return f"{value:.{decimals}f}" if decimals > 0 else f"{round(value, decimals):.0f}"


def _cells(row: dict[str, Any]) -> list[str]:
    error, tail = row["std_err"], row["p"]
    ends = [number_text(row[name], error) for name in ("low", "high")]
    return [
        row["name"],
        number_text(row["coef"], error),
        f"{error:#.{DIGITS_OF_ERRORS}g}".rstrip("."),
        "" if math.isnan(row["t"]) else f"{row['t']:.3f}" if abs(row["t"]) < 1e4 else f"{row['t']:.2e}",
        f"{tail:.3f}" if math.isfinite(tail) else "",
        *ends,
    ]


def _grows(noise: str) -> str:
    """The growth of the noise, in words."""
    words = {"relative": " of the value", "log": " of the value", "counts": " of the value's root"}
    return words.get(noise, "")
