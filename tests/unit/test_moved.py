"""Former import paths work, with a warning, and only for the names that were public."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from shine.moved import MODULES, PACKAGES

FORMER = [(module, name) for module, homes in (MODULES | PACKAGES).items() for name in homes]


@pytest.mark.parametrize(("module", "name"), FORMER, ids=lambda part: part)
def test_a_former_path_gives_the_object_and_warns(module, name):
    home, _, attribute = (MODULES | PACKAGES)[module][name].rpartition(".")
    former = import_module(f"shine.{module}")
    with pytest.warns(DeprecationWarning, match=f"{name} is now {home}.{attribute}"):
        found = getattr(former, name)
    assert found is getattr(import_module(home), attribute)


@pytest.mark.parametrize("module", [*MODULES, *PACKAGES])
def test_other_names_are_attribute_errors(module):
    with pytest.raises(AttributeError, match=f"module 'shine.{module}' has no attribute 'nothing'"):
        import_module(f"shine.{module}").nothing  # noqa: B018


def test_modules_that_never_were_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("shine.kernell")


@pytest.mark.slow
def test_importing_the_packages_by_their_new_paths_warns_of_nothing():
    modules = {home.rpartition(".")[0] for homes in PACKAGES.values() for home in homes.values()}
    code = f"import {', '.join(sorted(modules))}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
