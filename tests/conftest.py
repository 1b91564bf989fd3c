"""Where slow tests are left out, modules of slow tests only are not imported: PyTorch, JAX and ONNX take seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
"""A line of each module whose tests are all slow."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """True for a module of slow tests only, if the option -m leaves them out."""
    if config.getoption("-m") != "not slow" or collection_path.suffix != ".py":
        return None
    return ALL_SLOW in collection_path.read_text(encoding="utf-8") or None
