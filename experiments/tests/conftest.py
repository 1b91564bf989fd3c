"""Lets the tests import experiments, as a script of that folder does."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.chromium import Browser

# No extra has the reader of prints: with it, they are read, too.
collect_ignore = [] if find_spec("pypdfium2") else ["test_prints.py"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
