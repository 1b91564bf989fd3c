"""The result that a report describes, as protocols: any result with these attributes can be reported."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, Protocol, runtime_checkable

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.tree import Tree
from shine.lang.wrapping import columns


class ModelLike(Protocol):
    """A formula with its measures; `shine.search.models.model.Model` is one, and tells what they are."""

    @property
    def tree(self) -> Tree: ...
    @property
    def expression(self) -> str: ...
    @property
    def headings(self) -> Mapping[str, str]: ...
    @property
    def digits(self) -> int | None: ...
    @property
    def loss(self) -> float: ...
    @property
    def noise(self) -> str: ...
    @property
    def r2(self) -> float | None: ...
    @property
    def complexity(self) -> int: ...
    def predict(self, X: Floats) -> Floats: ...


@runtime_checkable
class UncertainLike(ModelLike, Protocol):
    """A formula that tells how sure it is, by a `Summary` (see `shine.search.models.uncertain.UncertainModel`)."""

    @property
    def categories(self) -> tuple[str, ...]: ...
    def summary(self) -> Any: ...
    def predict_interval(self, X: Floats, level: float, kind: Literal["mean", "prediction"]) -> Floats: ...


class ResultLike(Protocol):
    """The result of a search; `shine.search.models.result.Result` is one, and tells what it has.

    The reason calls formulas by their positions in the front; it is empty if it is not known.
    """

    @property
    def front(self) -> Sequence[ModelLike]: ...
    @property
    def best_index(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def generations(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def stopped_by(self) -> str: ...


def columns_of(tree: Tree, dataset: Dataset) -> Floats:
    """The columns that a formula needs, in the order of its parameters, shape (n_rows, n_parameters).

    A `DataError` if the data set lacks one of them.
    """
    missing = [name for name in tree.parameters if name not in dataset.features]
    if missing:
        raise DataError(f"the data set has no column {missing[0]!r}, which the formula needs")
    if tree.parameters == dataset.features:
        return dataset.columns.T
    return dataset.columns[[dataset.features.index(name) for name in tree.parameters]].T


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
"""Written if there is no number."""

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_PLAIN = range(-4, 6)
"""Numbers whose first digit has one of these powers of ten are written without an exponent."""


def decimal_parts(value: float | Decimal, digits: int = 6) -> tuple[str, int | None]:
    """Absolute value rounded to `digits` significant digits: the digits, and the power of ten of the notation, if any.

    Examples
    --------
    >>> decimal_parts(765.9502377245128), decimal_parts(-1.5e-26)
    (('765.95', None), ('1.5', -26))
    """
    if isinstance(value, float) and not math.isfinite(value):
        return ("NaN" if math.isnan(value) else "∞"), None
    # A Decimal holds every integer; a float does not.
    mantissa, _, exponent = f"{abs(Decimal(value)):.{digits - 1}e}".partition("e")
    power = int(exponent)
    if value == 0 or power not in _PLAIN:
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return mantissa, None if value == 0 else power
    fixed = f"{Decimal(mantissa).scaleb(power):f}"
    return (fixed.rstrip("0").rstrip(".") if "." in fixed else fixed), None


def number(value: float | None, digits: int = 4) -> str:
    """A number in a sentence or a table, rounded to `digits` significant digits; a dash if there is none."""
    if value is None or math.isnan(value):
        return NOTHING
    mantissa, power = decimal_parts(value, digits)
    sign = MINUS if value < 0 else ""
    return f"{sign}{mantissa}" if power is None else f"{sign}{mantissa}×10{superscript(power)}"


def fraction(value: float | None) -> str:
    """A coefficient of determination, rounded to four digits; 1 only if it is exactly 1.

    Examples
    --------
    >>> fraction(0.48152), fraction(0.9999999), fraction(1.0)
    ('0.4815', '> 0.9999', '1')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 1:
        return "1"
    if value > 0.99995:
        return "> 0.9999"
    return f"{value + 0.0:.4f}".replace("-0.0000", "0.0000").replace("-", MINUS) if value > -1000 else number(value)


def superscript(power: int) -> str:
    """An exponent in small raised digits."""
    return str(power).translate(_SUPERSCRIPTS)


def printed(text: str) -> str:
    """A text of numbers as Python writes them, such as -1.5e-05 and inf, with numbers like those of `number`."""
    raised = re.sub(r"(?<=\d)e([+-]\d+)", lambda power: f"×10{superscript(int(power[1]))}", text)
    return re.sub(r"\binf\b", "∞", re.sub(r"(?<![\w.])-(?=\d|inf\b)", MINUS, raised))


def count(value: float, thing: str = "") -> str:
    """A whole number with grouped digits and the thing it counts: ``1 row``, ``12 000 rows``."""
    digits = f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{digits} {thing}{'' if value == 1 else 's'}" if thing else digits


def duration(seconds: float) -> str:
    """A time in familiar units: ``0.21 s``, ``12.3 s``, ``4 min 5 s``, ``3 h 12 min``."""
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


_WIDE = dict.fromkeys("MWЖМШЩЮ", 0.9) | dict.fromkeys("mw@%жмфшщыю", 0.5)


def breadth(text: str) -> float:
    """Columns of a text (see `shine.lang.wrapping.columns`) in print, where capitals and some letters are wider."""
    return columns(text) + sum(_WIDE.get(letter, 0.25 * letter.isupper()) for letter in text)


def shortened(text: str, length: int) -> str:
    """A text of at most `length` columns in print; a longer text loses its middle."""
    if breadth(text) <= length:
        return text
    most = (length - 1) * 2 // 3
    head, tail = text[:most], text[most + 1 - length :]
    while breadth(head) > most:
        head = head[:-1]
    while breadth(tail) > length - 1 - most:
        tail = tail[1:]
    return f"{head}…{tail}"


def elided(heading: str) -> str:
    """A heading as formulas and figures show it: nowhere else is it shorter, and where it is longer, it is whole."""
    name, begin, unit = heading.partition(" [")
    room = 24 - int(breadth(begin + unit) + 0.5)  # columns of the name; a short unit stays whole
    return shortened(name, room) + begin + unit if room > 8 else shortened(heading, 24)
