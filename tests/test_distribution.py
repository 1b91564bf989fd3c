"""Whatever tells users to install something names a distribution and an extra that exist."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import shine
from shine.base.errors import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PACKAGE = Path(shine.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
NEEDED = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]
OTHERS = {re.split(r"\W*[\[>]", each)[0] for each in NEEDED}
OTHERS |= {"build", "duckdb", "ipython", "mlflow", "numexpr", "twine"}
"""Distributions of others that may be named."""

SOURCES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = [ROOT / folder for folder in ("configs", "docs", "experiments", "skills")]
TEXTS = [*SOURCES, *ROOT.glob("*.*"), *(path for folder in FOLDERS for path in folder.rglob("*"))]
TEXTS = [path for path in TEXTS if path.suffix in (".py", ".md", ".yaml", ".yml", ".cff")]
WORD = r"""['"]?(?:--target \w+|-+[a-z-]+|[\w.-]*\w(?![\w/])|\.)(?:\[[\w,]+\])?(?:==[\w.]+)?['"]?"""


def installed() -> Iterator[tuple[str, str, set[str]]]:
    """File, distribution and extras of each `pip install`."""
    for path in TEXTS:
        for command in re.findall(rf"pip install\s+({WORD}(?: {WORD})*)", path.read_text(encoding="utf-8")):
            for word in re.findall(WORD, command):
                name, _, extras = word.strip("'\"]").partition("[")
                if not name.startswith("-"):
                    yield path.name, name.partition("==")[0], set(extras.split(",")) - {""}


def test_each_pip_install_names_a_distribution_and_extras_that_exist() -> None:
    named = list(installed())
    assert len(named) > 25
    assert [each for each in named if each[1] not in {".", PROJECT["name"]} | OTHERS] == []
    assert [each for each in named if each[1] in {".", PROJECT["name"]} and not each[2] <= EXTRAS] == []


def test_each_hint_of_a_message_names_an_extra_that_exists() -> None:
    hints = [
        (path.name, ast.literal_eval(call.args[2]))
        for path in SOURCES
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("MissingExtraError", "needing")
        if isinstance(call.args[2], ast.Constant)
    ]
    assert len(hints) > 20
    assert [hint for hint in hints if hint[1] not in EXTRAS] == []
    assert {"jax", "torch"} <= EXTRAS  # of array libraries, whose name is the extra's


def test_no_text_names_extras_of_another_project() -> None:
    assert [path for path in TEXTS if re.search(r"(?<![\w.-])shine\[[a-z,]+\]", path.read_text(encoding="utf-8"))] == []


def test_the_distribution_has_the_name_that_messages_say() -> None:
    assert PROJECT["name"] == DISTRIBUTION


@pytest.mark.slow
def test_each_package_that_is_imported_is_declared() -> None:
    nodes = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_bytes()))]
    found = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    # IPython is imported only where it runs; pydantic brings a core of one version.
    names = {"google": "protobuf", "sklearn": "scikit_learn", "yaml": "PyYAML", "pydantic_core": "pydantic"}
    foreign = {names.get(name, name) for name in found - sys.stdlib_module_names - {"shine", "IPython"}}
    assert foreign - {name.replace("-", "_") for name in OTHERS} == set()
