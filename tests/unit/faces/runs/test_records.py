"""result.json and front.csv: their contents and their form."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import shine
from shine import runs
from shine.base.errors import ExportError
from shine.faces.runs.opening import Run
from shine.lang.parse import parse
from shine.runs import ResultRecord, read_result, write_result
from shine.search.models.model import Model
from shine.search.models.result import Result

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def result() -> Result:
    models = (Model(parse("2.5", ["a"]), 0.5, 0.0), Model(parse("a*a", ["a"]), 1e-30, 1.0))
    return Result(models, 1, 3, 60, 0.25, 7, "loss")


def test_a_result_reads_back_equal(result: Result, tmp_path: Path) -> None:
    write_result(tmp_path, result)
    record = read_result(tmp_path)
    assert record == runs.result_record(result)
    assert record.best.expression == "a*a"
    assert (record.generations, record.evaluations, record.seed, record.stopped_by) == (3, 60, 7, "loss")
    assert record.versions.python.startswith("3.")


def test_result_json_is_plain_json_without_nan(result: Result, tmp_path: Path) -> None:
    odd = Result((Model(parse("a"), 1.0, math.nan),), 0, 0, 1, 0.1, 0, "seconds")
    write_result(tmp_path, odd)
    text = (tmp_path / "result.json").read_text()

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse)["best"]["r2"] is None


def test_the_documentation_names_every_key_of_the_result() -> None:
    text = (ROOT / "docs" / "result.md").read_text(encoding="utf-8")
    schema = ResultRecord.model_json_schema()
    records = [schema, *(part for name, part in schema["$defs"].items() if name.endswith(("Record", "Versions")))]
    listed = re.findall(r"^\| `(\w+)` \| .{8,} \|$", text.partition("```json")[0], re.MULTILINE)
    assert sorted(listed) == sorted(key for record in records for key in record["properties"])


def test_the_example_of_the_documentation_is_a_result() -> None:
    example = (ROOT / "docs" / "result.md").read_text().split("```json\n")[1].split("```")[0]
    assert ResultRecord.model_validate_json(example, strict=True).best.complexity == 8


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}'])
def test_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ExportError, match=r"result\.json: is not a result of this version of Shine"):
        read_result(tmp_path)


def test_a_missing_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"result\.json: cannot be read: No such file"):
        read_result(tmp_path)


def test_headings_and_digits_come_back_from_the_folder(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(1, 5, (40, 2))
    found = shine.evolve(
        X, X[:, 0] * X[:, 1], features=["my area (m²)", "b"], primitives=["mul"], generations=1, population=20
    )
    found = replace(found, front=[replace(model, digits=4) for model in found.front])
    write_result(tmp_path, found)
    best = Run(tmp_path).result.best
    assert best.headings == {"my_area_m2": "my area (m²)", "b": "b"} == found.best.headings
    assert best.digits == 4


def test_headings_must_be_as_many_as_features(result: Result, tmp_path: Path) -> None:
    write_result(tmp_path, result)
    content = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**content, "headings": ["a"] * (len(content["features"]) + 1)}))
    with pytest.raises(ExportError, match=r"result.json: there are \d+ headings for \d+ features"):
        _ = Run(tmp_path).result
