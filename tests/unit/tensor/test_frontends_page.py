"""The page about the frontends lists what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "tensor-frontends.md"

pytestmark = pytest.mark.slow


def listed(heading: str) -> set[str]:
    """The words of the first block below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    return set(section.split("```text\n")[1].split("```")[0].split())


def test_the_operators_of_onnx_are_those_that_have_rules():
    from shine.tensor.onnx.rules import RULES

    assert listed("ONNX") == {*RULES, "If", "Loop"}


def test_the_operations_of_torch_are_those_that_have_rules():
    pytest.importorskip("torch")
    from shine.tensor.torch.reader import RULES

    assert listed("PyTorch") == set(RULES)


def test_the_operations_of_tensorflow_are_those_that_have_rules():
    from shine.tensor.graphdef.table import LANGUAGE, OPERATIONS

    assert listed("TensorFlow") == {*OPERATIONS, *LANGUAGE}
