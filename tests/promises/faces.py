"""One tiny search by each face of Shine, in the words of `shine.evolve`, and what is common to their results."""

from __future__ import annotations

import inspect
import json
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from cli.commandline import shine as command
from promises.workshop import OPTIONS, arguments

import shine
from shine.faces.config import schema
from shine.runs import open_run
from shine.search.evolution.settings import EvolutionSettings
from shine.search.templates.template import Parameter, Unknown

X = np.random.default_rng(0).uniform(1, 5, (40, 2))
LAW = "x0*x1 + sin(x0)"
EXACT = X[:, 0] * X[:, 1] + np.sin(X[:, 0])
Y = EXACT + np.random.default_rng(1).normal(0, 0.1, 40)
"""The target of the law with some noise, so that no search ends by an exact formula."""

TINY = {
    "primitives": ["add", "mul", "sin"],
    "population": 40,
    "generations": 2,
    "seconds": None,
    "seeding": 0.0,
    "max_size": 7,
    "seed": 0,
    "threads": 1,
    "noise": "absolute",
}
"""The settings of every search that does not set them itself."""

ESTIMATORS = {
    "SymbolicRegressor": shine.SymbolicRegressor,
    "SymbolicClassifier": shine.SymbolicClassifier,
    "SymbolicTransformer": shine.SymbolicTransformer,
    "SymbolicDynamics": shine.SymbolicDynamics,
}
STATIC = ("evolve", "SymbolicRegressor", "SymbolicClassifier", "SymbolicTransformer", "config")
"""The faces that search for formulas of a table's rows."""

ESTIMATOR_WORDS = {
    "population": "population_size",
    "seconds": "max_time",
    "seed": "random_state",
    "threads": "n_jobs",
    "report": "callbacks",
}


def _of_templates() -> set[str]:
    """The arguments of `shine.template`, and of unknown functions and parameters, in the words of a configuration."""
    own = {"formula" if name == "source" else name for name in inspect.signature(shine.template).parameters}
    own |= {f"unknown.{each.name}" for each in fields(Unknown)} | {
        f"parameters.{each.name}" for each in fields(Parameter)
    }
    return {f"template.{name}" for name in own - {"unknown.name", "parameters.name", "parameters.by_group"}}


OTHERS = {"command line": lambda: {*OPTIONS}, "agents": arguments, "template": _of_templates}
"""The parameters of the faces that do not search by the words of `shine.evolve`."""

CONFIG_WORDS = {
    "generations": "stop.generations",
    "seconds": "stop.seconds",
    "stagnation": "stop.stagnation",
    "stop_loss": "stop.loss",
    "sample_weight": "data.weights",
    "features": "data.features",
    "sigma": "data.sigma",
    "groups": "data.groups",
    "times": "data.times",
    "loss_columns": "data.loss_columns",
    "workers": "parallel.workers",
    "X": "data.path",
    "y": "data.target",
}
"""Words of the faces, as docs/estimators.md lists them; all others are those of `shine.evolve`."""

_FITNESS = (
    *("loss", "noise", "validation", "validation_fraction", "outliers"),
    *("evidence", "linear_scaling", "dtype", "tier", "threads"),
)
_EVOLUTION = tuple(field.name for field in fields(EvolutionSettings))
_ROWS = ("sample_weight", "sigma", "groups", "times", "loss_columns")


def word(face: str, name: str) -> str:
    """The word of a face for a parameter of `shine.evolve`."""
    if face == "config":
        section = "fitness." if name in _FITNESS else "evolution." if name in _EVOLUTION else ""
        return CONFIG_WORDS.get(name, section + name)
    return name if face == "evolve" or face in OTHERS else ESTIMATOR_WORDS.get(name, name)


def parameters(face: str) -> set[str]:
    """All parameters of a face, as signatures, commands, tools or the schema of the configuration have them."""
    if face in OTHERS:
        return OTHERS[face]()
    if face == "config":
        return _keys(schema(), schema())
    functions = [shine.evolve] if face == "evolve" else [ESTIMATORS[face].__init__, ESTIMATORS[face].fit]
    return {name for each in functions for name in inspect.signature(each).parameters} - {"self"}


def _keys(document: dict[str, Any], node: dict[str, Any], prefix: str = "") -> set[str]:
    found = set()
    for key, value in node.get("properties", {}).items():
        text = json.dumps(value)
        inner = [name for name in document["$defs"] if f'"#/$defs/{name}"' in text]
        found.add(prefix + key)
        for name in inner:
            found |= _keys(document, document["$defs"][name], f"{prefix}{key}.")
    return found


@dataclass
class Found:
    """What a search found, whatever face it had."""

    expressions: list[str]
    best: str
    losses: list[float]
    generations: int
    evaluations: int
    stopped_by: str
    seconds: float
    fitted: Any

    def predict(self, rows: Any = X) -> np.ndarray:
        return np.asarray(self.fitted.predict(rows))

    @property
    def reason(self) -> str:
        return str(getattr(self.fitted, "front_", getattr(self.fitted, "front", None)).reason)

    @property
    def front(self) -> list[tuple[str, float]]:
        return list(zip(self.expressions, self.losses, strict=True))


def search(face: str, X: Any = X, y: Any = Y, **words: Any) -> Found:
    """The result of a tiny search by a face."""
    if face in ESTIMATORS:
        return _by_estimator(face, X, y, words)
    given = {**TINY, **words}
    return _of_result(_from_file(X, y, given) if face == "config" else shine.evolve(X, y, **given))


def estimator(face: str, **words: Any) -> Any:
    """An estimator with tiny settings, given in the words of `shine.evolve`."""
    known = parameters(face)
    given = {name: value for name, value in TINY.items() if name != "noise" or "noise" in known} | words
    named = {word(face, name): value for name, value in given.items()}
    own = {name: value for name, value in named.items() if name in known}
    settings = {name: value for name, value in named.items() if name not in known}
    return ESTIMATORS[face](**{**own, "settings": {**settings, **own.get("settings", {})}})


def _by_estimator(face: str, X: Any, y: Any, given: dict[str, Any]) -> Found:
    rows = {name: given.pop(name) for name in _ROWS if name in given}
    if face == "SymbolicClassifier" and np.asarray(y).dtype.kind == "f":
        y = np.asarray(y) > np.median(y)
    model = estimator(face, **given).fit(X, y, **rows)
    fronts = model.front_ if face == "SymbolicTransformer" else [model.front_]
    models = [each for front in fronts for each in front]
    best = model.best_[0] if face == "SymbolicTransformer" and model.best_ else model.best_
    return Found(
        [each.expression for each in models],
        getattr(best, "expression", ""),
        [each.loss for each in models],
        model.generations_,
        model.evaluations_,
        model.stopped_by_,
        model.seconds_,
        model,
    )


def _of_result(result: Any) -> Found:
    models = list(result.front)
    return Found(
        [each.expression for each in models],
        result.best.expression,
        [each.loss for each in models],
        result.generations,
        result.evaluations,
        result.stopped_by,
        result.seconds,
        result,
    )


def _from_file(X: Any, y: Any, given: dict[str, Any]) -> Any:
    """The result of a run of the command line whose configuration has the words."""
    table = pd.DataFrame({f"x{place}": column for place, column in enumerate(np.asarray(X).T)}).assign(y=y)
    document: dict[str, Any] = {"data": {"path": "rows.csv", "target": "y"}}
    for name in ("sample_weight", "sigma", "groups", "times"):
        if given.get(name) is not None:
            table[name], given[name] = given[name], name
    if "loss_columns" in given:
        table = table.assign(**given["loss_columns"])
        given["loss_columns"] = list(given["loss_columns"])
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(Path(folder, "rows.csv"), index=False)
        for name, value in given.items():
            *sections, key = word("config", name).split(".")
            place = document
            for section in sections:
                place = place.setdefault(section, {})
            place[key] = value
        return run_config(document, Path(folder))


def run_config(document: dict[str, Any], folder: Path, *options: str) -> Any:
    """The result of `shine evolve` with a configuration in a folder."""
    (folder / "run.yaml").write_text(yaml.safe_dump(document))
    ended = command("evolve", folder / "run.yaml", "--out", folder / "run", "--quiet", *options)
    assert ended.exit_code == 0, ended.output
    return open_run(folder / "run").result


def occurrences(expressions: Sequence[str], text: str) -> int:
    """How often a text is in the expressions."""
    return sum(each.count(text) for each in expressions)


def calculated(text: str, rows: np.ndarray) -> np.ndarray:
    """The values of a formula, by Python itself."""
    names = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "square": np.square}
    return np.zeros(len(rows)) + eval(text, {**names, "x0": rows[:, 0], "x1": rows[:, 1]})


class Told:
    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __call__(self, progress: Any) -> None:
        self.told.append("generation")

    def begin(self, settings: Any) -> None:
        self.told.append("begin")

    def end(self, result: Any) -> None:
        self.told.append("end")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def same(face: str, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two settings give one front."""
    return search(face, **one).front == search(face, **other).front
