"""The same seed gives the same front on every processor: numbers that decide about formulas are added up in a fixed
order, and computed with Shine's own functions."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.markers import mostly_slow

import shine

ROOT = Path(shine.__file__).parent

DECIDING_ESTIMATORS = ("checks", "component_search", "fit_searches", "transformer")

AFTERWARDS = {"measuring"}
"""Packages of the search that answer questions about a finished front."""

DECIDING = sorted(
    path
    for place in (
        *("search", "evaluate/domain", "evaluate/protocols.py", "evaluate/scores.py", "evaluate/rollouts"),
        *(f"data/datasets/{name}.py" for name in ("dataset", "recipe", "serial")),
        *(f"faces/estimators/{name}.py" for name in DECIDING_ESTIMATORS),
    )
    for path in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    if path.parent.name not in AFTERWARDS
)
"""Files whose numbers decide which formulas a search finds and hands over."""

OF_THE_LIBRARY = {
    "dot",
    "vdot",
    "inner",
    "outer_product",
    "matmul",
    "tensordot",
    "einsum",
    "linalg",
    "polyfit",
    "corrcoef",
}
OF_THE_LIBRARY |= {"cov", "convolve", "correlate", "interp2d", "average"}
"""NumPy functions whose order of summation is not specified."""

ELEMENTARY = {
    "log",
    "log2",
    "log10",
    "log1p",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
}
ELEMENTARY |= {
    "arctan2",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "power",
    "float_power",
    "cbrt",
    "hypot",
}
"""NumPy functions whose last bits depend on the processor's vector instructions."""

UNSTABLE = {"argpartition", "partition"}
"""NumPy functions whose order of equal elements depends on the processor."""

EXACT_EXPONENTS = {"2", "0.5"}
"""Exponents that NumPy replaces by products and square roots."""

PYTHONS_POWERS = {
    ("symmetries.py", "variables ** degree"),
    ("model.py", "step ** order"),
    ("explicit.py", "max(1e-10, base) ** exponent"),
    ("outliers.py", "(width - 1) ** (count - 1)"),
    ("outliers.py", "(dataset.n_rows - 1) ** (count - 1)"),
}
"""Powers of single numbers; in kernels, those of formulas."""

WHOLE_NUMBERS = {
    ("expression_bank.py", "rounded @ multipliers"),
    ("screen.py", "rounded @ multipliers"),
    ("dimensional_analysis.py", "free @ (1 << np.arange(self._arity))"),
    ("dimensional_analysis.py", "self._conditions[functions, members] @ dimensions"),
    ("dimensional_analysis.py", "self._results[functions, members][:, None, :] @ dimensions"),
}
"""Matrix products of integers, or of exponents that are small fractions: exact in any order."""


@pytest.mark.parametrize(
    "path", mostly_slow(DECIDING, fast=list(DECIDING)[::8]), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_no_sum_and_no_function_depends_on_the_processor(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
            if node.attr == "einsum":
                # A view of a diagonal is no sum.
                continue
            assert node.attr not in OF_THE_LIBRARY | ELEMENTARY | UNSTABLE, f"np.{node.attr} in line {node.lineno}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not isinstance(node.left, ast.Constant):
            known = ast.unparse(node.right) in EXACT_EXPONENTS or (path.name, ast.unparse(node)) in PYTHONS_POWERS
            assert known, f"line {node.lineno}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            assert (path.name, ast.unparse(node)) in WHOLE_NUMBERS, f"line {node.lineno}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.einsum":
            assert ast.literal_eval(node.args[0]) == "jji->ji", f"a sum in line {node.lineno}"


FRONTS = """
import numpy as np
from shine import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

rng = np.random.default_rng(5)
x, wide, noise = rng.uniform(1, 3, (200, 4)), rng.standard_normal((200, 30)), rng.standard_normal(200)
weights = rng.uniform(0.1, 2, 200)
common = {
    "generations": 2, "max_time": None, "population_size": 100, "random_state": 1, "settings": {"seeding_members": 2000}
}
noisy = np.sqrt(np.abs(x[:, 0] - 2)) * x[:, 1] + 0.3 * noise
searches = [
    (SymbolicRegressor(n_jobs=1), x, 3 * x[:, 0] * np.sqrt(x[:, 1]) + 0.7 * x[:, 2] / x[:, 3] + 0.05 * noise, {}),
    (SymbolicRegressor(n_jobs=2, loss="mae"), x, noisy, {"sample_weight": weights}),
    (SymbolicRegressor(n_jobs=1), wide, wide[:, 3] * wide[:, 7] + wide[:, 11] + 0.1 * noise, {}),
    (SymbolicClassifier(n_jobs=1), x, noisy > 1, {}),
    (SymbolicTransformer(n_components=2, n_jobs=1), x, noisy, {}),
]
for model, X, y, options in searches:
    model.set_params(**common).fit(X, y, **options)
    fronts = model.front_ if isinstance(model.front_, list) else [model.front_]
    for front in fronts:
        for position, formula in enumerate(front):
            print(position == front.best_index, formula.expression, repr(formula.loss), repr(formula.r2))
"""


def fronts(**environment: str) -> str:
    """The fronts that a process prints."""
    run = subprocess.run(
        [sys.executable, "-c", FRONTS],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return run.stdout


WITHOUT_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX SVE"
WITHOUT_AVX2 = f"X86_V3 AVX2 FMA3 ASIMDHP ASIMDDP {WITHOUT_AVX512}"
"""NumPy's names of groups of vector instructions, before and since version 2.4; it ignores unknown ones."""


@pytest.fixture(scope="module")
def here():
    return fronts()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the variables that choose kernels are those of wheels for Linux")
@pytest.mark.parametrize(
    "environment",
    [
        {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"},
        {"OPENBLAS_CORETYPE": "SkylakeX"},
        {"NPY_DISABLE_CPU_FEATURES": WITHOUT_AVX2, "OPENBLAS_CORETYPE": "Nehalem"},
    ],
    ids=["Prescott", "SkylakeX", "without AVX2"],
)
def test_the_fronts_are_the_same_under_other_kernels_and_vector_instructions(environment, here):
    assert len(here.splitlines()) > 20
    assert fronts(**environment) == here
