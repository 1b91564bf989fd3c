"""Numbers as people write them: decimal points or commas, thousands separators, signs of percent and currencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.lang.forms.names import shown

Decimal = Literal[".", ","]
"""The sign between the whole and the fractional part of a number."""

MISSING = frozenset(
    {"", "-", "--", "–", "—", "?", ".", "na", "n/a", "n.a.", "<na>", "nan", "-nan", "null", "none", "nat", "missing"}
    | {"#n/a", "#na", "#n/a n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"}
    | {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
)
"""Texts, in lower case, that stand for a missing value: those of pandas, R, SAS and Excel, and dashes."""

LONGEST = 4000
"""Most characters of a number; the exact decimal text of a float64 has fewer than 1100."""

_GAPS = " \u00a0\u2007\u2009\u202f'’"
"""Spaces and apostrophes between groups of three digits."""

_PLAIN: dict[Decimal, re.Pattern[str]] = {
    ".": re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
    ",": re.compile(r"[-+]?(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)(?:[eE][-+]?[0-9]+)?"),
}

_AFFIX = re.compile(
    r"(?P<sign>[-+−]?)\s*(?P<before>[$¢£¤¥฿₠-₿]?)\s*(?P<number>[-+−.,0-9].*?)\s*(?P<after>[%‰$¢£¤¥฿₠-₿]?)"
)


def _written(decimal: Decimal) -> re.Pattern[str]:
    point = re.escape(decimal)
    groups = rf"[1-9][0-9]{{0,2}}(?P<gap>[{'.' if decimal == ',' else ','}{_GAPS}])[0-9]{{3}}(?:(?P=gap)[0-9]{{3}})*"
    grouped = rf"{groups}(?:{point}[0-9]*)?"
    plain = rf"(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?"
    return re.compile(rf"[-+−]?(?:{grouped}|{plain})")


_WRITTEN: dict[Decimal, re.Pattern[str]] = {".": _written("."), ",": _written(",")}


def is_missing(cell: str) -> bool:
    """Whether a cell, without blanks around it, stands for a missing value."""
    return len(cell) <= 9 and cell.lower() in MISSING


@dataclass(frozen=True)
class Numeral:
    """A number read from text.

    Parameters
    ----------
    value : float
        Infinite if it is too large.
    sign : str
        The sign of percent or of a currency beside it; mostly empty.
    grouped : bool
        Whether thousands separators stood in it.
    """

    value: float
    sign: str = ""
    grouped: bool = False


def numeral(cell: str, decimal: Decimal) -> Numeral | None:
    """The number in a cell without blanks around it; None if it holds none."""
    if len(cell) > LONGEST:
        return None
    if _PLAIN[decimal].fullmatch(cell):
        return Numeral(float(cell.replace(decimal, ".")))
    found = _AFFIX.fullmatch(cell)
    if found is None or (found["before"] and found["after"]):
        return None
    text = found["sign"] + found["number"]
    match = _WRITTEN[decimal].fullmatch(text)
    if match is None:
        return None
    gap = match["gap"]
    digits = text.replace("−", "-").replace(gap, "") if gap else text.replace("−", "-")
    return Numeral(float(digits.replace(decimal, ".")), found["before"] or found["after"], bool(gap))


def plain_numbers(cells: Sequence[str], decimal: Decimal) -> tuple[Floats, list[int]]:
    """The cells that are numbers without any sign or separator but the decimal one, NaN elsewhere; and all other rows.

    This is `numeral` for the many cells of large files.
    """
    matches, rest = _PLAIN[decimal].fullmatch, []
    values = [np.nan] * len(cells)
    for row, cell in enumerate(cells):
        if len(cell) <= LONGEST and matches(cell):
            values[row] = float(cell if decimal == "." else cell.replace(",", "."))
        else:
            rest.append(row)
    return np.array(values), rest


@dataclass(frozen=True)
class Writing:
    """Spelling of numbers in a file.

    Parameters
    ----------
    decimal : "." or ","
    example : str
        A cell that tells; empty if every cell allows it.
    """

    decimal: Decimal
    example: str = ""


def writing_of(cells: Iterable[str], separator: str, wanted: Decimal | None, learned: Decimal | None) -> Writing:
    """The way of writing that most cells allow; a `DataError` if nothing decides what a cell with a comma means.

    Cells such as ``1.520,5`` tell; ``1,520`` and ``1.520`` do not. If no cell tells, ``1.520`` has a decimal point, and
    ``1,520`` is a thousand between columns that commas separate; otherwise it may be either.

    Parameters
    ----------
    cells : iterable of str
    separator : str
        What separates columns.
    wanted : "." or ",", optional
        Decimal sign by the user, who is believed.
    learned : "." or ",", optional
        Decimal sign of the training data, which decides if no cell does.
    """
    if wanted is not None:
        return Writing(wanted)
    votes: dict[Decimal, int] = {".": 0, ",": 0}
    examples: dict[Decimal, str] = {".": "", ",": ""}
    unclear = ""
    for cell in cells:
        if "," not in cell and "." not in cell:
            continue
        text = cell.strip()
        point, comma = numeral(text, ".") is not None, numeral(text, ",") is not None
        if point != comma:
            sign: Decimal = "." if point else ","
            votes[sign] += 1
            examples[sign] = examples[sign] or text
            # Cells that tell the decimal sign of a file; others that contradict them are no numbers.
            if votes[sign] == 1000:
                break
        elif point and "," in text:
            unclear = unclear or text
    if votes["."] or votes[","]:
        decimal: Decimal = "," if votes[","] > votes["."] else "."
        return Writing(decimal, examples[decimal])
    if not unclear or separator == ",":
        return Writing(learned or ".")
    if learned is not None:
        return Writing(learned)
    thousands, fraction = unclear.replace(",", ""), unclear.replace(",", ".")
    raise DataError(
        f"{shown(unclear)} may be {thousands} or {fraction}, and no other number tells; set data.decimal to '.' or ','"
    )
