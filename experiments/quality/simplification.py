"""SRBench's own test for a recovered formula, by SymPy: `--sympy SECONDS` adds its answer to the table.

Constants are rounded to three decimals (those below 1e-4 are zero), and the difference and the quotient of formula and
truth are simplified; if one of them is a constant, the formula is recovered. `quality.recovery` says why this does not
decide here. Rounded constants are exact fractions for SymPy, which is kinder than decimals; features with a
positive range are positive.

Simplification can take any time, so it runs in a process that can be killed: `python -m quality.simplification`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from quality.formulas import Formula, Operation, parse_formula

EXPERIMENTS = Path(__file__).resolve().parents[1]


def simplified(
    candidate: str, truth: str, features: Sequence[str], bounds: Sequence[tuple[float, float]], seconds: float
) -> str:
    """Whether SymPy finds that a formula is the truth up to an added constant or a factor.

    Parameters
    ----------
    candidate, truth : str
    features : sequence of str
    bounds : sequence of (low, high)
        Range of each feature.
    seconds : float
        Limit, without SymPy's start.

    Returns
    -------
    {"yes", "no", "timeout", "failed"}
        "failed" if SymPy ended with an error.
    """
    question = json.dumps([candidate, truth, list(features), [low > 0 for low, _ in bounds]])
    command = [sys.executable, "-m", "quality.simplification"]
    try:
        done = subprocess.run(
            command, input=question, capture_output=True, text=True, cwd=EXPERIMENTS, timeout=seconds + 5, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return done.stdout.strip() if done.returncode == 0 else "failed"


def is_truth(candidate: Formula, truth: Formula, positive: Sequence[bool]) -> bool:
    """The answer for `simplified`, without a time limit."""
    sympy: Any = import_module("sympy")
    symbols = [sympy.Symbol(f"x{i}", real=True, positive=sure or None) for i, sure in enumerate(positive)]
    first, second = (
        formula.evaluate(symbols, _constants(formula, sympy), _operations(sympy)) for formula in (candidate, truth)
    )
    if not sympy.simplify(first).free_symbols:
        return False
    return any(not sympy.simplify(relation).free_symbols for relation in (first - second, first / second))


def rounded(formula: Formula) -> list[Fraction]:
    """The constants of a formula, rounded to three decimals; those below 1e-4 are zero."""
    return [Fraction(0) if abs(value) < 1e-4 else round(Fraction(value), 3) for value in formula.values.tolist()]


def _constants(formula: Formula, sympy: Any) -> list[Any]:
    return [sympy.Rational(value.numerator, value.denominator) for value in rounded(formula)]


def _operations(sympy: Any) -> dict[str, Operation]:
    """SymPy's names of the functions."""
    named = ("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "harmonic")
    return {name: getattr(sympy, name) for name in named} | {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "pow": lambda a, b: a**b,
        "neg": lambda a: -a,
        "square": lambda a: a**2,
        "abs": sympy.Abs,
        "cube": lambda a: a**3,
        "cbrt": lambda a: a ** sympy.Rational(1, 3),
        "inv": lambda a: 1 / a,
        "log10": lambda a: sympy.log(a, 10),
        "log2": lambda a: sympy.log(a, 2),
        "log1p": lambda a: sympy.log(1 + a),
        "expm1": lambda a: sympy.exp(a) - 1,
        # The rows of a problem with a truth never need the protection.
        "protected_div": lambda a, b: a / b,
        "protected_log": lambda a: sympy.log(sympy.Abs(a)),
        "protected_sqrt": lambda a: sympy.sqrt(sympy.Abs(a)),
        "capped_exp": sympy.exp,
    }


def main() -> None:
    candidate, truth, features, positive = json.load(sys.stdin)
    first, second = (parse_formula(text, features) for text in (candidate, truth))
    print("yes" if is_truth(first, second, positive) else "no")


if __name__ == "__main__":
    main()
