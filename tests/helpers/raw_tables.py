"""Tables as people keep them: decimal commas, units in headings, missing values, dates, categories, old encodings.

Each is written by other code than Shine's reader, beside the plain rows, with which databases are filled.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RawTable:
    """A file, how a user would describe it, and what is in it."""

    file: str
    """Name of the file."""
    content: bytes
    target: str
    columns: dict[str, list[Any]]
    """The same rows as values of Python by heading: numbers, texts, dates; None where a value is missing."""
    law: str
    """The target in words, for people."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the section `data` of a configuration needs beside path and target."""
    primitives: Sequence[str] = ("add", "sub", "mul", "div")
    latin: bool = True
    """Whether all letters of its headings are known to pdfLaTeX."""

    @property
    def features(self) -> list[str]:
        """Headings of the columns that a formula may use."""
        return list(self.data.get("features", [head for head in self.columns if head != self.target]))


def _numbers(seed: int, low: float, high: float, digits: int, rows: int = 60) -> list[float]:
    return np.random.default_rng(seed).uniform(low, high, rows).round(digits).tolist()


def _text(columns: dict[str, list[str]], delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL, top: str = "") -> str:
    page = io.StringIO()
    page.write(top)
    writer = csv.writer(page, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return page.getvalue()


def _german(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def houses() -> RawTable:
    """Decimal commas and points between thousands, as a German spreadsheet writes them."""
    area, rooms = _numbers(0, 30, 180, 1), [float(round(each)) for each in _numbers(1, 1, 7, 0)]
    price = [2500 * a + 12000 * r for a, r in zip(area, rooms, strict=True)]
    columns = {"Wohnfläche (m²)": area, "Zimmer": rooms, "Preis (€)": price}
    digits = {"Wohnfläche (m²)": 1, "Zimmer": 0, "Preis (€)": 2}
    text = _text({head: [_german(v, digits[head]) for v in values] for head, values in columns.items()}, ";")
    return RawTable("houses.csv", text.encode("utf-8-sig"), "Preis (€)", columns, "2500 area + 12000 rooms")


def sales() -> RawTable:
    """Commas between thousands, within quotes."""
    price, sold = _numbers(2, 800, 2500, 2), [float(round(each)) for each in _numbers(3, 1, 40, 0)]
    revenue = [round(p * s, 2) for p, s in zip(price, sold, strict=True)]
    columns = {"unit price ($)": price, "units sold": sold, "revenue ($)": revenue}
    digits = {"unit price ($)": 2, "units sold": 0, "revenue ($)": 2}
    text = _text({head: [f"{v:,.{digits[head]}f}" for v in values] for head, values in columns.items()})
    return RawTable("sales.csv", text.encode(), "revenue ($)", columns, "price * sold")


def turbine() -> RawTable:
    """Tabs, gzip, a column of dates, and sensors that were off."""
    speed, angle = _numbers(4, 2, 20, 2), _numbers(5, 0, 30, 1)
    power = [0.3 * s**3 * (1 - a / 90) for s, a in zip(speed, angle, strict=True)]
    gone = set(np.random.default_rng(6).choice(len(speed), 6, replace=False).tolist())
    measured = [None if row in gone else s for row, s in enumerate(speed)]
    days = [f"2025-03-{1 + row % 28:02}" for row in range(len(speed))]
    columns = {"date": days, "wind speed (m/s)": measured, "pitch [°]": angle, "power/kW": power}
    cells = {head: ["NA" if v is None else str(v) for v in values] for head, values in columns.items()}
    return RawTable(
        "turbine.tsv.gz",
        gzip.compress(_text(cells, "\t").encode()),
        "power/kW",
        columns,
        "0.3 speed**3 (1 - pitch/90)",
        {"missing": "drop", "features": ["wind speed (m/s)", "pitch [°]"]},
    )


def deposits() -> RawTable:
    """A date as a feature: interest for each day since the account was opened."""
    start = np.datetime64("2020-01-01")
    days = np.random.default_rng(7).integers(0, 1500, 60)
    opened = (start + days).astype(str).tolist()
    paid = _numbers(8, 100, 5000, 2)
    fee = [p + 0.25 * float(day) for p, day in zip(paid, days, strict=True)]
    columns = {"opened on": opened, "deposit (€)": paid, "balance (€)": fee}
    cells = {head: [str(v) for v in values] for head, values in columns.items()}
    return RawTable(
        "deposits.csv",
        _text(cells).encode(),
        "balance (€)",
        columns,
        "deposit + 0.25 per day",
        {},
        ("add", "sub", "mul"),
    )


def paint() -> RawTable:
    """A column of texts as a category."""
    area = _numbers(9, 1, 50, 2)
    colour = np.random.default_rng(10).choice(["red", "light blue", "o'chre"], 60).tolist()
    extra = {"red": 5.0, "light blue": 0.0, "o'chre": 0.0}
    cost = [3 * a + extra[c] for a, c in zip(area, colour, strict=True)]
    columns = {"area": area, "colour name": colour, "cost": cost}
    cells = {head: [str(v) for v in values] for head, values in columns.items()}
    return RawTable(
        "paint.csv",
        _text(cells).encode(),
        "cost",
        columns,
        "3 area + 5 if red",
        {"categories": "one-hot"},
        ("add", "mul"),
    )


def gas() -> RawTable:
    """French headings in Latin-1, decimal commas, and a comment above the heading."""
    kelvin, volume = _numbers(11, 250, 400, 1), _numbers(12, 0.5, 3, 3)
    pressure = [8.314 * t / v for t, v in zip(kelvin, volume, strict=True)]
    columns = {"température (K)": kelvin, "volume (cm³)": volume, "pression (kPa)": pressure}
    cells = {head: [str(v).replace(".", ",") for v in values] for head, values in columns.items()}
    text = _text(cells, ";", top="# appareil n° 7\n")
    return RawTable("gaz.csv", text.encode("latin-1"), "pression (kPa)", columns, "8.314 T / V")


def alphabets() -> RawTable:
    """Headings in other alphabets, in the UTF-16 that spreadsheets call Unicode text."""
    temperature, mass = _numbers(13, 1, 90, 2), _numbers(14, 0.1, 9, 3)
    heat = [4.19 * m * t for m, t in zip(mass, temperature, strict=True)]
    columns = {"温度 ℃": temperature, "Масса, кг": mass, "θερμότητα": heat}
    cells = {head: [str(v) for v in values] for head, values in columns.items()}
    return RawTable(
        "heat.txt", _text(cells, "\t").encode("utf-16"), "θερμότητα", columns, "4.19 mass * temperature", latin=False
    )


def orders() -> RawTable:
    """Headings that are words of SQL, in a Parquet file."""
    import pandas

    count, price = _numbers(15, 1, 30, 0), _numbers(16, 2, 90, 2)
    total = [c * p + 4.9 for c, p in zip(count, price, strict=True)]
    columns = {"order": count, "select": price, "group by": total}
    page = io.BytesIO()
    pandas.DataFrame(columns).to_parquet(page)
    return RawTable("orders.parquet", page.getvalue(), "group by", columns, "order * select + 4.9")


def spring() -> RawTable:
    """A row of units below the headings, blank lines at the end, spaces around the numbers."""
    stretch, mass = _numbers(17, 0.01, 0.3, 4), _numbers(18, 0.1, 2, 3)
    force = [24.5 * s + 9.81 * m for s, m in zip(stretch, mass, strict=True)]
    columns = {"stretch": stretch, "mass": mass, "force": force}
    cells = {
        head: [unit, *(f" {v} " for v in columns[head])] for head, unit in zip(columns, ("m", "kg", "N"), strict=True)
    }
    return RawTable("spring.csv", (_text(cells) + "\n\n").encode(), "force", columns, "24.5 stretch + 9.81 mass")


def meeting() -> RawTable:
    """Headings that are one name when they are written as identifiers."""
    values = [_numbers(19 + number, 1, 9, 3) for number in range(4)]
    result = [a * b + c - d for a, b, c, d in zip(*values, strict=True)]
    columns = dict(zip(("a b", "a_b", 'a"b', "a-b"), values, strict=True)) | {"y": result}
    cells = {head: [str(v) for v in column] for head, column in columns.items()}
    return RawTable("meeting.csv", _text(cells).encode(), "y", columns, '"a b" * a_b + a"b - a-b')


def excel() -> RawTable:
    """A workbook of a spreadsheet, with empty cells."""
    import pandas

    length, width = _numbers(24, 1, 20, 2), _numbers(25, 1, 20, 2)
    surface = [a * b for a, b in zip(length, width, strict=True)]
    partly = [None if row % 12 == 5 else a for row, a in enumerate(length)]
    columns = {"length 1 [mm]": partly, "length 2 [mm]": width, "surface [mm²]": surface}
    page = io.BytesIO()
    pandas.DataFrame(columns).to_excel(page, index=False)
    return RawTable(
        "plates.xlsx", page.getvalue(), "surface [mm²]", columns, "length 1 * length 2", {"missing": "drop"}
    )


TABLES: dict[str, Callable[[], RawTable]] = {
    table.__name__: table
    for table in (houses, sales, turbine, deposits, paint, gas, alphabets, orders, spring, meeting, excel)
}
