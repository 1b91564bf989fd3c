"""Damages the text of tensor modules, and their data."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value
from shine.tensor.form.types import TensorType

WORDS = (
    "module", "func", "label", "return", "gradient", "wrt", "keeping", "seedable", "x", "f32", "bool", "i64", "true",
    "nan", "inf", "-inf", "-0.0", "0", "1", "-1", "2", "1.5", "1e999", "9223372036854775808", "-9223372036854775808",
    "1" + "0" * 30, "9" * 5000, "0x", "0xff", "0x7ff8000000000001", "0x0", "@f", "@main", "%x0", "%v1", "%a", "'entry",
    "'", "@", "%", "->", "{", "}", "(", ")", "[", "]", "<", ">", ":", ",", "=", "//", "/", '"', '"a"', '"\\', '"\\q"',
    '"\\x4"', "\n", "\x00", "\ud800", "é", "٣", " ", "\u2028", "dot", "add", "while", "call", "cond",
    "gather", "constant {value = <1 x f32> [1]}", "{axis = 0}", "[gradient @main wrt 0]", "[[[[[[[[", "((((((((",
)  # fmt: skip
"""Words of the text form, numbers at boundaries, and what does not belong there."""

_PIECES = re.compile(r"\s+|[@%'\"]?[A-Za-z_0-9.]+|.", re.DOTALL)

JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2, 7, 2**63, 10**30, 1.5, float("nan"), "", "f32", "x", "a b", "main", "é", (), (0,), (-1,),
    (0, 0), (2, 3), (True,), ("a",), (None,), [1], [], {}, {"axis": 0}, {"axes": (0,), "keep": True}, {"value": 1},
    np.zeros(2), np.zeros((2, 0), "f4"), np.array("a"), np.array([None]), np.float32(1), TensorType("f32"),
    TensorType("bool"), TensorType("i64", (2, 3)), Value("x0", TensorType("f32")), Value("", TensorType("f32")),
    Value("a b", TensorType("i8", (2,))), (Value("x0", TensorType("f32")),), "add", "while", "no_such",
    Instruction((), "call", (), {"function": "main"}), {1: 2}, {"main": None}, b"x", object(), 3 + 4j, range(3),
)  # fmt: skip
"""What stands in the place of something else."""


def damaged_text(text: str, other: str, rng: Generator) -> str:
    """Change, cut, repeat, insert and exchange words."""
    words, others = _PIECES.findall(text), _PIECES.findall(other)
    for _ in range(int(rng.geometric(0.5))):
        start = int(rng.integers(len(words) + 1))
        end = min(len(words), start + int(rng.geometric(0.4)))
        match int(rng.integers(7)):
            case 0:
                words[start:end] = [str(rng.choice(WORDS))]
            case 1:
                del words[start:end]
            case 2:
                words[start:start] = words[start:end] * int(rng.integers(1, 4))
            case 3:
                words.insert(start, str(rng.choice(WORDS)))
            case 4:
                words.insert(start, chr(int(rng.integers(1, 0x300))))
            case 5:
                at = int(rng.integers(len(others)))
                words[start:end] = others[at : at + end - start]
            case _:
                if rng.random() < 0.2:
                    del words[start:]
    return "".join(words)


def damaged_module(module: Module, rng: Generator) -> Module:
    """A module in which one thing is replaced by another of the module, or by junk."""
    if rng.random() < 0.1:
        return _damaged(module, rng)
    functions = dict(module.functions)
    name = str(rng.choice(list(functions)))
    functions[name] = _damaged_function(functions[name], module, rng)
    return replace(module, functions=functions)


def _damaged_function(function: Function | GradientDeclaration, module: Module, rng: Generator) -> Any:
    if isinstance(function, GradientDeclaration) or not function.body or rng.random() < 0.2:
        return _damaged(function, rng)
    body = list(function.body)
    at, other = (int(i) for i in rng.integers(len(body), size=2))
    match int(rng.integers(6)):
        case 0:
            body[at] = _damaged(body[at], rng)
        case 1:
            body[at], body[other] = body[other], body[at]
        case 2:
            body[at] = replace(body[at], operation=body[other].operation)
        case 3:
            body[at] = replace(body[at], operands=body[other].operands)
        case 4:
            attributes = dict(body[at].attributes)
            if attributes:
                key = str(rng.choice(list(attributes)))
                attributes[key] = JUNK[rng.integers(len(JUNK))]
            body[at] = replace(body[at], attributes=attributes)
        case _:
            operands = list(body[at].operands)
            if operands:
                place = int(rng.integers(len(operands)))
                choices = [*function.parameters, *(r for i in function.body for r in i.results), *JUNK]
                operands[place] = choices[rng.integers(len(choices))]
            body[at] = replace(body[at], operands=tuple(operands))
    return replace(function, body=tuple(body))


def _damaged(thing: Any, rng: Generator) -> Any:
    """A dataclass with junk in one field."""
    names = [field.name for field in fields(thing)]
    name = names[rng.integers(len(names))]
    junk = JUNK[rng.integers(len(JUNK))]
    value = getattr(thing, name)
    if isinstance(value, tuple) and value and rng.random() < 0.5:
        at = int(rng.integers(len(value)))
        junk = (*value[:at], junk, *value[at + 1 :])
    return replace(thing, **{name: junk})
