"""Each kind of model in each form, on the user's own columns, has the model's predictions: a table of all pairs."""

from __future__ import annotations

import ctypes
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.exports import LIBRARIES
from helpers.markers import mostly_slow
from unit.formats.write.kinds import KINDS, Case
from unit.formats.write.oracles import run
from unit.formats.write.spreadsheet import evaluated

import shine
import shine.aot
from shine.base.errors import ExportError
from shine.formats.write import EXPORTS
from shine.formats.write.json import from_json
from shine.lang.interpret import evaluate
from shine.lang.program.interpret import interpret

NUMBERS = frozenset({"python", "latex", "sympy", "json", "c", "torch", "jax", "onnx", "graphdef"})
"""Forms that take nothing but numbers: they say what numbers texts are."""


def _array(cells: Any) -> Any:
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def _columns(case: Case) -> list[Any]:
    """The features that the model has as parameters, as numbers."""
    nothing = np.zeros(len(case.wanted))
    return [case.features.get(name, nothing) for name in case.model.tree.parameters]


def in_python(case: Case, text: Any, folder: Path) -> Any:
    return run(text)(*_columns(case))


def in_pandas(case: Case, text: Any, folder: Path) -> Any:
    import pandas

    return run(text)(pandas.DataFrame(case.table)).to_numpy()


def in_polars(case: Case, text: Any, folder: Path) -> Any:
    polars = pytest.importorskip("polars")
    names: dict[str, Any] = {}
    exec(text, names)
    return _array(polars.DataFrame(case.table).select(names["f"])["f"].to_list())


def in_sympy(case: Case, text: Any, folder: Path) -> Any:
    sympy = pytest.importorskip("sympy")
    names: dict[str, Any] = {}
    exec(text, names)
    symbols = sorted(names["f"].free_symbols, key=str)
    values = [case.features[str(symbol)] for symbol in symbols]
    return sympy.lambdify(symbols, names["f"], "numpy")(*values)


def in_json(case: Case, text: Any, folder: Path) -> Any:
    return evaluate(from_json(text), _columns(case))


def in_c(case: Case, text: Any, folder: Path) -> Any:
    source, library = folder / "f.c", folder / "f.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True, capture_output=True)
    function = ctypes.CDLL(str(library)).f
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(case.model.tree.parameters)
    return np.array([function(*row) for row in zip(*_columns(case), strict=True)])


def in_torch(case: Case, text: Any, folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    return run(text)(*(torch.tensor(column) for column in _columns(case))).numpy()


def in_jax(case: Case, text: Any, folder: Path) -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return np.asarray(run(text)(*_columns(case)))


def in_onnx(case: Case, made: Any, folder: Path) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(made, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.column_stack(_columns(case))})[0]


def in_graphdef(case: Case, text: Any, folder: Path) -> Any:
    path = folder / "f.pbtxt"
    path.write_text(text, encoding="utf-8")
    graph = shine.load_graph(path)
    given = dict(zip(re.findall(r'name: "(.*)"\s+op: "Placeholder"', text), _columns(case), strict=True))
    (values,) = interpret(graph, {argument.label: given[argument.label] for argument in graph.arguments})
    return values


def in_excel(case: Case, text: Any, folder: Path) -> Any:
    cells = []
    for column in case.table.values():
        values = [_serial(cell) for cell in column]
        empty = np.nan if any(isinstance(each, float) for each in values) else None
        values = [empty if each is None else each for each in values]
        cells.append(np.array(values, object if empty is None else float))
    return evaluated(text.strip(), cells)


def _serial(cell: Any) -> Any:
    """A cell of Excel: dates are numbers."""
    if hasattr(cell, "year"):
        return float((np.datetime64(cell) - np.datetime64("1899-12-30")) / np.timedelta64(1, "D"))
    return float(cell) if isinstance(cell, int | float | np.floating) else cell


def in_sqlite(case: Case, text: Any, folder: Path) -> Any:
    rows = [tuple(_plain(cell) for cell in row) for row in zip(*case.table.values(), strict=True)]
    names = ", ".join('"' + heading.replace('"', '""') + '"' for heading in case.table)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE t ({names})")
        base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(case.table))})", rows)
        return _array(cell for (cell,) in base.execute(f"SELECT {text} FROM t").fetchall())


def _plain(cell: Any) -> Any:
    return str(cell) if hasattr(cell, "year") else cell


def in_duckdb(case: Case, text: Any, folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    import pandas

    frame = pandas.DataFrame(case.table)
    with duckdb.connect() as base:
        base.register("t", frame)
        return _array(cell for (cell,) in base.execute(f"SELECT {text} FROM t").fetchall())


def _shown(case: Case, text: Any, folder: Path) -> Any:
    return case.wanted  # LaTeX is for people: only what it says is checked


FORMS: dict[str, tuple[str, dict[str, Any], Callable[[Case, Any, Path], Any]]] = {
    "python": ("python", {}, in_python),
    "pandas": ("pandas", {}, in_pandas),
    "polars": ("polars", {}, in_polars),
    "latex": ("latex", {"precision": "exact"}, _shown),
    "sympy": ("sympy", {"precision": "exact"}, in_sympy),
    "json": ("json", {}, in_json),
    "c": ("c", {}, in_c),
    "torch": ("torch", {}, in_torch),
    "jax": ("jax", {}, in_jax),
    "onnx": ("onnx", {}, in_onnx),
    "graphdef": ("graphdef", {}, in_graphdef),
    "excel": ("excel", {}, in_excel),
    "sqlite": ("sql", {"dialect": "sqlite"}, in_sqlite),
    "duckdb": ("sql", {"dialect": "duckdb"}, in_duckdb),
}
"""Form, options, and how it is computed."""

QUICK = {
    (kind, form)
    for kind in ("template_with_texts", "texts_one_hot", "dates_and_flags", "missing_texts")
    for form in ("python", "pandas", "latex", "json", "excel", "sqlite")
}
"""Pairs that stand for the others: kinds with columns that are no numbers, in forms that need no library."""

MARKED = {("missing_values", "polars"), ("own_marks", "polars"), ("own_marks", "excel")}
"""Pairs of whose texts no other pair has all parts."""

PAIRS = [
    (kind, form)
    for row, kind in enumerate(KINDS)
    for column, form in enumerate(FORMS)
    if (row + column) % 3 == 0 or (kind, form) in QUICK | MARKED
]
"""Every kind with a third of the forms, and every form with a third of the kinds."""


def test_the_table_has_every_form():
    assert {form for form, _, _ in FORMS.values()} == set(EXPORTS)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), mostly_slow(PAIRS, QUICK))
def test_an_export_has_the_predictions_of_the_model(kind, form, tmp_path):
    to, options, computed = FORMS[form]
    if to in LIBRARIES:
        pytest.importorskip(LIBRARIES[to])
    if to == "c" and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    case = KINDS[kind]()
    made = case.model.export(to, **options)
    rounding = 1e-9 if to in ("excel", "sympy") else 1e-12
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(computed(case, made, tmp_path), case.wanted, rtol=rounding, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "form"),
    mostly_slow(
        product(["texts_ordinal", "template_with_texts", "streamed"], sorted(NUMBERS)),
        [("template_with_texts", form) for form in ("python", "latex", "json", "c")],
    ),
)
def test_a_form_of_numbers_says_what_numbers_texts_are(kind, form):
    if form in LIBRARIES:
        pytest.importorskip(LIBRARIES[form])
    case = KINDS[kind]()
    made = case.model.export(form)
    text = made.decode("utf-8", "replace") if isinstance(made, bytes) else made
    said = [rf"\text{{{each}}}" if form == "latex" else repr(each) for each in case.texts]
    if form == "latex" and kind == "streamed":
        said = ["site is s"]
    assert [each for each in said if each not in text] == []


SAID = "site is 0 where 'site' is 'A1', 1 where 'site' is 'A2', 2 where 'site' is 'B'."


NO_LINKER = pytest.mark.skipif(shutil.which("cc") is None, reason="a Python module links a shared library with cc")


@pytest.mark.parametrize("kind", ["header", pytest.param("python", marks=NO_LINKER)])
def test_code_for_any_target_says_what_numbers_texts_are(kind):
    files = shine.aot.compile(KINDS["template_with_texts"]().model, emit=[kind])
    assert any(SAID in content.decode("utf-8", "replace") for content in files.values())


@pytest.mark.parametrize("form", [*EXPORTS, "aot"])
def test_one_of_several_outputs_has_to_be_chosen(form):
    outputs = KINDS["template_of_two_outputs"]().model
    every = replace(outputs, output=None)
    with pytest.raises(ExportError, match=r"has 2 outputs; choose one, outputs\[0\] to outputs\[1\]"):
        shine.aot.compile(every) if form == "aot" else every.export(form)
