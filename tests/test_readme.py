"""The README is true: its commands, its Python and its configuration."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from shine.faces.config import read_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_two_commands_do_all_the_set_up():
    commands = [line for line in README.splitlines() if line.startswith("pip install")]
    assert commands == [
        "pip install . && shine evolve configs/pythagoras.yaml",
        "pip install -e '.[dev]' && pytest",
    ]


@pytest.mark.slow
def test_the_first_command_finds_the_formula(tmp_path):
    words = ["evolve", str(ROOT / "configs/pythagoras.yaml"), "--out", str(tmp_path / "run")]
    run = subprocess.run([sys.executable, "-m", "shine", *words], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    printed, *_ = run.stdout.partition("\n\n")
    assert blocks("")[1] == f"{printed}\n"
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "result.json", "front.csv", "log.jsonl", "config.yaml", "checkpoints",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[-1][:40])
def test_its_python_runs(code, tmp_path, monkeypatch):
    script = tmp_path / "block.py"
    script.write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")


def test_values_in_comments_are_those_the_code_gives(tmp_path):
    code = next(code for code in blocks("python") if "shine.jit(" in code)
    shown = re.findall(r"^([a-z]\S.*?)\s+# ([0-9.]+)", code, re.MULTILINE)
    assert len(shown) == 2
    checks = "".join(f"assert {expression} == {value}\n" for expression, value in shown)
    script = tmp_path / "block.py"
    script.write_text(code + checks, encoding="utf-8")
    runpy.run_path(str(script))


def test_its_configuration_is_valid(tmp_path):
    (text,) = blocks("yaml")
    (tmp_path / "data.csv").write_text("a,b,y\n3,4,5\n5,12,13\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    config = read_config(tmp_path / "config.yaml")
    assert config.primitives == ("add", "sub", "mul", "div", "sqrt", "square")


def test_files_and_folders_it_links_to_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
