"""DEAP itself, which is an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _gp() -> Any:
    try:
        return import_module("deap.gp")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deap":
            raise
        raise ImportError("shine.deap needs DEAP, which is not installed: pip install 'shine[deap]'") from None


gp: Any = _gp()
"""The module `deap.gp`; it publishes no types."""
