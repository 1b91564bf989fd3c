"""The rooms of `shine` stand in one order, imports point down it, and few files may import some foreign modules.

The tests read the files and do not run them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import shine

ROOT = Path(shine.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
"""File of each module by its full name."""

BELOW: dict[str, set[str]] = {
    "base": set(),
    "lang": {"base"},
    "compiler": {"base", "lang"},
    # Generated data have the bits of formulas, whichever processor computes them.
    "data": {"base", "lang", "compiler"},
    "formats": {"base", "lang", "compiler", "data"},
    "evaluate": {"base", "lang", "compiler", "data"},
    "search": {"base", "lang", "compiler", "data", "formats", "evaluate"},
    # Names in C and the messages that a GraphDef is made of are those of formulas' exports and readers.
    "tensor": {"base", "lang", "compiler", "formats"},
    # Modules in Python are written as those of tensor programs.
    "trees": {"base", "lang", "compiler", "formats", "tensor"},
    "frames": {"base", "lang", "compiler"},
    "faces": {"base", "lang", "compiler", "data", "formats", "evaluate", "search", "tensor", "trees", "shine"},
    "shine": {
        "base",
        "lang",
        "compiler",
        "data",
        "formats",
        "evaluate",
        "search",
        "tensor",
        "trees",
        "frames",
        "faces",
    },
    "__main__": {"faces"},
}
"""The rooms, the lowest first, and those that each may import besides itself. `shine` is the package's own `__init__`,
which imports names when they are asked for."""

PUBLIC_PATHS = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
"""Modules of one line, for the import paths of the documentation: rooms need not know where they lead."""

ONLY_IN: dict[str, set[str]] = {
    "llvmlite.binding": {"compiler.llvm"},
    # Modules outside codegen and aot only create the `ir.Module` that codegen fills.
    "llvmlite.ir": {"compiler", "evaluate", "formats.native", "frames", "tensor", "trees"},
    "pydantic": {
        "faces.config",
        "faces.mcp",
        "faces.runs",
        "evaluate.validation",
        "search.evolution",
        "search.problem",
    },
    "yaml": {"faces.config"},
    "click": {"faces.cli"},
    "tqdm": {"faces.cli", "faces.progress"},
    "scipy": {"evaluate.inference", "search.dynamics.fields.model"},
    "sklearn": {"faces.dynamics.fitted", "faces.estimators"},
    "pandas": {"data.files.tables", "faces.cli.prediction_files", "frames", "search.models.front_table"},
    "mcp": {"faces.mcp.server"},
    "anyio": {"faces.mcp"},
    "mlflow": {"faces.callbacks"},
    "tensorboardX": {"faces.callbacks"},
    "pyarrow": {"data.files", "data.streams", "faces.cli.prediction_files", "frames"},
    "polars": {"data.streams.sources", "frames", "search.templates.grouping"},
    "duckdb": {"data.streams.sources"},
    "torch": {"faces.distillation.networks", "formats.write", "tensor.torch.reader"},
    "jax": {"formats.write"},
    "onnx": {"formats.write"},
    # Tasks travel to workers: what a private folder of the same run holds is unpickled, and nothing else.
    "pickle": {"base.parallel.shipment"},
    "joblib": {"base.parallel"},
    "distributed": {"base.parallel.opening"},
    "dask_jobqueue": {"base.parallel.opening"},
}
"""Foreign modules, and the rooms, packages or modules that may import them."""

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_IMPORTS = {"marshal", "shelve", "dill", "cloudpickle"}


@dataclass(frozen=True)
class Import:
    """One import: from where to where."""

    source: str
    target: str


def room(module: str) -> str:
    """The room of a module of Shine."""
    return "shine" if module == "shine" else module.split(".")[1]


def imported(node: ast.stmt) -> list[str]:
    """Full names of the modules that a statement imports, including modules that it takes from packages."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.module and not node.level, "imports are absolute"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in MODULES or node.module == "llvmlite" else node.module for name in names]
    return []


def named(tree: ast.Module) -> Iterator[str]:
    """Modules of Shine that a module imports by their full names in strings."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    if not any("import_module" in (getattr(called, "attr", ""), getattr(called, "id", "")) for called in calls):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES:
            yield node.value


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle in a graph; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of all modules."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


@cache
def imports() -> list[Import]:
    """All imports, also those in functions, those for type checkers only, and those on demand, which stubs list."""
    on_demand = [
        Import(name, f"{name}.{node.module}")
        for name, path in MODULES.items()
        if path.with_suffix(".pyi").exists()
        for node in ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    return on_demand + [
        Import(name, target)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for target in imported(node)
    ]


def test_every_room_is_in_the_table():
    assert {room(name) for name in MODULES} - PUBLIC_PATHS == set(BELOW)


def test_architecture_shows_the_rooms_in_this_order():
    picture = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```\n")[1]
    shown = [line.split("/")[0] for line in picture.splitlines() if line[:1].strip()]
    assert shown[::-1] == [name for name in BELOW if name not in ("shine", "__main__")]


@pytest.mark.parametrize("name", BELOW)
def test_imports_point_down(name):
    allowed = BELOW[name] | {name}
    assert not [
        i for i in imports() if room(i.source) == name and i.target in MODULES and room(i.target) not in allowed
    ]


def test_a_public_path_hands_on_one_module_and_nothing_in_shine_uses_it():
    for name in PUBLIC_PATHS:
        docstring, *statements = trees()[f"shine.{name}"].body
        assert isinstance(docstring, ast.Expr) and {type(node) for node in statements} == {ast.ImportFrom}, name
        assert len({node.module for node in statements}) == 1, name
    assert not [i for i in imports() if i.target in MODULES and room(i.target) in PUBLIC_PATHS]


@pytest.mark.parametrize("foreign", ONLY_IN)
def test_a_foreign_module_stays_where_it_belongs(foreign):
    users = {i.source for i in imports() if f"{i.target}.".startswith(f"{foreign}.")}
    homes = tuple(f"shine.{home}." for home in ONLY_IN[foreign])
    assert not {user for user in users if not f"{user}.".startswith(homes)}


def test_only_the_compiler_imports_the_whole_of_llvmlite():
    assert {room(i.source) for i in imports() if i.target == "llvmlite"} <= {"compiler"}


def test_only_the_command_line_imports_itself():
    users = {i.source for i in imports() if i.target in MODULES and i.target.startswith("shine.faces.cli")}
    assert {user for user in users if not user.startswith("shine.faces.cli")} == {"shine.__main__"}


def test_files_do_not_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {name: set() for name in MODULES}
    for i in [*imports(), *(Import(name, target) for name, tree in trees().items() for target in named(tree))]:
        if i.target in MODULES and i.target != i.source:
            graph[i.source].add(i.target)
    assert not circle(graph)


@pytest.mark.parametrize("name", [name for name in BELOW if (ROOT / name).is_dir()])
def test_packages_of_a_room_do_not_import_each_other_in_a_circle(name):
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}

    def package(module: str) -> str:
        """The package within the room that a module is in; the module itself if it is in none."""
        first = ".".join(module.split(".")[:3])
        return first if first in packages else module

    graph: dict[str, set[str]] = {}
    for i in imports():
        if i.target in MODULES and room(i.source) == room(i.target) == name and package(i.source) != package(i.target):
            graph.setdefault(package(i.source), set()).add(package(i.target))
    assert not circle(graph)


def test_a_folder_has_at_most_eighteen_modules():
    """A reader takes in the plan of a folder at a glance."""
    folders: dict[Path, int] = {}
    for path in MODULES.values():
        folders[path.parent] = folders.get(path.parent, 0) + (path.name != "__init__.py")
    assert {folder.as_posix(): count for folder, count in folders.items() if count > 18} == {}


def builtins_called(tree: ast.Module) -> set[str]:
    """Names that are called, except parameters of the functions around the call."""
    shadowed = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
        shadowed |= {node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in parameters}
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {node.id for node in called - shadowed}


def test_nothing_evaluates_text_or_unpickles():
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    calls = re.compile(rf"\b({'|'.join(FORBIDDEN_CALLS)})\s*\(")
    suspects = [name for name, text in texts.items() if calls.search(text)]
    assert not {name for name in suspects if builtins_called(trees()[name]) & FORBIDDEN_CALLS}
    assert not {i.source for i in imports() if i.target.split(".")[0] in FORBIDDEN_IMPORTS}
    pickles = re.compile(r"\ballow_pickle\s*=\s*True\b")
    assert not {name for name, text in texts.items() if pickles.search(text)}
