"""The promises: what each parameter of each face does, as the documentation says, in a tiny search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from promises.faces import STATIC, word

REGRESSORS = ("evolve", "SymbolicRegressor", "config")
PYTHON = ("evolve", "SymbolicRegressor", "SymbolicClassifier", "SymbolicTransformer")
FITTED = PYTHON[1:]
DYNAMICS = ("SymbolicDynamics",)


@dataclass(frozen=True)
class Row:
    """A promise about parameters, by their words in `shine.evolve`, of some faces."""

    words: tuple[str, ...]
    faces: tuple[str, ...]
    effect: Callable[[str], None]
    slow: bool = False

    @property
    def names(self) -> set[tuple[str, str]]:
        """The face and the parameter of each promise."""
        return {(face, word(face, each)) for face in self.faces for each in self.words}


ROWS: list[Row] = []

CONSTANT = {"primitives": ["add"], "max_size": 1, "generations": 0}
"""Settings of a search that finds nothing but a constant."""
WEIGHTS = np.arange(40) % 3 + 1.0


def row(*words: str, faces: tuple[str, ...] = STATIC, slow: bool = False) -> Any:
    """Put an effect into the table."""

    def put(effect: Callable[[str], None]) -> Callable[[str], None]:
        ROWS.append(Row(words, faces, effect, slow))
        return effect

    return put


SECTION = "a section or an alternative of forms; its keys are in the table"
OWN_TESTS = "tested in full where it stands: "
COMMAND = "command line"
CLUSTER = "needs a cluster; tests/unit/base/parallel tries them. The result stays the same"
FIELDS = "fields take seconds: tests/unit/faces/dynamics/test_fields.py"
ABSENT = {
    **{("config", name): SECTION for name in ("data", "evolution", "fitness", "constraints", "stop", "parallel")},
    **{("SymbolicDynamics", name): FIELDS for name in ("space", "derivatives", "periodic")},
    **{(COMMAND, f"* --{name}"): CLUSTER for name in ("dask", "slurm")},
    (COMMAND, "distil --workers"): "given to the configuration of each run, as those of evolve, which have a row",
    **{
        (COMMAND, f"distil --{name}"): "read as those of compile, which have a row"
        for name in ("config", "checkpoint", "shape")
    },
    **{("config", f"dynamics.{name}"): FIELDS for name in ("space", "derivatives", "periodic")},
    ("config", "dynamics.template.*"): "the keys of template, which have rows",
    ("config", "data.generate.features.*"): OWN_TESTS + "tests/unit/data/test_loading.py",
    ("config", "template.unknown.constraints.*"): "the keys of constraints, which have rows",
    ("config", "guesses.*"): OWN_TESTS + "tests/cli/test_guesses.py",
    ("config", "primitives.*"): "compiled functions need a file in LLVM IR: tests/unit/compiler/llvm",
    ("config", "evolution.island_settings.*"): "the fields of the evolution, which have rows; island_settings has one",
    ("config", "parallel.*"): "needs processes or a cluster; tests/unit/base/parallel. The result stays the same",
    ("config", "data.stream"): "changes the memory that is used, not the result: tests/unit/data/streams",
    ("config", "evolution.renewal"): "acts on tables of more rows than 'evolution.rows' and many generations",
    ("config", "evolution.max_exact_size"): "acts on laws of more than 30 nodes, which take long",
    ("config", "evolution.seeding_members"): "bounds work, of which a tiny search has too little",
    ("config", "evolution.part_mutation"): "acts only on parts that long seeding finds",
    ("config", "evolution.patience"): "acts after generations without a better loss, more than a tiny search has",
    ("config", "evolution.migrants"): "acts at migrations, beside migration_interval, which has a row",
    **{(face, "live"): "opens a page and waits for people: tests/unit/faces/live" for face in (*PYTHON, *DYNAMICS)},
    ("evolve", "settings"): "the fields of the evolution; each has its row",
}
"""Parameters without a row, by patterns, and why."""
