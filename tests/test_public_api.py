"""`import shine`: its names, their documentation, and the modules it must not import."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import shine

ROOT = Path(shine.__file__).parent
HEAVY = ("numpy", "llvmlite", "pydantic", "sklearn", "yaml", "tqdm", "click", "pandas", "matplotlib", "sympy")
"""Modules that `import shine` must not load."""

EXCEPTIONS = [name for name in shine.__all__ if name.endswith(("Error", "Warning"))]
DOCUMENTED = [name for name in shine.__all__ if name not in EXCEPTIONS]
FUNCTIONS = [name for name in DOCUMENTED if inspect.isfunction(getattr(shine, name))]


@cache
def syntax() -> dict[Path, ast.Module]:
    """The syntax of all modules."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def sections(text: str) -> set[str]:
    """Headings of a numpydoc docstring."""
    lines = inspect.cleandoc(text).splitlines()
    return {title for title, rule in pairwise(lines) if title and rule == "-" * len(title)}


def parameters(obj: object) -> list[str]:
    """Names of a function's parameters, as a caller sees them."""
    names = inspect.signature(obj).parameters  # type: ignore[arg-type]
    return [name for name in names if name not in ("self", "settings")]


def public_definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Public functions, classes and their methods, by name."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body)


def test_the_public_names_are_listed_in_order_and_exist():
    assert shine.__all__ == sorted(shine.__all__)
    assert all(hasattr(shine, name) for name in shine.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No shine attribute nothing"):
        _ = shine.nothing


def test_names_can_be_completed_before_they_are_imported():
    code = "import shine; print(*sorted(set(shine.__all__) - set(dir(shine))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.parent, check=True)
    assert done.stdout.split() == []


def test_every_public_error_is_a_shine_error():
    errors = [name for name in EXCEPTIONS if name.endswith("Error")]
    assert all(issubclass(getattr(shine, name), shine.ShineError) for name in errors)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_parameter_is_documented(name):
    obj = getattr(shine, name)
    text = inspect.cleandoc(obj.__doc__)
    assert "Parameters" in sections(text)
    documented = text[text.index("Parameters\n") :]
    assert [parameter for parameter in parameters(obj) if parameter not in documented] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_tells_its_result_its_errors_and_an_example(name):
    assert {"Parameters", "Returns", "Raises", "Examples"} <= sections(getattr(shine, name).__doc__)


@cache
def names_documented_by_protocols() -> set[str]:
    """Methods of protocols: the protocol documents them for all implementations."""
    classes = [node for tree in syntax().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    protocols = [node for node in classes if "Protocol" in [ast.unparse(base) for base in node.bases]]
    return {name for protocol in protocols for name, _ in public_definitions(protocol.body)}


def test_all_that_is_public_has_a_docstring():
    assert [path for path, tree in syntax().items() if not ast.get_docstring(tree)] == []
    bare = [
        (path, name)
        for path, tree in syntax().items()
        for name, node in public_definitions(tree.body)
        if not ast.get_docstring(node)
    ]
    # The name of a visitor's method, the node it visits, is its documentation.
    documented = names_documented_by_protocols()
    assert [
        each for each in bare if each[1] not in documented and not each[1].startswith(("visit", "generic_visit"))
    ] == []


@pytest.mark.parametrize("name", [n for n in DOCUMENTED if dataclasses.is_dataclass(getattr(shine, n))])
def test_public_records_are_frozen(name):
    assert getattr(shine, name).__dataclass_params__.frozen


def test_type_checkers_are_told_that_there_are_types():
    assert (ROOT / "py.typed").is_file()


def test_importing_shine_imports_none_of_the_heavy_libraries():
    code = f"import sys, shine; print(*set({HEAVY!r}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.parent, check=True)
    assert done.stdout.split() == []


def test_dir_shows_what_is_public_and_nothing_else():
    packages = {
        "aot",
        "arrow",
        "callbacks",
        "data",
        "deap",
        "estimators",
        "export",
        "losses",
        "report",
        "runs",
        "tensor",
        "trees",
    }
    assert set(dir(shine)) == {*shine.__all__, *packages, "__version__"}
    assert all(hasattr(shine, name) for name in dir(shine))
    for package in packages - {"export"}:
        module = getattr(shine, package)
        assert dir(module) == sorted(module.__all__)


@pytest.mark.slow
def test_the_estimators_load_the_search_only_when_they_fit():
    """`import shine.estimators` takes as long as scikit-learn does, which needs NumPy and SciPy."""
    slow = (
        "llvmlite",
        "pydantic",
        "tqdm",
        "shine.search.run",
        "shine.search.problem.settings",
        "shine.search.evolution.evolution",
    )
    code = f"import sys, shine.estimators; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
