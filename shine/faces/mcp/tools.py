"""The calls that the server answers, by name."""

from __future__ import annotations

from collections.abc import Callable

from shine.faces.mcp.applying import compare, explain, export, next_measurement, plot, predict
from shine.faces.mcp.arguments import Answer
from shine.faces.mcp.searching import front, past_runs, resource, search
from shine.faces.mcp.tables import describe_table

TOOLS: dict[str, Callable[..., Answer]] = {
    each.__name__: each
    for each in (
        describe_table, search, front, explain, compare, predict, plot, export, next_measurement, past_runs,
    )
}  # fmt: skip
"""Tools for clients: docstrings and arguments are their descriptions."""

WORK = {**TOOLS, "resource": resource}
"""Functions that workers run."""
