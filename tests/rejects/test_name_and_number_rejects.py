"""Odd names, numbers and folders give one clear error each, or a run that can be read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import ConfigError, DataError, ExportError
from shine.data.datasets.recipe import Feature, Normal, Recipe, Uniform, generate
from shine.data.loading import load
from shine.faces.config import read_job
from shine.runs import open_run, read_result, run_job

MAX = float(np.finfo(np.float64).max)
FEW = "evolution: {population: 10, max_size: 5, seeding: 0}\nfitness: {tier: reference}\nstop: {generations: 1}\n"


def job_of(folder: Path, text: str) -> Any:
    (folder / "c.yaml").write_text(text, encoding="utf-8")
    return read_job(folder / "c.yaml")


def problems_of(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        job_of(folder, text)
    assert max(map(len, str(caught.value).splitlines())) < 600
    return str(caught.value)


def generated(features: str, target: str = "a", more: str = "") -> str:
    return f"data: {{generate: {{rows: 50, features: {{{features}}}, target: '{target}'{more}}}}}\n{FEW}"


RECIPES = {
    "a: {uniform: {low: -1e308, high: 1e308}}": r"features.a.uniform.high: - low must be at most 1.798e+308|high - low",
    "a: {normal: {mean: 1e308, deviation: 1e308}}": "of 50 values exceed float64; choose",
    "a: {grid: {start: 1e308, step: 1e307}}": "of 50 values exceed float64; choose a smaller range",
    f"a: {{grid: {{start: 0, step: 1, count: {2**70}}}}}": f"count: must be at most {2**53}",
    f"a: {{grid: {{start: 0, step: 1, repeat: {2**70}}}}}": f"repeat: must be at most {2**53}",
    f"a: {{uniform: {{low: 0, high: {10**400}}}}}": "is too large; whole numbers are below 2**1024",
    f"a: {{integers: {{low: 0, high: {'9' * 4301}}}}}": "is too large; whole numbers are below 2**1024",
    f"a: {{integers: {{low: 0, high: 0x{'f' * 4301}}}}}": "is too large; whole numbers are below 2**1024",
    f"{'a' * 1000}: {{normal: {{}}}}": "the name has 1000 characters; names have at most 255",
    "a: {normal: {}}, µ: {normal: {}}, μ: {normal: {}}": "is one name with 'µ' in Unicode's normal form",
    "a: {normal: {}}, ｉｆ: {normal: {}}": "the name is a keyword of Python; 'if_' would do",
}


@pytest.mark.parametrize("features", RECIPES, ids=[features[:50] for features in RECIPES])
def test_recipes_that_cannot_be_drawn(features: str, tmp_path: Path) -> None:
    told = problems_of(tmp_path, generated(features))
    assert any(part in told for part in RECIPES[features].split("|")), told


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("1/(a - a)", "", "target: the formula is NaN or infinite in 50 of 50 rows, the first at a="),
        ("a*1e308*1e10", "", "target: the formula is NaN or infinite in 50 of 50 rows"),
        ("a*1e308", ", noise: 1", "noise: 1 standard deviations of the target exceed float64"),
        ("a*1e10", ", noise: 1e308", "noise: 1e+308 standard deviations of the target exceed float64"),
        ("a + " + "9" * 4301, "", "target: line 1, column 4306: the number is too large"),
        ("x" * 10_000, "", "names have at most 255"),
    ],
)
def test_targets_that_cannot_be_computed(target: str, more: str, message: str, tmp_path: Path) -> None:
    assert message in problems_of(tmp_path, generated("a: {uniform: {low: 0.5, high: 1.5}}", target, more))


def test_more_data_than_files_may_hold_are_not_made(tmp_path: Path) -> None:
    text = generated("a: {normal: {}}").replace("rows: 50", "rows: 100000000").replace("a: {", "b: {", 0)
    many = text.replace("a: {normal: {}}", ", ".join(f"{name}: {{normal: {{}}}}" for name in "abcdefgh"))
    assert "rows: the data would take 6.71 GiB; at most 4 GiB are made" in problems_of(tmp_path, many)


def test_faults_of_a_recipe_of_python_objects_are_named() -> None:
    with pytest.raises(DataError, match=r"^features\.a: \d+ of 100 values exceed float64"):
        generate(Recipe({"a": Feature(normal=Normal(0.0, MAX))}, "a", rows=100))
    with pytest.raises(ValueError, match="high - low must be at most"):
        Uniform(-1e308, 1e308)


ODD = "µ: {uniform: {low: 1, high: 2}}, ﬁ: {uniform: {low: 1, high: 2}}, p: {permute: µ}"


@pytest.mark.slow
def test_a_run_over_names_that_python_changes_reads_back(tmp_path: Path) -> None:
    text = generated(ODD, "µ*3 + ﬁ") + "primitives: [add, mul, 'def été(µ): return µ + 1']\nguesses: [µ + ﬁ]\n"
    text = text.replace("seeding: 0", "seeding: 0, complexity: {µ: 2, été: 3}")
    text += "constraints: {limits: {µ: 3, été: 1}, forbidden: [p], required: [ﬁ], monotonic: {µ: increasing}}\n"
    (tmp_path / "run").mkdir()
    found = run_job(job_of(tmp_path, text), tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert run.features == ("μ", "fi", "p")
    assert list(run.result.rows()) == list(found.rows())
    assert run.config.constraints.forbidden == ("p",)
    X = np.random.default_rng(0).uniform(1, 2, (9, 3))
    assert run.result.best.predict(X).tobytes() == found.best.predict(X).tobytes()


def test_a_result_of_before_names_were_normalized_is_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    found = run_job(job_of(tmp_path, generated(ODD, "µ*3 + ﬁ")), tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    record = json.loads(path.read_text())
    record |= {"features": ["µ", "ﬁ", "p"], "weights": {}}
    for model in [record["best"], *record["front"]]:
        model["expression"] = model["expression"].replace("μ", "µ").replace("fi", "ﬁ")
    path.write_text(json.dumps(record), encoding="utf-8")
    run = open_run(tmp_path / "run")
    assert run.features == ("μ", "fi", "p")
    assert list(run.result.rows()) == list(found.rows())
    path.write_text(json.dumps(record | {"features": ["µ", "μ", "p"]}), encoding="utf-8")
    with pytest.raises(ExportError, match=r"features: .*are one name in formulas") as caught:
        read_result(tmp_path / "run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cell", ["9" * 4301, "1" * 4301 + ",5", "x" * 10_000])
def test_cells_of_any_length_are_cut_in_messages(cell: str, tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_text(f"a\ty\n1\t{cell}\n")
    with pytest.raises(
        DataError, match=r"d\.tsv:2: column 'y': '[9x1]+\.\.\..*' is (too large|not a number)"
    ) as caught:
        load(tmp_path / "d.tsv", "y")
    assert len(str(caught.value)) < 300


def test_very_many_problems_are_not_all_listed(tmp_path: Path) -> None:
    text = generated("a: {normal: {}}") + "".join(f"key{number}: 1\n" for number in range(3000))
    told = problems_of(tmp_path, text).splitlines()
    assert len(told) == 51 and told[-1] == "and 2950 more problems"
