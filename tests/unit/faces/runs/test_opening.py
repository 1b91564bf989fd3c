"""A run read back from its folder: its models predict the same numbers to the last bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shine.base.errors import ConfigError, ExportError
from shine.lang.parse import parse
from shine.runs import open_run, read_result, result_record, write_result
from shine.search.models.model import Model
from shine.search.models.result import Result

FEATURES = ("x10", "x2", "pi")


def kept(folder: Path, *formulas: str, weights: dict[str, int] | None = None) -> Result:
    """A result of some formulas, written to a folder."""
    models = tuple(Model(parse(text, FEATURES), 1.0 / (i + 1), 0.5, weights or {}) for i, text in enumerate(formulas))
    result = Result(models, len(models) - 1, 3, 60, 0.25, 7, "loss")  # type: ignore[arg-type]
    write_result(folder, result, "height", ["add", "mul"])
    return result


@pytest.mark.parametrize(
    "formula",
    [
        "0.1*x10 + 1e-300*x2 - pi/3",
        "x10**-2.0 + -x2",
        "(x2 if x10 > 0.30000000000000004 else -0.0)",
        "min(x10, x2, 1)/(2 - pi)",
        "square(x2) + sqrt(abs(x10)) - 7//x2 % 3",
        "not (x10 < x2 <= pi) and x2 or 5e-324",
        "1.7976931348623157e308*x2",
    ],
)
def test_formulas_predict_what_they_did(formula: str, tmp_path: Path) -> None:
    result = kept(tmp_path, "1.5", formula)
    again = open_run(tmp_path).result
    assert again.front[1].tree == result.front[1].tree
    X = np.random.default_rng(0).normal(size=(500, 3)) * 10.0 ** np.arange(-1, 2)
    for model, other in zip(result.front, again.front, strict=True):
        assert model.predict(X).tobytes() == other.predict(X).tobytes()


def test_the_noise_that_weighted_the_losses_is_kept(tmp_path: Path) -> None:
    models = [replace(model, noise="counts") for model in kept(tmp_path, "1.5", "x2").front]
    write_result(tmp_path, Result(tuple(models), 1, 3, 60, 0.25, 7, "loss"))  # type: ignore[arg-type]
    assert open_run(tmp_path).result.front.noise == "counts"


def test_a_run_tells_of_everything_it_kept(tmp_path: Path) -> None:
    result = kept(tmp_path, "x2", "x2*x10", weights={"mul": 3})
    run = open_run(str(tmp_path))
    assert (run.features, run.target, run.folder) == (FEATURES, "height", tmp_path)
    assert run.record == result_record(result, "height", ["add", "mul"]) == read_result(tmp_path)
    again = run.result
    assert list(again.rows()) == list(result.rows())
    assert again.best.complexity == 5
    assert (again.generations, again.evaluations, again.seconds, again.seed, again.stopped_by) == (
        3,
        60,
        0.25,
        7,
        "loss",
    )


def test_a_run_reads_its_rows_again(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x2,x10,y\n1,2,3\n-99,5,6\n")
    (tmp_path / "config.yaml").write_text("data: {path: rows.csv, target: y, missing: drop, missing_marks: [-99]}")
    rows = open_run(tmp_path).data
    assert (rows.features, rows.columns.tolist(), rows.target.tolist()) == (("x2", "x10"), [[1.0], [2.0]], [3.0])
    (tmp_path / "config.yaml").write_text("data: {path: rows.csv}\ndynamics: {time: x2, states: [y]}")
    (tmp_path / "rows.csv").write_text("x2,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
    assert open_run(tmp_path).data.runs[0].states.ravel().tolist() == [float(i * i) for i in range(9)]
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(ConfigError, match=r"rows\.csv"):
        _ = open_run(tmp_path).data


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ExportError, match=r"holds no run; a run has a config\.yaml"):
            open_run(folder)


def test_an_unfinished_run_can_be_opened_but_has_no_result(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data: {path: x.csv, target: y}")
    run = open_run(tmp_path)
    assert run.config.data.target == "y"
    with pytest.raises(ExportError, match=r"result\.json: cannot be read: No such file"):
        _ = run.result


def test_a_result_without_its_configuration_can_be_used(tmp_path: Path) -> None:
    kept(tmp_path, "x2*2")
    run = open_run(tmp_path)
    assert run.result.predict([[1, 2, 3]]).tolist() == [4]
    with pytest.raises(ConfigError):
        _ = run.config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ["a"]}, "'x2': unknown name 'x2'|'x2': .*unknown name 'x2'"),
        ({"best": {"expression": "x10", "loss": 1.0, "complexity": 1, "r2": 0.5}}, "not one of the front"),
        ({"schema_version": 3}, "is not a result of this version of Shine"),
    ],
)
def test_a_result_that_does_not_fit_together_is_refused(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    kept(tmp_path, "x2")
    record = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps(record | change))
    with pytest.raises(ExportError, match=message):
        _ = open_run(tmp_path).result
