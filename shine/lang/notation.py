"""Texts as they are written on paper and in Julia, in Python's notation: ``x^2``, and ``f(x) = 1/x``."""

from __future__ import annotations

import ast
import re

from shine.lang.forms.grammar import reject

_DEFINITION = re.compile(r"\s*([^\W\d]\w*)\s*\(([^()=]*)\)\s*=(?!=)\s*(\S.*)", re.DOTALL)
_OF_FLOAT32 = re.compile(r"\b(\d+\.?\d*|\.\d+)f(-?\d+)\b")


def is_short_definition(text: str) -> bool:
    """Whether a text is a definition of one line as in Julia."""
    return _DEFINITION.fullmatch(text) is not None


def definition(text: str) -> str:
    """A definition of one line as in Julia, such as ``inv(x) = 1/x``, as a Python function; other texts as they are."""
    found = _DEFINITION.fullmatch(text)
    if found is None:
        return text
    name, arguments, body = found.groups()
    body = _OF_FLOAT32.sub(r"\1e\2", body.strip()).replace("^", "**")
    return f"def {name}({arguments}): return {body}"


def check_powers(tree: ast.AST) -> None:
    """Raise an error if ``^``, read as a power, stands between truth values, for which Python means another thing."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                if any(isinstance(each, ast.Compare | ast.BoolOp) for each in (left, right)):
                    reject("'^' is a power here; write != for 'one of two conditions'", node)
