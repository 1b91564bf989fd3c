"""The run directory: the configuration, the log, the checkpoints and the result of a run, on disk; past runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shine.faces.runs.comparing import Comparison, compare
    from shine.faces.runs.files import chosen_folder, default_folder, write_text
    from shine.faces.runs.finding import Found, find
    from shine.faces.runs.jobs import resume_job, run_job
    from shine.faces.runs.keeping import Notice
    from shine.faces.runs.log import progress_record
    from shine.faces.runs.opening import Run, open_run
    from shine.faces.runs.records import (
        ModelRecord,
        ResultRecord,
        Versions,
        front_csv,
        read_result,
        result_record,
        versions,
        write_result,
    )

_HOMES = {
    "comparing": ("Comparison", "compare"),
    "files": ("chosen_folder", "default_folder", "write_text"),
    "finding": ("Found", "find"),
    "jobs": ("resume_job", "run_job"),
    "keeping": ("Notice",),
    "log": ("progress_record",),
    "opening": ("Run", "open_run"),
    "records": (
        "ModelRecord", "ResultRecord", "Versions", "front_csv", "read_result", "result_record", "versions",
        "write_result",
    ),
}  # fmt: skip
"""The public names of each module. They are imported on demand: a look into the index needs little of the package."""

__all__ = [
    "Comparison",
    "Found",
    "ModelRecord",
    "Notice",
    "ResultRecord",
    "Run",
    "Versions",
    "chosen_folder",
    "compare",
    "default_folder",
    "find",
    "front_csv",
    "open_run",
    "progress_record",
    "read_result",
    "result_record",
    "resume_job",
    "run_job",
    "versions",
    "write_result",
    "write_text",
]


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
