"""Programs that the tests of this folder compile, and rows to apply them to."""

from __future__ import annotations

import ast

import numpy as np
from helpers.equality import same_bits
from helpers.formulas import OF_INTEGERS
from unit.formats.write.native import rows as float_rows

import shine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES
from shine.lang.forms.tape import application
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.program import Program

TRIPLES = (
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "arm-linux-gnueabihf",
    "powerpc64le-linux-gnu",
    "riscv64-linux-gnu",
)
"""Targets with object files."""


def every_primitive(dtype: str) -> Program:
    """A program with an output for each basic primitive that a number type has, applied to its arguments."""
    build = ProgramBuilder(STANDARD)
    names = [ast.Name(build.parameter(label, dtype), ast.Load()) for label in "abc"]
    outputs = [
        (name, build.assign(dtype, application(name, names[:arity])), dtype)
        for name, arity in ARITIES.items()
        if name in OF_INTEGERS or dtype.startswith("float")
    ]
    return build.finish(outputs, "primitives")


def mixed() -> Program:
    """A program with arguments and results of all types, more of them than registers hold."""
    build = ProgramBuilder(STANDARD)
    kinds = ["int32", "float64", "float32", "int64", "bool"] * 3
    names = [build.parameter(f"p{position}", kind) for position, kind in enumerate(kinds)]
    total = None
    for position, name in enumerate(names):
        value = ast.Name(build.convert(name, "float64"), ast.Load())
        weighted = ast.BinOp(value, ast.Mult(), ast.Constant(float(position + 1)))
        total = weighted if total is None else ast.BinOp(total, ast.Add(), weighted)
    result = build.assign("float64", total)
    whole = build.convert(result, "int32")
    positive = build.assign("int32", shine.parse(f"{whole} > 0", [whole]).result)
    outputs = [
        ("sum", result, "float64"),
        ("whole", whole, "int32"),
        ("single", build.convert(result, "float32"), "float32"),
        ("long", build.convert(result, "int64"), "int64"),
        ("positive", positive, "bool"),
    ]
    return build.finish(outputs, "mixed")


def one_of(program: Program, position: int) -> Program:
    """The same program with one output."""
    return Program(
        program.parameters, program.statements, (program.outputs[position],), program.name, program.functions
    )


def columns_of(program: Program, count: int, seed: int = 0) -> list[np.ndarray]:
    """Rows for a program: special numbers of each type first. Integers are never zero."""
    columns = []
    for position, parameter in enumerate(program.parameters):
        rng = np.random.default_rng((seed, position))
        if parameter.dtype == "bool":
            columns.append(rng.random(count) < 0.5)
        elif parameter.dtype.startswith("float"):
            columns.append(float_rows(seed + position // 2, count, parameter.dtype)[position % 2])
        else:
            info = np.iinfo(parameter.dtype)
            special = [info.min, info.min + 1, -7, -2, -1, 1, 2, 3, 7, info.max]
            column = rng.integers(info.min, info.max, count, parameter.dtype)
            small = rng.integers(1, 50, count) * rng.choice([-1, 1], count)
            column = np.where(rng.random(count) < 0.5, column, small).astype(parameter.dtype)
            pairs = np.array(np.meshgrid(special, special), parameter.dtype)[position % 2].ravel()[:count]
            column[: len(pairs)] = pairs
            columns.append(np.where(column == 0, 5, column).astype(parameter.dtype))
    return columns


def equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays have the same bits; any NaN is like any other."""
    assert first.dtype == second.dtype and first.shape == second.shape
    if first.dtype.kind != "f":
        return bool(np.array_equal(first, second))
    return bool(same_bits(first, second).all())
