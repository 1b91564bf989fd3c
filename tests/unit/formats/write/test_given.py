"""Every export takes a model in the place of its tree, with the headings of the model."""

from __future__ import annotations

import inspect
from importlib import import_module

import numpy as np
import pytest

import shine
from shine.formats.write.json import to_json
from shine.formats.write.pandas import pandas_source
from shine.formats.write.python import python_source
from shine.formats.write.sources import takes_models
from shine.formats.write.sql import sql_expression
from shine.search.models.model import Model

HEADINGS = {"area": "my area", "b": "b"}
MODEL = Model(shine.parse("2*area + b", ("area", "b")), 0.0, 1.0, {}, HEADINGS)


@pytest.mark.parametrize("export", [python_source, pandas_source, sql_expression, to_json])
def test_a_model_brings_its_headings(export):
    assert export(MODEL) == export(MODEL.tree, headings=HEADINGS)
    assert "my area" in export(MODEL)
    assert "my area" not in export(MODEL, headings={})


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_functions_of_libraries_do_so_too(library):
    pytest.importorskip(library)
    made = getattr(import_module(f"shine.formats.write.{library}"), f"{library}_function")(MODEL)
    columns = [
        import_module("torch").tensor([1.0, 2.0]) if library == "torch" else np.array([1.0, 2.0], np.float32)
    ] * 2
    assert float(made(*columns)[0]) == 3.0


def test_what_is_no_formula_is_refused():
    class Estimator:
        best_ = MODEL

    with pytest.raises(TypeError, match="not the Estimator; pass its best_"):
        python_source(Estimator())
    with pytest.raises(TypeError, match=r"not 'a \+ b'; shine.parse makes a tree"):
        python_source("a + b")


def test_a_decorated_export_keeps_its_signature():
    def form(tree, *, headings=None):
        """Text."""

    assert inspect.signature(takes_models(form)) == inspect.signature(form)


def test_a_model_is_a_formula_for_parse_jit_and_guesses():
    assert shine.parse(MODEL) is MODEL.tree
    assert shine.jit(MODEL)(1.0, 2.0) == 4.0
    result = shine.evolve([[1.0, 2.0], [2.0, 5.0]], [4.0, 9.0], features=["area", "b"], guesses=[MODEL], generations=0)
    assert result.best.loss < 1e-20
