"""Programs with every primitive as an output, and rows for them, for the tests of all targets."""

from __future__ import annotations

import ast

import numpy as np
from helpers.formulas import OF_INTEGERS

from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.parse import parse
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.program import Program

DTYPES = ("float64", "float32", "int64", "int32")
PARAMETERS = ("a", "b", "c")


def expressions(dtype: str) -> dict[str, ast.expr]:
    """An application of each primitive that a number type has, and divisions by constants."""
    arguments = [ast.Name(name, ast.Load()) for name in PARAMETERS]
    names = OF_INTEGERS if dtype.startswith("int") else tuple(STANDARD)
    found = {name: application(name, arguments[: STANDARD[name].arity]) for name in names}
    divisions = {"seventh": "a / 7", "eighth": "a % 8", "third": "a // -3", "nested": "a * b + c * a"}
    return found | {name: parse(text).result for name, text in divisions.items()}


def program_of(formulas: dict[str, ast.expr], dtype: str, parameters: tuple[str, ...] = PARAMETERS) -> Program:
    """A program with an output for each formula."""
    build = ProgramBuilder()
    for name in parameters:
        build.parameter(name, dtype)
    return build.finish([(f"{label}_of", build.assign(dtype, value), dtype) for label, value in formulas.items()])


def columns(dtype: str, count: int, rows: int, seed: int = 0) -> list[np.ndarray]:
    """Numbers of every size, special values and random bit patterns; integers without zero: they are divisors."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        kind = np.dtype(dtype)
        patterns = rng.integers(0, 2 ** (8 * kind.itemsize), rows, dtype=f"u{kind.itemsize}").view(kind)
        if kind.kind == "f":
            special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 1e-40, np.finfo(kind).max, 2.0**30]
            sizes = (rng.standard_normal(rows) * 10.0 ** rng.integers(-3, 4, rows)).astype(kind)
        else:
            special = [1, -1, 2, -2, 3, 7, np.iinfo(kind).min, np.iinfo(kind).max]
            sizes = rng.integers(-20, 20, rows, dtype=kind)
        chosen = rng.integers(0, 3, rows)
        column = np.choose(chosen, [rng.choice(np.array(special, kind), rows), sizes, patterns]).astype(kind)
        if kind.kind == "i":
            column[column == 0] = 1
        made.append(column)
    return made
