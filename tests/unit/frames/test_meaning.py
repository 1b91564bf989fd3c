"""What queries mean: random ones beside an evaluation row by row in pure Python."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers.markers import mostly_slow
from helpers.oracles.queries import value_of

import shine.arrow

ROWS = 203
"""No multiple of a word's bits."""

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
EXTREME = [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**62, 127, 128, -129, 0, 1, 2, 3, -1]
FLOATS = [0.0, -0.0, 0.5, 2.5, float(2**53), float(2**63), -float(2**63), float(2**64), 1e300, float("inf"),
          float("-inf"), float("nan"), 0.1, 3.0]  # fmt: skip
NUMBERS = [*EXTREME, 2.5, -0.5, 0.1, 9007199254740993.0, 1e300, 1.5e-3, 300, 40000]
VARIABLES = {f"v{position}": number for position, number in enumerate(NUMBERS)}
TEXTS = ["a", "b", "äöü", "", "東京"]


def columns(rng: random.Random, nulls: bool) -> dict[str, list[Any]]:
    """A table of every type, by rows of Python's values."""

    def some(values: list[Any]) -> list[Any]:
        return [None if nulls and rng.random() < 0.2 else rng.choice(values) for _ in range(ROWS)]

    table = {}
    for kind in INTEGERS:
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        table[kind] = some([value for value in EXTREME if low <= value <= high])
    table["float64"] = some(FLOATS)
    table["float32"] = some(
        [value if abs(value) > 1e38 else float(np.float32(value)) for value in FLOATS if value != 1e300]
    )
    table["flag"] = some([True, False])
    table["text"] = some(TEXTS)
    table["other"] = some([*TEXTS, "c"])
    return table


def arrow(table: dict[str, list[Any]], cuts: list[int]) -> pa.Table:
    """The table in chunks; each column is cut at different rows."""
    arrays = {}
    for shift, (name, values) in enumerate(table.items()):
        kind = {"flag": pa.bool_(), "text": pa.dictionary(pa.int8(), pa.string()), "other": pa.string()}.get(name)
        array = pa.array(values, kind or getattr(pa, name)())
        bounds = sorted({0, ROWS, *((cut + shift) % ROWS for cut in cuts)})
        pieces = [array.slice(start, stop - start) for start, stop in itertools.pairwise(bounds)]
        arrays[name] = pa.chunked_array(pieces)
    return pa.table(arrays)


def number(rng: random.Random, depth: int) -> str:
    """A random expression of numbers that Python's rules and the query's agree on."""
    if depth == 0:
        return rng.choice(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float64"])
    operator = rng.choice(["+", "-", "*", "/", "//", "%"])
    left = number(rng, depth - 1)
    if operator in ("//", "%"):  # whole numbers only: NumPy's remainder of floats is tested elsewhere
        return f"(int32 {operator} {rng.choice(['int16', 'int8', '3', '-7'])})"
    return f"({left} {operator} {number(rng, depth - 1)})"


def literal(rng: random.Random) -> str:
    """A number for comparisons."""
    number = rng.choice(range(len(NUMBERS)))
    return f"@v{number}" if rng.random() < 0.3 else repr(NUMBERS[number])


def comparison(rng: random.Random, depth: int) -> str:
    """A random comparison."""
    choice = rng.random()
    operators = ["<", "<=", ">", ">=", "==", "!="]
    if choice < 0.15:
        return f"(text {rng.choice(['==', '!='])} {rng.choice([*TEXTS, 'none'])!r})"
    if choice < 0.25:
        return rng.choice([f"(text in {tuple(rng.sample(TEXTS, 2))!r})", "(text == other)", "(other != text)"])
    if choice < 0.35:
        return rng.choice(["flag", "isna(float64)", "isna(int8)", "isna(text)", "isna(flag)", "(flag == (int8 > 0))"])
    every = [*INTEGERS, "float32", "float64"]
    if choice < 0.55:
        return f"({rng.choice(every)} {rng.choice(operators)} {literal(rng)})"
    if choice < 0.65:
        return f"({literal(rng)} {rng.choice(operators)} {rng.choice(every)} {rng.choice(operators)} {literal(rng)})"
    if choice < 0.85:
        return f"({rng.choice(every)} {rng.choice(operators)} {rng.choice(every)})"
    return f"({number(rng, depth)} {rng.choice(operators)} {number(rng, 1)})"


def condition(rng: random.Random, depth: int) -> str:
    """A random condition."""
    if depth == 0:
        return comparison(rng, 1)
    choice = rng.random()
    if choice < 0.2:
        return f"(~{condition(rng, depth - 1)})"
    if choice < 0.3:
        parts = [condition(rng, depth - 1) for _ in range(3)]
        return f"({parts[0]} if {parts[1]} else {parts[2]})"
    return f"({condition(rng, depth - 1)} {rng.choice('&|')} {condition(rng, depth - 1)})"


def rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The rows, with the types that the oracle knows."""
    made = []
    for position in range(ROWS):
        row = {name: values[position] for name, values in table.items()} | VARIABLES
        if row["float32"] is not None:
            row["float32"] = np.float32(row["float32"])
        made.append(row)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_slow(range(5), fast=(0, 1)))
def test_random_conditions_select_the_rows_that_python_selects(seed):
    rng = random.Random(seed)
    table = columns(rng, nulls=seed % 3 > 0)
    given, expected_rows = arrow(table, rng.sample(range(1, ROWS), seed % 4)), rows(table)
    for _ in range(6):
        text = condition(rng, rng.randint(0, 3))
        expected = [i for i, row in enumerate(expected_rows) if value_of(text.replace("@", ""), row) is True]
        assert shine.arrow.filter(given, text, variables=VARIABLES).tolist() == expected, text


@pytest.mark.parametrize("seed", mostly_slow(range(3), fast=(0,)))
def test_random_values_are_those_of_python(seed):
    rng = random.Random(seed)
    table = columns(rng, nulls=True)
    given, expected_rows = arrow(table, [50, 128]), rows(table)
    for _ in range(6):
        text = number(rng, rng.randint(1, 3))
        found = shine.arrow.eval(given, text).to_pylist()
        expected = [value_of(text, row) for row in expected_rows]
        assert [repr(value) for value in found] == [repr(value) for value in expected], text
