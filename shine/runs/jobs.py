"""Running a configuration in a folder, and going on with a run that was cut short."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shine import __version__
from shine.config import Config, Job, dump_config, is_retired, read_job, with_formulas
from shine.data.dataset import Dataset
from shine.errors import ConfigError, DataError, ExportError
from shine.lang.names import cut, normalized, shown
from shine.lang.parse import primitive_table
from shine.lang.primitives import PrimitiveSet, select
from shine.runs.checkpoints import Checkpoint, Shelf
from shine.runs.files import check_empty, write_text
from shine.runs.keeping import CHECKPOINT_SECONDS, Keeper, Notice, as_warning
from shine.runs.lock import only_writer
from shine.runs.opening import open_run
from shine.runs.records import ResultRecord, front_csv, read_result, result_json, result_record

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.gp.run_state import State
    from shine.search.model import Result

Report = Callable[["Progress"], object]
"""Receives the progress of each generation, and ends the run by returning True."""

LIMITS = ("loss", "generations", "seconds")
"""What ends a run that has nothing more to do."""


def run_job(
    job: Job,
    folder: str | Path,
    report: Report | None = None,
    *,
    tell: Callable[[Notice], None] = as_warning,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:
    """Search, and keep in a folder what was used and found.

    Parameters
    ----------
    job : Job
    folder : path
        An empty folder that is there.
    report : callable, optional
        Called with the progress of each generation, after it has been logged; it ends the run by returning True.
    tell : callable
        Receives each `Notice`. One that says `failed` asks for an exit code other than 0: the run went on, but a file
        could not be written. By default notices are Python warnings.
    checkpoint_seconds : float
        Least time between checkpoints; 0 for one after every generation. They never change what is found.

    Returns
    -------
    Result
        Partial if the run was interrupted; also if it could not be written.

    Raises
    ------
    ExportError
        If the folder cannot be written to in the beginning, when nothing is lost, or something is in it: a run never
        overwrites another.
    ConfigError
        If a graph to start from, which `read_job` has not read, cannot be used.
    """
    if not all(isinstance(entry, str) for entry in (*job.config.seeds, *job.config.primitives)):
        job = with_formulas(job)
    folder = Path(folder)
    with only_writer(folder):
        check_empty(folder)
        write_text(folder / "config.yaml", dump_config(job.config))
        return _run(job, folder, None, report, tell, checkpoint_seconds)


def resume_job(
    folder: str | Path,
    report: Report | None = None,
    *,
    overrides: Sequence[str] = (),
    tell: Callable[[Notice], None] = as_warning,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:
    """Go on with the run in a folder from its last checkpoint.

    It ends as if it had never been cut short: with the same front, to the last bit. A run without a checkpoint begins
    anew. One that has reached a limit is over, and what it found is returned; a higher limit makes it go on.

    Parameters
    ----------
    folder : path
    report, tell, checkpoint_seconds
        See `run_job`.
    overrides : sequence of str
        ``stop.generations=200`` each, with the value in YAML. Only what is under ``stop``, and ``fitness.threads``, may
        be other than it was.

    Returns
    -------
    Result

    Raises
    ------
    ConfigError
        If the configuration is missing or wrong, or other than that of the run.
    DataError
        If the data are not those of the run.
    ExportError
        If the folder holds no run, no checkpoint of it can be read, one is of a newer version of Shine, or another
        process is writing it.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").is_file():
        raise ExportError(f"{folder}: holds no run to go on with; there is no config.yaml in it")
    job, before = read_job(folder / "config.yaml", overrides), open_run(folder).config
    with only_writer(folder):
        state = _last_state(job, folder, tell)
        finished = _finished_record(folder)
        if finished is not None and state is not None:
            if job.config.stop == before.stop:
                tell(Notice(f"{folder}: is finished, by its limit of {finished.stopped_by}; raise it to go on"))
                return open_run(folder).result
            # From now on, what is there is only what was found so far.
            unfinished = finished.model_copy(update={"stopped_by": "interrupted"})
            write_text(folder / "result.json", result_json(unfinished))
        if job.config != before:
            write_text(folder / "config.yaml", dump_config(job.config))
        return _run(job, folder, state, report, tell, checkpoint_seconds)


def _finished_record(folder: Path) -> ResultRecord | None:
    """What result.json says, if it says that a limit has ended the run."""
    try:
        record = read_result(folder)
    except ExportError:
        return None
    return record if record.stopped_by in LIMITS else None


def _run(
    job: Job,
    folder: Path,
    state: State | None,
    report: Report | None,
    tell: Callable[[Notice], None],
    checkpoint_seconds: float,
) -> Result:
    from shine.search.run import search  # compiled code comes with it; reading results needs none

    config = job.config
    keeper = Keeper(folder, partial(_description, job), tell, checkpoint_seconds)
    try:
        lacking = keeper.log.begin(state.generation if state else 0)
    except OSError as error:
        raise ExportError(f"{keeper.log.path}: cannot be written: {error.strerror}") from None
    if lacking:
        tell(Notice(f"{keeper.log.path}: lacks {lacking} generations"))

    def note(progress: Progress) -> object:
        keeper.note(progress_record(progress))
        return report(progress) if report is not None else None

    try:
        result = search(
            job.dataset,
            primitives_of(config),
            config.evolution,
            config.stop,
            **config.fitness.model_dump(),
            constraints=config.constraints,
            seed=config.seed,
            seeds=[str(formula) for formula in config.seeds],
            report=note,
            state=state,
            save=keeper.save,
        )
        _despite_an_interrupt(partial(_keep_result, keeper, folder, result, config))
    finally:
        _despite_an_interrupt(keeper.finish)
        keeper.summarize()
    return result


def _keep_result(keeper: Keeper, folder: Path, result: Result, config: Config) -> None:
    record = result_record(result, target_name(config), primitives_of(config))
    keeper.attempt(folder / "front.csv", partial(write_text, folder / "front.csv", front_csv(result)))
    keeper.finish()
    # Last, because a run that has it is finished: one that is killed before goes on, and writes the rest.
    keeper.attempt(folder / "result.json", partial(write_text, folder / "result.json", result_json(record)))


def _despite_an_interrupt(action: Callable[[], None]) -> None:
    """Do what is short, and may be done twice: one Ctrl-C while it is done comes too late to matter."""
    try:
        action()
    except KeyboardInterrupt:
        action()


def primitives_of(config: Config) -> list[str]:
    """Primitives of a job's configuration: names, and definitions of functions."""
    return [str(primitive) for primitive in config.primitives]


def target_name(config: Config) -> str:
    """What the target is called: the heading of its column, and ``y`` where the data are generated."""
    return config.data.target or "y"


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


def _last_state(job: Job, folder: Path, tell: Callable[[Notice], None]) -> State | None:
    """The state in the last checkpoint that is whole; None if there are no checkpoints."""
    damaged = []
    for found in Shelf(folder).readable():
        if not isinstance(found, Checkpoint):
            damaged.append(found)
            continue
        for error in damaged:
            tell(Notice(f"{error}; the run goes on from the one before"))
        if not {"shine", "data"} <= found.header.keys() or not isinstance(found.header.get("settings"), Mapping):
            raise ExportError(f"{folder}: the checkpoint is whole, but does not say of which run it is")
        _check_names(folder, found.header)
        _check(job, folder, found.header)
        if found.header["shine"] != __version__:
            begun_by = shown(found.header["shine"], 30)
            tell(Notice(f"{folder}: was begun by Shine {begun_by}; {__version__} may find something else"))
        return _state(folder, found, job)
    if damaged:
        raise ExportError(
            "\n".join([*map(str, damaged), f"{folder}: has no other checkpoint; run its config.yaml anew"])
        )
    tell(Notice(f"{folder}: has no checkpoint yet; the run begins anew"))
    return None


def _state(folder: Path, checkpoint: Checkpoint, job: Job) -> State:
    from shine.gp.run_state import State, check_state

    table, names = primitive_table(primitives_of(job.config))
    features = job.dataset.without(job.config.constraints.forbidden).features
    try:
        state = State.from_arrays(checkpoint.header, checkpoint.arrays, table)
        check_state(state, PrimitiveSet(select(table, names), features), job.config.evolution)
        return state
    except ValueError as error:
        problem = cut(error)
    raise ExportError(
        f"{folder}: the checkpoint is whole, but no state of this run: {problem}; run its config.yaml anew"
    )


def _description(job: Job) -> dict[str, Any]:
    """What a run's outcome depends on besides its state, and what is made with."""
    return {
        "shine": __version__,
        "numpy": np.__version__,
        "data": data_digest(job.dataset),
        "settings": settings_of(job.config),
    }


def _check_names(folder: Path, header: Mapping[str, Any]) -> None:
    """Raise if a run was begun before names were normalized, with others than its data have now."""
    names = header.get("features")
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and normalized(name) != name:
            raise ExportError(
                f"{folder}: the checkpoint has a feature {shown(name)}, which formulas read as "
                f"{shown(normalized(name))}; run its config.yaml anew"
            )


def _check(job: Job, folder: Path, header: Mapping[str, Any]) -> None:
    """Raise what `resume_job` promises if a run would go on as another."""
    then, now = dict(_leaves(header["settings"])), dict(_leaves(settings_of(job.config)))
    then = {key: value for key, value in then.items() if not is_retired(key, value)}
    changed = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    if changed:
        raise ConfigError(
            [
                f"{cut(key, 100)}: is {cut(json.dumps(now.get(key)), 100)}, and was "
                f"{cut(json.dumps(then.get(key)), 100)} when the run began; only stop and fitness.threads may change"
                for key in changed
            ]
        )
    if header["data"] != data_digest(job.dataset):
        raise DataError(f"{folder}: the data are not those that the run began with")


def settings_of(config: Config) -> dict[str, Any]:
    """The settings that decide what a run finds, when no limit ends it, as JSON has them."""
    values: dict[str, Any] = json.loads(
        config.model_dump_json(exclude={"data": True, "stop": True, "fitness": {"threads"}})
    )
    return values


def data_digest(dataset: Dataset) -> str:
    """SHA-256 of a data set: its shape, its names, every bit of its numbers."""
    digest = hashlib.sha256(json.dumps([dataset.features, dataset.n_rows, dataset.weights is not None]).encode())
    for array in (dataset.columns, dataset.target, dataset.weights):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested mappings, by their dotted names."""
    # Without recursion: a header that somebody else wrote may be nested as deep as JSON is read.
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += reversed([(f"{path}.{key}" if path else str(key), part) for key, part in value.items()])
        else:
            yield path, value
