"""Running a configuration in a folder, and going on with an interrupted run."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from shine.base.errors import ConfigError, ExportError, placed, reason
from shine.base.files import remove_leftovers
from shine.base.parallel import opened
from shine.data.datasets.preparation import Preparation
from shine.faces.config import AnyJob, Config, DynamicsJob, Job, config_values, dump_config, read_any_job, with_formulas
from shine.faces.runs.files import check_empty, unwritable, write_text
from shine.faces.runs.keeping import CHECKPOINT_SECONDS, Keeper, Notice, as_warning, formulas_put_in
from shine.faces.runs.motion import DynamicsRecord, dynamics_record, found_motion
from shine.faces.runs.opening import open_run
from shine.faces.runs.records import PutInRecord, ResultRecord, front_csv, result_json, result_record
from shine.faces.runs.resuming import check_limits, description, last_state, not_of_this_run
from shine.search.models.model import Model
from shine.search.models.result import Result

if TYPE_CHECKING:
    from shine.search.dynamics.result import DynamicsResult
    from shine.search.dynamics.session import MotionState
    from shine.search.evolution.observers import Observers, Progress, Visitor
    from shine.search.evolution.run_state import State

    AnyResult = Result | DynamicsResult
    AnyState = State | MotionState

Report = Callable[["Progress"], object]
"""Receives the progress of each generation, and ends the run by returning True."""

LIMITS = ("loss", "generations", "seconds", "stagnation")
"""Values of `stopped_by` of finished runs; an interrupted run has another."""


def run_job(
    job: AnyJob,
    folder: str | Path,
    report: Report | None = None,
    *,
    tell: Callable[[Notice], None] = as_warning,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    visitor: Visitor | None = None,
    began: float | None = None,
) -> AnyResult:
    """Search, and keep the configuration, the log, checkpoints and the result in a folder.

    Parameters
    ----------
    job : Job or DynamicsJob
    folder : path
        An existing, empty folder.
    report : callable, optional
        Called with the progress of each generation, after it has been logged; it ends the run by returning True.
    tell : callable
        Receives each `Notice`. A notice with `failed` asks for an exit code other than 0: the run went on, but a file
        could not be written. By default notices are Python warnings.
    checkpoint_seconds : float
        Least time between checkpoints; 0 for one after every generation. Checkpoints never change the result.
    visitor : Visitor, optional
        Watches the search (see `shine.search.run.search`). The log and the result say which formulas it put in.
    began : float, optional
        When the user's call began, on `time.monotonic`: `stop.seconds` count from then. By default now.

    Returns
    -------
    Result or DynamicsResult
        Partial if the run was interrupted. It is returned even if it could not be written.

    Raises
    ------
    ExportError
        If the folder is not empty (a run never overwrites another), or cannot be written to at the beginning, when
        nothing is lost yet.
    ConfigError
        If a guess or a primitive cannot be used. `read_job` has checked those of its jobs.
    """
    began = time.monotonic() if began is None else began
    written = (*job.config.guesses, *job.config.primitives)
    if isinstance(job, Job) and not all(isinstance(entry, str) for entry in written):
        job = with_formulas(job)
    folder = Path(folder)
    with only_writer(folder):
        check_empty(folder)
        write_text(folder / "config.yaml", dump_config(job.config))
        for note in job.notes if isinstance(job, Job) else ():
            tell(Notice(note))
        return _run(job, folder, None, report, tell, checkpoint_seconds, visitor, began)


def resume_job(
    folder: str | Path,
    report: Report | None = None,
    *,
    overrides: Sequence[str] = (),
    tell: Callable[[Notice], None] = as_warning,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    visitor: Visitor | None = None,
    began: float | None = None,
) -> AnyResult:
    """Go on with the run in a folder from its last checkpoint.

    The front is the same, to the last bit, as without the interruption. A run without a checkpoint begins anew. A run
    that has reached a limit is finished, and its result is returned; with a higher limit it goes on, and ends like one
    run of that limit, except that its seeding and the choice of its noise knew the lower one. The front that is in the
    folder competes with the new one: it never becomes worse.

    Parameters
    ----------
    folder : path
    report, tell, checkpoint_seconds, visitor, began
        See `run_job`.
    overrides : sequence of str
        Each like ``stop.generations=200``, with the value in YAML. Only settings under ``stop`` and ``parallel``, and
        ``fitness.threads``, may change.

    Raises
    ------
    ConfigError
        If the configuration is missing or wrong, or differs from the run's, or its seconds or generations are over.
    DataError
        If the data have changed since the run began.
    ExportError
        If the folder holds no run, none of its checkpoints can be read, a checkpoint is of a newer version of Shine, or
        another process is writing the run.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").is_file():
        raise ExportError(f"{folder}: holds no run to go on with: it has no config.yaml")
    began = time.monotonic() if began is None else began
    job, before = read_any_job(folder / "config.yaml", overrides), open_run(folder).config
    with only_writer(folder):
        state = last_state(job, folder, tell)
        record, earlier = _before(folder)
        finished = record if record is not None and record.stopped_by in LIMITS else None
        if state is not None and job.config.stop != before.stop:
            check_limits(job.config.stop, state, record)
            state = state if isinstance(job, Job) else cast("MotionState", state).under(before.stop, job.config.stop)
        if finished is not None and state is not None:
            if job.config.stop == before.stop:
                tell(Notice(f"{folder}: is finished, by its limit of {finished.stopped_by}; raise it to go on"))
                return open_run(folder).result
            # From now on, the result in the folder is partial.
            unfinished = finished.model_copy(update={"stopped_by": "interrupted"})
            write_text(folder / "result.json", result_json(unfinished))
        if job.config != before:
            write_text(folder / "config.yaml", dump_config(job.config))
        return _run(job, folder, state, report, tell, checkpoint_seconds, visitor, began, earlier)


def _before(folder: Path) -> tuple[ResultRecord | None, tuple[Model, ...]]:
    """The contents of result.json and the front in it; none if there are none, or they cannot be read."""
    try:
        run = open_run(folder)
        return run.record, run.result.front.models
    except ExportError:
        return None, ()


def _run(
    job: AnyJob,
    folder: Path,
    state: AnyState | None,
    report: Report | None,
    tell: Callable[[Notice], None],
    checkpoint_seconds: float,
    visitor: Visitor | None,
    began: float | None,
    earlier: Sequence[Model] = (),
) -> AnyResult:
    # Slow to import, and reading a result does not need it.
    from shine.search.evolution.observers import Observers
    from shine.search.evolution.run_state import StrangeStateError
    from shine.search.run import Several

    config = job.config
    keeper = Keeper(folder, partial(description, job), tell, checkpoint_seconds)
    with placed(f"{keeper.log.path}: cannot be written", OSError, kind=ExportError, told=reason):
        lacking = keeper.log.begin(state.generation if state else 0)
    # Islands report after each epoch only, and searches for rates in workers at their end.
    if lacking and config.evolution.islands == 1 and not (config.dynamics and config.parallel.is_set):
        tell(Notice(f"{keeper.log.path}: lacks {lacking} lines of earlier generations"))

    put_in = formulas_put_in(keeper.log.path) if state else []

    def note(progress: Progress) -> None:
        formulas, number = visitor.joined() if visitor is not None else (), progress.before + progress.generation
        put_in.extend(PutInRecord(generation=number, formula=formula) for formula in formulas)
        keeper.note(progress, formulas)

    try:
        with ExitStack() as stack:
            try:
                pool = stack.enter_context(opened(config.parallel))
            except ValueError as error:
                raise ConfigError([f"parallel: {error}"]) from None
            everyone = Several((note, *(() if report is None else (report,))))
            observers = Observers(everyone, visitor, pool=pool, began=began)
            result = _found(job, observers, state, keeper.save, earlier)
        limit = config.stop.seconds
        until = math.inf if limit is None else time.monotonic() + limit - result.seconds
        until = 0.0 if result.stopped_by == "interrupted" else until
        _despite_an_interrupt(partial(_keep_result, keeper, folder, result, job, put_in, until))
    except StrangeStateError as error:
        raise not_of_this_run(folder, error) from None
    finally:
        _despite_an_interrupt(keeper.finish)
        keeper.summarize()
    return result


def _found(
    job: AnyJob, observers: Observers, state: Any, save: Callable[[Any], None], earlier: Sequence[Model]
) -> AnyResult:
    """What the search finds that a job asks for, from a state of its kind."""
    if isinstance(job, DynamicsJob):
        return found_motion(job, observers, state, save)
    from shine.search.run import search

    result = search(job.dataset, job.config.search, replace(observers, state=state, save=save), earlier)
    return result.with_preparation(job.preparation)


def _keep_result(
    keeper: Keeper, folder: Path, result: AnyResult, job: AnyJob, put_in: Sequence[PutInRecord], until: float
) -> None:
    data, preparation = keeper.description["data"], job.preparation if isinstance(job, Job) else None
    record = record_of(result, job.config, put_in, data, preparation, until)
    keeper.attempt(folder / "front.csv", partial(write_text, folder / "front.csv", front_csv(result)))
    keeper.finish()
    # Last, because result.json marks a run as finished: a run that is killed before can go on and write the rest.
    keeper.attempt(folder / "result.json", partial(write_text, folder / "result.json", result_json(record)))


def record_of(
    result: AnyResult,
    config: Config,
    put_in: Sequence[PutInRecord] = (),
    data: str | None = None,
    preparation: Preparation | None = None,
    until: float = math.inf,
) -> ResultRecord | DynamicsRecord:
    """The contents of result.json (see `result_record`)."""
    if not isinstance(result, Result):
        return dynamics_record(result, config, put_in, data)
    named = config.target_name, config.primitive_texts
    return result_record(result, *named, preparation, put_in, data, config_values(config), until)


def _despite_an_interrupt(action: Callable[[], None]) -> None:
    """Do a short, repeatable action; if Ctrl-C interrupts it, do it again."""
    try:
        action()
    except KeyboardInterrupt:
        action()


class BusyRunError(ExportError):
    """Another process is writing the run."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep other processes from writing the same run. The system drops the lock however the process ends.

    An `ExportError` if another process is writing the run.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        with suppress(OSError):  # file systems without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyRunError(f"{folder}: another process is writing this run") from None
            for place in (folder, folder / "checkpoints"):
                remove_leftovers(place)
        yield
    finally:
        with suppress(OSError):  # nothing was written through it
            os.close(descriptor)
