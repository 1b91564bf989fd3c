"""The run directory: what is written, in which form, and that nothing is overwritten."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from shine import runs
from shine.config import read_config, read_job
from shine.errors import ExportError
from shine.lang.parse import parse
from shine.model import Model, Result
from shine.runs import ResultRecord, chosen_folder, default_folder, read_result, run_job, write_result, write_text

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
data: {generate: {rows: 20, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}
evolution: {population: 20, max_size: 5}
stop: {generations: 2}
"""


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


def test_the_front_is_a_table(result: Result, tmp_path: Path) -> None:
    write_result(tmp_path, result)
    with (tmp_path / "front.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["expression"] for row in rows] == ["2.5", "a*a"]
    assert [row["best"] for row in rows] == ["0", "1"]
    assert float(rows[1]["loss"]) == 1e-30


def test_the_documentation_names_every_key_of_the_result() -> None:
    text = (ROOT / "docs" / "result.md").read_text()
    schema = ResultRecord.model_json_schema()
    keys = [
        *schema["properties"],
        *schema["$defs"]["ModelRecord"]["properties"],
        *schema["$defs"]["Versions"]["properties"],
    ]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_example_of_the_documentation_is_a_result() -> None:
    example = (ROOT / "docs" / "result.md").read_text().split("```json\n")[1].split("```")[0]
    assert ResultRecord.model_validate_json(example, strict=True).best.complexity == 8


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 2}'])
def test_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ExportError, match=r"result\.json: is no result of this version of Shine"):
        read_result(tmp_path)


def test_a_missing_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"result\.json: cannot be read: No such file"):
        read_result(tmp_path)


def test_default_folders_are_numbered(tmp_path: Path) -> None:
    made = [default_folder(Path("configs/x.yaml"), tmp_path / "runs") for _ in range(3)]
    assert [folder.name for folder in made] == ["x", "x-2", "x-3"]
    assert all(folder.is_dir() for folder in made)


def test_a_chosen_folder_must_be_new_or_empty(tmp_path: Path) -> None:
    assert chosen_folder(tmp_path / "a" / "b").is_dir()
    assert chosen_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    with pytest.raises(FileExistsError, match="is not empty; choose another folder"):
        chosen_folder(tmp_path / "a")
    (tmp_path / "a" / "result.json").touch()
    with pytest.raises(FileExistsError, match="already holds the result of a run"):
        chosen_folder(tmp_path / "a")


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(ExportError, match="cannot be written: Not a directory"):
        default_folder(Path("x.yaml"), tmp_path / "runs")
    with pytest.raises(ExportError, match="cannot be written"):
        chosen_folder(tmp_path / "runs")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "f", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "f", "\ud800")
    assert (tmp_path / "f").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_folder_that_is_gone_is_an_export_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be written: No such file or directory"):
        write_text(tmp_path / "gone" / "f", "text")


def test_a_run_keeps_what_it_used_and_found(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    job = read_job(tmp_path / "small.yaml", ["seed=3"])
    reported: list[int] = []
    result = run_job(job, chosen_folder(tmp_path / "out"), lambda progress: reported.append(progress.generation))
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == [
        "config.yaml", "front.csv", "log.jsonl", "result.json",
    ]  # fmt: skip
    assert read_config(tmp_path / "out" / "config.yaml") == job.config
    assert read_result(tmp_path / "out").best.expression == result.best.expression
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in lines] == reported


def test_the_kept_configuration_repeats_the_run(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    first = run_job(read_job(tmp_path / "small.yaml", ["seed=3"]), chosen_folder(tmp_path / "one"))
    second = run_job(read_job(tmp_path / "one" / "config.yaml"), chosen_folder(tmp_path / "two"))
    assert list(first.rows()) == list(second.rows())
