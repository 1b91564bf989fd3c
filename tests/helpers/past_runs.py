"""Folders as runs leave them, made without a search."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

SETTINGS = """
data: {{path: {data}, target: y}}
primitives: [add, mul, exp]
evolution: {{population: {population}, max_size: 20}}
stop: {{generations: 5, seconds: {seconds}}}
seed: {seed}
"""


def model(expression: str, loss: float = 1.0, nodes: int = 5, r2: float | None = 0.5) -> dict[str, Any]:
    """A formula of result.json."""
    return {"expression": expression, "loss": loss, "complexity": nodes, "r2": r2}


def past_run(
    folder: Path,
    *front: dict[str, Any],
    best: int = -1,
    seed: int = 0,
    population: int = 100,
    seconds: float = 10.0,
    data: str = "/data/plants.csv",
    data_hash: str | None = "0123456789abcdef",
    date: float = 1_700_000_000.0,
) -> Path:
    """Write the folder of a finished run; its files are of a given date, seconds since 1970."""
    folder.mkdir(parents=True, exist_ok=True)
    front = front or (model("x"), model("exp(x) + 1.0", 0.1, 4, 0.95))
    result = {
        "schema_version": 1, "best": front[best], "front": list(front), "features": ["x", "Länge_m"], "target": "y",
        "reason": "", "weighting": "absolute", "headings": ["x", "Länge [m]"],
        "data": data_hash, "primitives": ["add", "mul", "exp"], "weights": {}, "generations": 5, "evaluations": 500,
        "seconds": 1.5, "seed": seed, "stopped_by": "generations",
        "versions": {"shine": "0.1.0", "python": "3.11", "numpy": "2", "llvmlite": "0.50"},
    }  # fmt: skip
    settings = SETTINGS.format(population=population, seconds=seconds, seed=seed, data=json.dumps(data))
    (folder / "config.yaml").write_text(settings, encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    for name in ("config.yaml", "result.json"):
        os.utime(folder / name, (date, date))
    return folder
