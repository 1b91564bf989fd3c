"""The fast reader of configurations reads what the other one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from shine.faces.config import dump_config, read_config
from shine.faces.config.document import read_document
from shine.faces.config.values import read_values

ROOT = Path(__file__).parents[4]
TEXTS = [
    "a: 1e-12\nb: 12:30\nc: no\nd: 2024-01-01\ne: ~\ng: -.5\nh: '1'\ni: 1_000",
    "a: 010\nb: 0o17\nc: 0x1f\nd: [007, 0.05, 1.005]",
    "a: &x {b: 1}\nc: *x",
    "seeds: [x*x]\nprimitives: [add]",
    "größe: µ\nb: {}\nc: []\nd: ''",
    "a: " + "[" * 29 + "]" * 29,
    "a: " + "[1, 2]\nb: 9007199254740993\nc: 123456789012345678901234567890",
    "a:\n- b\n- c: d\n  e: |\n    def f(x):\n        return 2*x\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_plain_values_are_those_of_the_other_reader(text: str, tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_values(path) == (read_document(path).value, "")


@pytest.mark.parametrize("name", ["pythagoras", "diabetes", "pagie1"])
def test_what_shine_writes_is_read_back(name: str, tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(read_config(ROOT / f"configs/{name}.yaml")), encoding="utf-8")
    assert read_values(path) == (read_document(path).value, "")


@pytest.mark.parametrize("text", ["a: !!python/object:os.system x", "a: 1\na: 2", "1: 2"])
def test_a_problem_is_told(text: str, tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_values(path)[1] or text == "a: 1\na: 2"
