"""The packages of codegen import downwards, imports in functions included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shine.codegen

ROOT = Path(shine.codegen.__file__).parent
BELOW = {
    "vecmath": set(),
    "": {"vecmath"},
    "native": {"", "vecmath"},
    "machine": {"", "vecmath", "native"},
    "gradient": {"", "vecmath", "native", "machine"},
}
"""Packages that each package imports; the empty name is that of the files beside them."""


def room(module: str) -> str:
    """The package of a module of codegen, by its full name."""
    name = module.removeprefix("shine.codegen").lstrip(".").split(".")[0]
    return name if name in BELOW else ""


def test_every_package_is_in_the_table():
    assert {path.parent.relative_to(ROOT).as_posix().replace(".", "") for path in ROOT.rglob("*.py")} == set(BELOW)


@pytest.mark.parametrize("name", BELOW)
def test_imports_point_down(name):
    allowed = BELOW[name] | {name}
    for path in (ROOT / name).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("shine.codegen"):
                continue
            found = {room(f"{node.module}.{alias.name}") for alias in node.names}
            assert found <= allowed, f"{path.name}, line {node.lineno}"
