"""Searches, and the runs that they leave: their settings, their data and their fronts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from shine.base.errors import DataError
from shine.base.stages import listening, ticking
from shine.faces.config import Job
from shine.faces.config.document import document_of, read_document
from shine.faces.config.reading import job_of
from shine.faces.mcp.answers import CHANNEL, Answer, Index, Name, Run, Settings, quoted
from shine.faces.mcp.places import CallError, check_runs, existing, run_folder
from shine.faces.progress import Status
from shine.faces.runs import Run as OpenedRun
from shine.faces.runs import default_folder, find, open_run, run_job
from shine.formats.read.guesses import is_graph_file
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.template_model import TemplateModel

SECONDS = 60.0
"""Limit of time of a search whose settings have none."""

ROWS = 10
"""Formulas of a front that are shown: the chosen one and its neighbours."""

RESOURCES = ("config.yaml", "result.json", "front.csv", "log.jsonl")
"""Files of a run that are resources."""

LONGEST_RESOURCE = 200_000
"""Most bytes of a resource."""


def checked(settings: Mapping[str, Any], of_run: bool = False) -> dict[str, Any]:
    """Settings whose files are below the server's folder; what starts other processes or reads code is refused.

    Parameters
    ----------
    settings : mapping
        As in a configuration.
    of_run : bool
        Whether they describe a run that has been made: they start nothing.
    """
    kept = dict(settings)
    if kept.pop("parallel", None) and not of_run:
        raise CallError("settings: parallel: is not for agents: a search runs in one process; leave it out")
    for primitive in _entries(kept.get("primitives")):
        if isinstance(primitive, dict):
            raise CallError("settings: primitives: functions from LLVM files are not for agents; write them as text")
    for guess in _entries(kept.get("guesses")):
        graph = guess.get("graph") if isinstance(guess, dict) else guess if is_graph_file(guess) else None
        if isinstance(graph, str):
            existing(graph)
    data = kept.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        kept["data"] = {**data, "path": str(existing(data["path"]))}
    return kept


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def search(settings: Settings, name: Name | None = None) -> Answer:
    """Search for formulas that explain a column of a table; ends after stop.seconds (60 by default).

    Answers with the run's folder, the front (complexity against loss), the chosen formula, its constants with 95 %
    intervals, and formulas that the rows do not tell apart. Cancelling keeps what was found: past_runs lists it.
    """
    channel, given = CHANNEL.get(), checked(settings)
    seconds: Any = min(SECONDS, channel.seconds)
    if isinstance(given.get("stop", {}), dict):
        given["stop"] = {"seconds": seconds, **given.get("stop", {})}
        seconds = given["stop"]["seconds"]
        if not isinstance(seconds, int | float) or not 0 < seconds <= channel.seconds:
            raise CallError(f"settings: stop.seconds: is above 0 and at most {channel.seconds:g} on this server")
    channel.end_after(seconds)
    status, notices = Status(first="reading the table"), list[str]()

    def report() -> None:
        channel.send(progress=status.seconds, total=seconds, message=status.text())

    report()  # A search may end before the first tick.
    with listening(status.stages.enter, status.stages.leave, status.stages.find), ticking(report, 1.0):
        job = job_of(document_of(given, "settings"), Path())
        status.stop = job.config.stop
        table = Path("run") if job.config.data.path is None else job.config.data.path
        folder = default_folder(table if name is None else Path(name), check_runs())
        result = run_job(
            job, folder, status.generation, tell=lambda each: notices.append(each.text), began=channel.began
        )
    assert isinstance(result, Result)  # equations of motion are refused
    return {"run": folder.as_posix(), **_told(result), "notes": [quoted(text, 200) for text in notices]}


def front(run: Run, index: Index = None) -> Answer:
    """The front of a run, with the constants of one formula, their standard errors and 95 % intervals."""
    found = opened(run)
    return {"run": found.folder.as_posix(), **_told(found.result, index)}


def opened(given: str) -> OpenedRun:
    """A run with a result."""
    folder = run_folder(given)
    if (folder / "config.yaml").is_file():
        checked(read_document(folder / "config.yaml").value, of_run=True)
    if not (folder / "result.json").is_file():
        raise CallError(f"{quoted(given)}: has no result: it was ended before it could write one; search again")
    return open_run(folder)


def job_of_run(run: OpenedRun) -> Job:
    """The settings and data of a run, from the file that it was made from."""
    document = read_document(run.folder / "config.yaml")
    checked(document.value, of_run=True)
    return job_of(document, Path())


def with_rows(model: Model, job: Job) -> Model:
    """A formula that knows how sure its constants are: from its run, or from the rows of its run."""
    if model.known is not None or isinstance(model, TemplateModel):
        return model
    return model.with_rows(job.dataset, job.config.fitness.loss, model.noise)


def model_at(result: Result, index: int | None) -> Model:
    """A formula of a front; the chosen one without an index."""
    place = result.best_index if index is None else index
    if not 0 <= place < len(result.front):
        raise CallError(f"index: {place}: the front has the indices 0 to {len(result.front) - 1}")
    return result.front[place]


def _told(result: Result, index: int | None = None) -> Answer:
    """A front in a few entries, with the constants of one formula."""
    model, chosen = model_at(result, index), result.best_index if index is None else index
    last = min(max(chosen + ROWS // 2, ROWS), len(result.front))
    some = [(place, result.front[place]) for place in range(max(0, last - ROWS), last)]
    answer: Answer = {
        "chosen": result.best_index,
        "reason": result.reason,
        "formula": model.formula(),
        "formulas_of_the_front": len(result.front),
        "front": [
            {
                "index": place,
                "complexity": each.complexity,
                "loss": each.loss,
                "r2": round(each.r2, 6) + 0.0,
                "formula": each.formula(),
            }
            for place, each in some
        ],
        "constants": _constants(model),
    }
    if result.front.noise != "absolute":
        answer["loss_and_r2_are_weighted"] = f"noise {result.front.noise}"
    if ties := result.ties_text:
        answer["ties"] = ties
    if result.noise is not None:
        answer["loss_of_noise_alone"] = result.noise.loss
    return {**answer, "ending": result.ending}


def _constants(model: Model) -> Answer | str:
    """The constants of a formula with their 95 % intervals, by their names in the formula that is told with them."""
    try:
        summary = model.summary()
    except DataError:
        return "not known: there was no time to compute how sure they are"
    rows = {
        row["name"]: {"value": row["coef"], "standard_error": row["std_err"], "low": row["low"], "high": row["high"]}
        for row in summary.rows()
    }
    return {"formula": summary.formula, "values": rows, "notes": list(summary.notes)}


def past_runs(
    folder: Annotated[str, Field(description="Folder of the runs")] = "runs",
    where: Annotated[list[str], Field(max_length=10, description='Such as ["r2 > 0.9"]')] = [],  # noqa: B006 - a schema
    sort: Annotated[str, Field(description="date, r2, loss, nodes, seconds or name")] = "date",
    limit: Annotated[int, Field(ge=1, le=20)] = 10,
) -> Answer:
    """Runs that were made before, with the formula that each chose."""
    place = existing(folder)
    rows = find(place, where=where, sort=sort)
    runs = [
        {
            "run": (place / row.name).as_posix(), "date": f"{row.date:%Y-%m-%d %H:%M}", "data": row.source,
            "target": row.target, "formula": row.formula, "loss": row.loss, "r2": row.r2,
            "stopped_by": row.stopped_by, **({"problem": row.problem} if row.problem else {}),
        }
        for row in rows[:limit]
    ]  # fmt: skip
    return {"found": len(rows), "runs": runs}


def resource(path: str) -> Answer:
    """A file of a run, or the names of its files."""
    place = existing(path)
    if place.is_dir():
        return {"files": [name for name in RESOURCES if (place / name).is_file()]}
    if place.name not in RESOURCES:
        raise CallError(f"{quoted(path)}: is no resource; a run has {', '.join(RESOURCES)}")
    if place.stat().st_size > LONGEST_RESOURCE:
        raise CallError(f"{quoted(path)}: is larger than {LONGEST_RESOURCE} bytes; ask the tool front")
    return {"raw": place.read_text(encoding="utf-8", errors="replace")}
