"""Figures of a search for trackers of experiments."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from shine.search.evolution.observers import Progress
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings


def parameters(settings: SearchSettings) -> dict[str, str]:
    """The settings by the names that they have in configurations, as text."""
    return dict(_flat(settings, ""))


def curves(progress: Progress) -> dict[str, float]:
    """Figures of a generation; those that are not finite are left out."""
    size = float(progress.front.sizes[-1]) if len(progress.front) else math.nan
    figures = {"loss": progress.best_loss, "size": size, "evaluations": float(progress.evaluations)}
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def final(result: Result) -> dict[str, float]:
    """Figures of the chosen formula; those that are not finite are left out."""
    best = result.best
    figures = {"final_loss": best.loss, "final_r2": best.r2, "final_complexity": float(best.complexity)}
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def front_csv(result: Result) -> str:
    """The front as a table of text."""
    text = io.StringIO()
    names = ["complexity", "loss", "r2", "expression", "best"]
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "best": int(row["best"])} for row in result.rows())
    return text.getvalue()


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for each in fields(value):
        inner, name = getattr(value, each.name), f"{prefix}{each.name}"
        if is_dataclass(inner) and each.name in ("evolution", "fitness", "stop", "constraints"):
            yield from _flat(inner, f"{name}.")
        elif each.name == "primitives":
            yield name, ", ".join(getattr(one, "__name__", str(one)) for one in inner)
        else:
            yield name, str(inner)
