"""The run directory: what a run used and what it found, on disk."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import platform
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict

from shine import __version__
from shine.config import Job, dump_config
from shine.errors import ExportError

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.model import Model, Result

SCHEMA_VERSION: Final = 1
"""Version of result.json; it grows when a reader of the older one would be misled."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ModelRecord(_Record):
    """One formula of the front."""

    expression: str
    """The formula, in Shine's language, with the scaling written out."""
    loss: float
    """What the run minimized."""
    complexity: Annotated[int, Ge(1)]
    """Number of nodes."""
    r2: float | None
    """Share of the target's variance that the formula explains; null where it is not finite."""


class Versions(_Record):
    """What the run was made with."""

    shine: str
    """Version of Shine."""
    python: str
    """Version of Python."""
    numpy: str
    """Version of NumPy."""
    llvmlite: str
    """Version of llvmlite, which brings LLVM."""


class ResultRecord(_Record):
    """The contents of result.json."""

    schema_version: Literal[1]
    """Version of this form."""
    best: ModelRecord
    """The chosen formula, one of the front."""
    front: tuple[ModelRecord, ...]
    """The best formula of each complexity that is better than all simpler ones, the simplest first."""
    generations: Annotated[int, Ge(0)]
    """Generations after the first population."""
    evaluations: Annotated[int, Ge(0)]
    """Formulas whose loss was computed."""
    seconds: Annotated[float, Ge(0)]
    """Duration of the search, without reading the data."""
    seed: int
    """Seed of every random choice."""
    stopped_by: Literal["loss", "generations", "seconds", "interrupted"]
    """Which limit ended the run, or that the user did."""
    versions: Versions
    """What the run was made with."""


def default_folder(config_path: Path, runs: Path = Path("runs")) -> Path:
    """Create ``runs/<stem>``, or ``runs/<stem>-2``, ... where that exists already.

    Raises
    ------
    ExportError
        If no folder can be made there.
    """
    for number in range(1, 1_000_000):
        folder = runs / (config_path.stem if number == 1 else f"{config_path.stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unwritable(folder, error) from None
        return folder
    raise ExportError(f"{runs}: holds a million runs of {config_path.stem!r}; choose a folder with --out")


def chosen_folder(folder: Path) -> Path:
    """Create a folder the user named; one that is there already must be empty.

    Raises
    ------
    FileExistsError
        If something is in it: a run never overwrites anything.
    ExportError
        If the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = sorted(entry.name for entry in folder.iterdir())
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from None
    if "result.json" in occupied:
        raise FileExistsError(f"{folder}: already holds the result of a run; choose another folder")
    if occupied:
        raise FileExistsError(f"{folder}: is not empty; choose another folder")
    return folder


def run_job(job: Job, folder: Path, report: Callable[[Progress], None] | None = None) -> Result:
    """Search, and keep in a folder what was used and found.

    Parameters
    ----------
    job : Job
    folder : Path
        An empty folder.
    report : callable, optional
        Called with the progress of each generation, after it has been logged.

    Returns
    -------
    Result
        Partial if the run was interrupted.

    Raises
    ------
    ExportError
        If a file cannot be written.
    """
    from shine.search import search  # compiled code comes with it; reading results needs none

    config = job.config
    write_text(folder / "config.yaml", dump_config(config))
    with _open_log(folder / "log.jsonl") as log:

        def note(progress: Progress) -> None:
            try:
                print(json.dumps(progress_record(progress)), file=log, flush=True)
            except OSError as error:
                raise _unwritable(folder / "log.jsonl", error) from None
            if report is not None:
                report(progress)

        result = search(
            job.dataset,
            config.primitives,
            config.evolution,
            config.stop,
            **config.fitness.model_dump(),
            constraints=config.constraints,
            seed=config.seed,
            seeds=config.seeds,
            report=note,
        )
    write_result(folder, result)
    return result


def write_result(folder: Path, result: Result) -> None:
    """Write result.json and front.csv."""
    record = result_record(result)
    write_text(folder / "result.json", json.dumps(record.model_dump(mode="json"), indent=2, allow_nan=False) + "\n")
    write_text(folder / "front.csv", front_csv(result))


def read_result(folder: str | Path) -> ResultRecord:
    """Read result.json back.

    Raises
    ------
    ExportError
        If it is missing or has another form.
    """
    path = Path(folder) / "result.json"
    try:
        return ResultRecord.model_validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise ExportError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # pydantic's ValidationError is one
        raise ExportError(f"{path}: is no result of this version of Shine: {error}") from None


def result_record(result: Result) -> ResultRecord:
    """What result.json says of a result."""
    front = tuple(_model_record(model) for model in result.front)
    return ResultRecord(
        schema_version=SCHEMA_VERSION,
        best=front[result.best_index],
        front=front,
        generations=result.generations,
        evaluations=result.evaluations,
        seconds=result.seconds,
        seed=result.seed,
        stopped_by=result.stopped_by,  # type: ignore[arg-type]
        versions=versions(),
    )


def _model_record(model: Model) -> ModelRecord:
    r2 = model.r2 if math.isfinite(model.r2) else None
    return ModelRecord(expression=model.expression, loss=model.loss, complexity=model.complexity, r2=r2)


def progress_record(progress: Progress) -> dict[str, int | float | str | None]:
    """One line of log.jsonl: the best individual so far, before linear scaling."""
    best = progress.front.tree(len(progress.front) - 1) if len(progress.front) else None
    return {
        "generation": progress.generation,
        "evaluations": progress.evaluations,
        "seconds": round(progress.seconds, 6),
        "loss": None if best is None else progress.best_loss,
        "size": None if best is None else best.size,
        "formula": None if best is None else str(best),
    }


def front_csv(result: Result) -> str:
    """The front as a table, the chosen formula marked."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ["complexity", "loss", "r2", "expression", "best"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "best": int(row["best"])} for row in result.rows())
    return text.getvalue()


def versions() -> Versions:
    """Versions of what computes here."""
    return Versions(
        shine=__version__,
        python=platform.python_version(),
        numpy=metadata.version("numpy"),
        llvmlite=metadata.version("llvmlite"),
    )


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there in full or not at all.

    Raises
    ------
    ExportError
        If it cannot be written.
    """
    temporary = None
    try:
        # In the same folder, because a file can be replaced atomically only within one file system.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)  # mkstemp's files are for their owner only
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _open_log(path: Path) -> io.TextIOWrapper:
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: Exception) -> ExportError:
    return ExportError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}")
