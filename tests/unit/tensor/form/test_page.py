"""The page about the form names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shine.tensor.compositions import activations, contraction, normalization, pooling
from shine.tensor.compositions import networks as compositions
from shine.tensor.form.operations import OPERATIONS

PAGE = (Path(__file__).parents[4] / "docs" / "tensor-programs.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def test_the_table_has_every_operation_with_its_operands_and_attributes():
    shown = {name: (row[1], names(row[2])) for row in ROWS if len(row) == 4 for name in names(row[0])}
    free = {name: "any" if name in ("call", "while") else "1 or more" for name in OPERATIONS}
    counts = {name: free[name] if o.operands is None else str(o.operands) for name, o in OPERATIONS.items()}
    assert shown == {name: (counts[name], list(operation.attributes)) for name, operation in OPERATIONS.items()}


@pytest.mark.parametrize(
    "module", [compositions, normalization, pooling, contraction], ids=lambda m: m.__name__.rpartition(".")[2]
)
def test_the_table_has_every_composition(module):
    (row,) = (row for row in ROWS if row[0] == f"`{module.__name__.rpartition('.')[2]}`")
    public = {name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__}
    assert set(names(row[1])) == {name for name in public if not name.startswith("_")} - {"Line"}


def test_the_table_has_every_activation():
    (row,) = (row for row in ROWS if row[0] == "`activations`")
    own = re.findall(r"def (\w+)", activations._DEFINITIONS + activations._ERF["f32"] + activations._WITH_ERF)
    assert set(names(row[1])) == set(own)
