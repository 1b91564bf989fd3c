"""Import paths of former versions. They work, with a DeprecationWarning that names the new one.

The reference named these paths, so programs import them and pickles hold them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importing the abstract class takes as long as the rest of `import shine`

_PREFIX = f"{__package__}."

MODULES: dict[str, dict[str, str]] = {
    "gradient": {
        "grad": "shine.kernels.gradient.grad",
        "GradientKernel": "shine.kernels.gradient.GradientKernel",
    },
    "graph_kernel": {"GraphKernel": "shine.kernels.kernel.Kernel"},
    "kernel": {"Kernel": "shine.kernels.kernel.Kernel", "jit": "shine.kernels.jit.jit"},
    "loading": {"load_file": "shine.data.loading.load_file"},
    "model": {
        "Front": "shine.search.front.Front",
        "Model": "shine.search.model.Model",
        "Result": "shine.search.front.Result",
        "_model_of": "shine.search.model._model_of",  # in pickles
    },
    "population": {"Population": "shine.lang.population.Population"},
}
"""Modules of `shine` that are gone: where each of their names is now."""

PACKAGES: dict[str, dict[str, str]] = {
    "data": {"Dataset": "shine.data.dataset.Dataset"},
    "gp.constraints": {"Constraints": "shine.gp.constraints.constraints.Constraints"},
    "lang.program": {
        "Program": "shine.lang.program.program.Program",
        "ProgramBuilder": "shine.lang.program.builder.ProgramBuilder",
    },
    "lang.simplify": {"simplify": "shine.lang.simplify.simplifier.simplify"},
    "search": {"evolve": "shine.search.run.evolve", "search": "shine.search.run.search"},
}
"""Modules that became packages: where each of their names is now."""


def names_of(former: str) -> Callable[[str], Any]:
    """The `__getattr__` of a former module, which finds its names where they are now."""
    homes = (MODULES | PACKAGES)[former.removeprefix(_PREFIX)]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {former!r} has no attribute {name!r}")
        warnings.warn(f"{former}.{name} is now {homes[name]}", DeprecationWarning, stacklevel=2)
        module, _, attribute = homes[name].rpartition(".")
        return getattr(import_module(module), attribute)

    return get


class _Finder(Loader):
    """Makes the modules of `MODULES`, which have no file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        gone = fullname.startswith(_PREFIX) and fullname.removeprefix(_PREFIX) in MODULES
        return ModuleSpec(fullname, self) if gone else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = names_of(module.__name__)


def install() -> None:
    """Let the import system find the modules that are gone."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
