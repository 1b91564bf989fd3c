"""DEAP itself, which is an extra and publishes no types."""

from __future__ import annotations

try:
    from deap import gp
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "deap":
        raise
    raise ImportError("shine.deap needs DEAP, which is not installed: pip install 'shine[deap]'") from None

__all__ = ["gp"]
