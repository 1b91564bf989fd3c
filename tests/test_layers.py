"""Imports point down the layers and never run in a circle, and few files may import some foreign modules.

The tests read the files and do not run them.
"""

from __future__ import annotations

import ast
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

_LOSSES = {"errors", "stages", "lang", "words", "data", "arrays", "fitness", "codegen", "llvm"}
_EVALUATION = _LOSSES | {"losses", "evaluators"}
_SEARCH = _EVALUATION | {"gp", "templates", "kernels", "domain", "export", "report", "frontends", "live"}
_FACES = _SEARCH | {"parallel", "inference", "search", "shine", "config"}

BELOW: dict[str, set[str]] = {
    "typing": set(),
    "errors": set(),
    "files": set(),
    "stages": set(),
    "parallel": {"errors", "stages"},
    "lang": {"errors"},
    "words": {"lang"},
    "llvm": {"errors", "files"},
    "codegen": {"errors", "lang"},
    "arrays": {"errors", "lang", "codegen", "llvm"},
    # Generated data have the bits of formulas.
    "data": {"errors", "files", "stages", "lang", "arrays"},
    "fitness": {"errors", "lang"},
    "domain": {"errors", "lang", "data", "arrays"},
    "report": {"errors", "lang", "data"},
    # LLVM reads foreign code.
    "frontends": {"errors", "lang", "llvm", "arrays"},
    # The coefficients of the elementary functions that ONNX Runtime lacks; the messages that a GraphDef is made of.
    # SQL makes numbers of columns as the data's preparation does.
    "export": {"errors", "lang", "codegen", "data", "frontends"},
    # Array functions have the bits of formulas, so that decisions about formulas do not depend on the processor.
    "gp": {"errors", "stages", "parallel", "lang", "fitness", "arrays"},
    "live": {"errors", "stages", "lang", "fitness", "data", "gp", "report"},
    "evaluators": _EVALUATION,
    "losses": _LOSSES,
    # Individuals have slots; evaluators score and fit them.
    "templates": _EVALUATION | {"gp"},
    "kernels": _EVALUATION,
    "inference": _EVALUATION | {"kernels"},
    "search": _SEARCH | {"parallel", "inference"},
    "estimators": _SEARCH | {"parallel", "inference", "search"},
    "config": {"errors", "parallel", "lang", "words", "data", "losses", "gp", "frontends", "templates", "search"},
    "runs": _FACES | {"files"},
    "bench": _EVALUATION | {"gp", "search"},
    # Names that formulas may have in C.
    "aot": {"errors", "files", "lang", "codegen", "llvm", "export"},
    # Names that tensors may have in C.
    "tensor": {"errors", "lang", "arrays", "codegen", "llvm", "frontends", "export", "aot", "evaluators"},
    # Rows of threads; facts about processors.
    "trees": {"errors", "lang", "codegen", "llvm", "evaluators", "aot", "tensor"},
    "deap": _EVALUATION | {"kernels"},
    "frames": {"errors", "lang", "codegen", "llvm", "evaluators"},
    "arrow": {"frames"},
    "pandas": {"frames"},
    "polars": {"frames"},
    "callbacks": {"errors", "lang", "gp", "search"},
    # Networks are compiled, and searched like any other data.
    "distillation": {"errors", "lang", "data", "tensor", "search"},
    "shine": _SEARCH | {"inference", "search", "estimators", "distillation"},
    "cli": _FACES | {"files", "runs", "bench", "aot", "callbacks", "tensor", "trees", "distillation"},
    "__main__": {"cli"},
}
"""Layers that each layer may import, besides itself and `typing`. `shine` is the package's own `__init__`."""

ONLY_IN: dict[str, set[str]] = {
    "llvmlite.binding": {"llvm"},
    # Layers other than codegen and aot only create the `ir.Module` that codegen fills.
    "llvmlite.ir": {"arrays", "codegen", "aot", "evaluators.native_tier", "frames.code", "kernels", "tensor", "trees"},
    "pydantic": {"config", "runs", "search"},
    "yaml": {"config"},
    "click": {"cli"},
    "tqdm": {"cli", "search.progress"},
    "scipy": {"inference.quantiles"},
    "sklearn": {"estimators"},
    "pandas": {"search.front_table", "data.tables", "cli.prediction_files", "frames", "pandas"},
    "mlflow": {"callbacks.mlflow"},
    "tensorboardX": {"callbacks.tensorboard"},
    "pyarrow": {
        "data.conditions",
        "data.condition_values",
        "data.files",
        "data.stream_sources",
        "data.stream_writers",
        "data.tables",
    }
    | {"cli.prediction_files", "frames", "polars"},
    "polars": {"data.stream_sources", "frames.polars_frames", "polars", "templates.grouping"},
    "duckdb": {"data.stream_sources"},
    "torch": {"distillation.torch_modules", "export", "frontends.torchfx", "tensor.torch.reader"},
    "jax": {"export"},
    "onnx": {"export"},
    # Tasks travel to workers: what a private folder of the same run holds is unpickled, and nothing else.
    "pickle": {"parallel.shipment"},
    "joblib": {"parallel"},
    "distributed": {"parallel.clusters"},
    "dask_jobqueue": {"parallel.clusters"},
}
"""Foreign modules, and the layers or single modules that may import them."""

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_IMPORTS = {"marshal", "shelve", "dill", "cloudpickle"}


@dataclass(frozen=True)
class Import:
    """One import: from where to where."""

    source: str
    target: str


def layer(module: str) -> str:
    """The layer of a module of Shine."""
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
    """All imports, also those in functions and those for type checkers only."""
    return [
        Import(name, target)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for target in imported(node)
    ]


SPLIT = ("lang", "codegen", "gp", "frontends", "tensor")
"""Layers that are divided into packages."""


def test_every_layer_is_in_the_table():
    assert {layer(name) for name in MODULES} == set(BELOW)


def test_architecture_lists_the_rooms_and_each_stands_above_those_that_it_imports():
    picture = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```\n")[1]
    floors = {name: -floor for floor, line in enumerate(picture.splitlines()) for name in line[:24].split()}
    outside = {"shine", "__main__"}
    assert set(floors) - {"experiments"} == set(BELOW) - outside
    between = {(layer(i.source), layer(i.target)) for i in imports() if i.target in MODULES}
    rooms = {(upper, lower) for upper, lower in between if upper != lower and not {upper, lower} & outside}
    assert {(upper, lower) for upper, lower in rooms if floors[upper] <= floors[lower]} == set()


def test_the_table_itself_has_no_cycle():
    assert not circle({name: below - {name} for name, below in BELOW.items()})


@pytest.mark.parametrize("name", BELOW)
def test_imports_point_down(name):
    allowed = BELOW[name] | {name, "typing"}
    found = [i for i in imports() if layer(i.source) == name and i.target in MODULES and layer(i.target) not in allowed]
    assert not found


@pytest.mark.parametrize("foreign", ONLY_IN)
def test_a_foreign_module_stays_where_it_belongs(foreign):
    users = {i.source for i in imports() if f"{i.target}.".startswith(f"{foreign}.")}
    assert not {u for u in users if not {layer(u), u.removeprefix("shine.")} & ONLY_IN[foreign]}


def test_only_the_layer_above_it_imports_the_whole_of_llvmlite():
    assert {layer(i.source) for i in imports() if i.target == "llvmlite"} <= {"llvm"}


def test_only_the_command_line_imports_itself():
    users = {layer(i.source) for i in imports() if i.target in MODULES and layer(i.target) == "cli"}
    assert users == {"cli", "__main__"}


def test_files_do_not_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {name: set() for name in MODULES}
    for i in [*imports(), *(Import(name, target) for name, tree in trees().items() for target in named(tree))]:
        if i.target in MODULES and i.target != i.source:
            graph[i.source].add(i.target)
    assert not circle(graph)


@pytest.mark.parametrize("name", SPLIT)
def test_packages_of_a_layer_do_not_import_each_other_in_a_circle(name):
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}

    def room(module: str) -> str:
        """The package within the layer that a module is in; the module itself if it is in none."""
        package = ".".join(module.split(".")[:3])
        return package if package in packages else module

    graph: dict[str, set[str]] = {}
    for i in imports():
        if i.target in MODULES and layer(i.source) == layer(i.target) == name and room(i.source) != room(i.target):
            graph.setdefault(room(i.source), set()).add(room(i.target))
    assert not circle(graph)


def builtins_called(tree: ast.Module) -> set[str]:
    """Names that are called, except parameters of the functions around the call."""
    shadowed = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
        shadowed |= {node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in parameters}
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {node.id for node in called - shadowed}


def test_nothing_evaluates_text_or_unpickles():
    assert not {name for name, tree in trees().items() if builtins_called(tree) & FORBIDDEN_CALLS}
    assert not {i.source for i in imports() if i.target.split(".")[0] in FORBIDDEN_IMPORTS}
    assert not {name for name, tree in trees().items() if "allow_pickle=True" in ast.unparse(tree)}
