"""Tests import no experiment, and no experiment imports a test. The experiments' own tests may share its strategies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS, EXPERIMENTS = ROOT / "tests", ROOT / "experiments"


def imported(folder: Path) -> set[tuple[str, str]]:
    """Pairs of a file of a folder and the top-level name of a module that it imports."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            found |= {(str(path.relative_to(ROOT)), name.split(".")[0]) for name in names}
    return found


def modules(folder: Path) -> set[str]:
    """Top-level names that the folder adds when it is on the path."""
    scripts = {path.stem for path in folder.glob("*.py")}
    return scripts | {path.name for path in folder.iterdir() if path.is_dir()} | {folder.name}


@pytest.mark.slow
def test_tests_import_no_experiment():
    names = modules(EXPERIMENTS) - {"tests"}
    assert names > {"feynman", "quality"}
    assert not {(path, name) for path, name in imported(TESTS) if name in names}


def test_experiments_import_no_tests():
    names = modules(TESTS)
    assert names > {"helpers", "strategies", "unit", "tests"}
    users = {(path, name) for path, name in imported(EXPERIMENTS) if name in names}
    assert not {(path, name) for path, name in users if not path.startswith("experiments/tests/")}
