"""Reads what a run left in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shine.faces.runs.checkpoints import Checkpoint, Shelf, read_checkpoint


def ending(folder: Path) -> dict[str, Any]:
    """Everything a run leaves, without the time it took."""
    result = json.loads((folder / "result.json").read_text())
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    checkpoint = read_checkpoint(Shelf(folder).paths[0])
    return {
        "result": {key: value for key, value in result.items() if key != "seconds"},
        "log": [{key: value for key, value in line.items() if key != "seconds"} for line in lines],
        "front": (folder / "front.csv").read_text(),
        "config": (folder / "config.yaml").read_text(),
        "header": {key: value for key, value in checkpoint.header.items() if key != "seconds"},
        "arrays": {name: array.tobytes() for name, array in checkpoint.arrays.items()},
    }


def newest_good(folder: Path) -> int:
    """Generation of the last valid checkpoint; -1 if there is none."""
    return next((c.header["generation"] for c in Shelf(folder).readable() if isinstance(c, Checkpoint)), -1)
