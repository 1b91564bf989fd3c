"""Are exact laws printed with the numbers that they have? `python experiments/whole_numbers.py --laws 300`.

Draws laws with whole and simple numbers: polynomials, quotients, products of linear factors, and sums with simple
constants. Each gives 60 rows without noise to a short search. A law that was found counts as plain if the chosen
formula has no more figures than the law: digits of all its numbers, but exponents. Laws that were not found to within
rounding are told apart. Nobody tunes for them: `--first-seed 1000` draws others.
"""

from __future__ import annotations

import argparse
import ast
import time
import warnings
from collections import Counter

import numpy as np

from shine import SymbolicRegressor
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

ROWS, GENERATIONS, EXACT = 60, 10, 1e-20


def whole(rng: np.random.Generator, most: int = 9) -> int:
    """A whole number but 0."""
    return int(rng.integers(1, most + 1)) * int(rng.choice([-1, 1]))


def simple(rng: np.random.Generator) -> str:
    """A decimal of two figures, a small fraction that is none, or a whole number of two figures."""
    decimal, fraction = f"{rng.integers(1, 99) / 10:g}", f"{rng.integers(1, 6)}/{rng.choice([3, 6, 7, 9])}"
    return str(rng.choice([decimal, fraction, str(rng.integers(2, 99))]))


def polynomial(rng: np.random.Generator) -> str:
    """A polynomial of the second or third degree, or one of two features."""
    a, b, c, d = (whole(rng, most) for most in (9, 20, 50, 5))
    return str(rng.choice([f"{a}*x0**2 + {b}*x0 + {c}", f"{d}*x0**3 + {a}*x0**2 + {b}*x0 + {c}",
                           f"{a}*x0*x1 + {b}*x0 + {c}*x1 + {d}", f"{a}*x0**2 + {b}*x0*x1 + {c}"]))  # fmt: skip


def quotient(rng: np.random.Generator) -> str:
    """A quotient of linear terms, or with a square."""
    a, b, c, d = (abs(whole(rng)) for _ in range(4))
    return str(rng.choice([f"({a}*x0 + {b})/({c}*x0 + {d})", f"{a}*x0/({b}*x1 + {c})", f"{a}/(x0**2 + {b}) + {c}",
                           f"({a}*x0 + {b}*x1)/(x0 + {c})"]))  # fmt: skip


def product(rng: np.random.Generator) -> str:
    """A product of linear factors, perhaps divided by a whole number."""
    a, b, c = whole(rng), whole(rng), abs(whole(rng))
    return str(rng.choice([f"x0*(x0 + {a})*(2*x0 + {b})/6", f"(x0 + {a})*(x0 + {b})/{c}",
                           f"x0*(x0 + {c})/2", f"(x0 + {a})*(x1 + {b})*{c}"]))  # fmt: skip


def with_simple_constants(rng: np.random.Generator) -> str:
    """A sum of terms with simple constants."""
    p, q, r = (simple(rng) for _ in range(3))
    return str(rng.choice([f"{p}*x0 + {q}*x1 + {r}", f"{p}*sqrt(x0) + {q}*x1", f"{p}*x0*x1 - {q}*x1 + {r}",
                           f"{p}*exp(x0/{rng.integers(2, 9)}) + {q}"]))  # fmt: skip


KINDS = (polynomial, quotient, product, with_simple_constants)


def figures(formula: str) -> int:
    """Digits of all numbers but exponents; leading and final zeros do not count."""
    tree = ast.parse(formula, mode="eval")
    powers = {id(node.right) for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)}
    numbers = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in powers]
    return sum(len(f"{number!r}".partition("e")[0].replace(".", "").strip("0")) or 1 for number in numbers)


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laws", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    found: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    begin = time.process_time()
    for seed in range(options.first_seed, options.first_seed + options.laws):
        kind, rng = KINDS[seed % len(KINDS)], np.random.default_rng(seed)
        law = kind(rng)
        X = rng.uniform(1, 6, (ROWS, 2 if "x1" in law else 1))
        y = evaluate(parse(law, [f"x{column}" for column in range(X.shape[1])]), list(X.T))
        estimator = SymbolicRegressor(generations=GENERATIONS, population_size=300, max_size=30, max_time=None,
                                      random_state=seed, n_jobs=1)  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
        if np.mean((estimator.predict(X) - y) ** 2) > EXACT * max(np.var(y), 1e-30):
            print(f"not found: {law}; instead {estimator.best_.expression}", flush=True)
            continue
        found[kind.__name__] += 1
        written = estimator.best_.expression
        plain[kind.__name__] += figures(written) <= figures(law)
        if figures(written) > figures(law):
            print(f"{law} was written as {written}", flush=True)
    print(f"\n{options.laws} laws, {time.process_time() - begin:.0f} s of the processor\n")
    print("| laws | found | as plain as the law |\n|---|---|---|")
    for name in found:
        print(f"| {name.replace('_', ' ')} | {found[name]} | {plain[name]} |")
    print(f"| all | {found.total()} | {plain.total()} ({plain.total() / max(found.total(), 1):.1%}) |")


if __name__ == "__main__":
    main()
