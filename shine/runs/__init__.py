"""The run directory: the configuration, the log, the checkpoints and the result of a run, on disk."""

from shine.runs.files import chosen_folder, default_folder, write_text
from shine.runs.jobs import resume_job, run_job
from shine.runs.keeping import Notice
from shine.runs.log import progress_record
from shine.runs.opening import Run, open_run
from shine.runs.records import (
    ModelRecord,
    ResultRecord,
    Versions,
    front_csv,
    read_result,
    result_record,
    versions,
    write_result,
)

__all__ = [
    "ModelRecord",
    "Notice",
    "ResultRecord",
    "Run",
    "Versions",
    "chosen_folder",
    "default_folder",
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


def __dir__() -> list[str]:
    return sorted(__all__)
