"""Golden IR: the lowering of small formulas, before any optimization.

    python tests/ir/regenerate.py

writes `tests/ir/golden/` again. Read the difference before you commit it; the tests only compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from llvmlite import ir

import shine
from shine.compiler.codegen.native.loops import emit_predict
from shine.compiler.codegen.native.programs import emit_program_scalar
from shine.lang.program.trees import tree_program

FOLDER = Path(__file__).parent / "golden"

LEGS = """
def f(a, b):
    s = a*a + b*b
    s += 1
    return sqrt(s) / s
"""


def scalar(source: str, dtype: str = "float64") -> ir.Function:
    """The function of one row."""
    module = ir.Module()
    emit_program_scalar(module, tree_program(shine.parse(source), dtype), "f")
    return module.globals["f"]


def rows(source: str, dtype: str = "float64") -> ir.Function:
    """The function of vectors of rows."""
    module = ir.Module()
    emit_predict(module, shine.parse(source), "f", dtype)
    return module.globals["f.rows"]


CASES: dict[str, Callable[[], ir.Function]] = {
    "arithmetic": lambda: scalar("a + b - a*b/(-a)"),
    "powers": lambda: scalar("a**2 + a**3 + a**b"),
    "floor_division": lambda: scalar("a // b"),
    "remainder": lambda: scalar("a % b"),
    "rounding": lambda: scalar("floor(a) + ceil(a) + abs(a) + sign(a)"),
    "extrema": lambda: scalar("min(a, b) + max(a, b)"),
    "comparisons": lambda: scalar("(a < b) + (a >= b) + (a == b) + (a != b)"),
    "chained_comparison": lambda: scalar("a < b <= c"),
    "logic": lambda: scalar("(a and b) or not a"),
    "elementary": lambda: scalar("exp(sin(a)) + log(sqrt(a))"),
    "conditional": lambda: scalar("a/b if a < b else 2.5"),
    "assignments": lambda: scalar(LEGS),
    "composite": lambda: scalar("sigmoid(a) + relu(a)"),
    "float32_constant": lambda: scalar("0.1*a + 1e-45", "float32"),
    "int32_division": lambda: scalar("a / b", "int32"),
    "int32_division_by_a_constant": lambda: scalar("a/7 + a//7 + a % 7", "int32"),
    "int64_guarded_division": lambda: scalar("7 // b if b else -1", "int64"),
    "rows_of_eight": lambda: rows("sqrt(a*a + b*b)"),
    "rows_that_can_fail": lambda: rows("a // b", "int32"),
}
"""Emitter of the function in each file. Functions that it calls are not recorded."""

INSTRUCTIONS = ("br ", "ret ", "store ", "call ")
"""Beginnings of instructions without a result."""


def normalized(function: ir.Function) -> str:
    """The text of a function: values numbered from 0 as they appear, equal lanes written once, no needless quotes."""
    numbers: dict[str, str] = {}
    text = re.sub(r'%"\.(\d+)"', lambda match: numbers.setdefault(match[1], f"%{len(numbers)}"), str(function))
    text = re.sub(r'([%@])"([\w.]+)"', r"\1\2", text)
    text = re.sub(r"<(\w+ [\w.-]+)(?:, \1)+>", r"splat (\1)", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "".join(f"  {line}\n" if "=" in line or line.startswith(INSTRUCTIONS) else f"{line}\n" for line in lines)


def main() -> None:
    """Write every file, and remove files without a case."""
    FOLDER.mkdir(exist_ok=True)
    for stale in set(FOLDER.glob("*.ll")) - {FOLDER / f"{name}.ll" for name in CASES}:
        stale.unlink()
    for name, emit in CASES.items():
        (FOLDER / f"{name}.ll").write_text(normalized(emit()))


if __name__ == "__main__":
    main()
