"""Sweeps: many runs of one configuration with other settings, each in a folder of its own."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from shine.base.errors import ConfigError, ExportError, ShineError, WorkerError, placed, reason
from shine.base.parallel import ExecutorSource, ParallelSettings, Pool, Round, Shipment, opened
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.folds import kept_back_by
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.rows import data_for_loss
from shine.faces.config import Config, Job, read_config, read_job
from shine.faces.runs.jobs import LIMITS, BusyRunError, resume_job, run_job
from shine.faces.runs.keeping import Notice
from shine.faces.runs.opening import open_run
from shine.faces.runs.resuming import settings_of
from shine.faces.runs.variants import Sweep, Variant, range_of
from shine.lang.forms.names import cut
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.vocabulary import primitive_table
from shine.search.finishing.refinement import measured

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress
    from shine.search.models.model import Model

MEASURES = ("loss", "r2", "nodes", "seconds")
"""Figures to rank combinations by: the first and the latter two rise, R2 falls."""


@dataclass(frozen=True)
class Task:
    """A run to be done somewhere."""

    config: str
    overrides: tuple[str, ...]
    folder: str
    variant: Variant
    spread: bool = False
    """Whether it is done by a worker beside others: then it has one thread and no workers of its own."""


@dataclass(frozen=True)
class Outcome:
    """Result of a run of a sweep.

    Parameters
    ----------
    variant : Variant
    folder : str
    loss, r2 : float
        Of the chosen formula: on the rows of the fold that the run did not see, without folds on those that it saw.
    nodes : int
    seconds : float
    formula : str
    stopped_by : str
    problem : str
        Why there is no result; empty if there is one.
    """

    variant: Variant
    folder: str
    loss: float = float("inf")
    r2: float = float("nan")
    nodes: int = 0
    seconds: float = 0.0
    formula: str = ""
    stopped_by: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Standing:
    """A combination of settings, by the medians of its runs.

    Parameters
    ----------
    settings : dict of str to str
        What is its own.
    runs : tuple of Outcome
        Those with a result, the best first.
    loss, r2, nodes, seconds : float
        Medians over these runs.
    """

    settings: dict[str, str]
    runs: tuple[Outcome, ...]
    loss: float
    r2: float
    nodes: float
    seconds: float


@dataclass(frozen=True)
class SweepResult:
    """The outcomes of a sweep.

    Parameters
    ----------
    outcomes : tuple of Outcome
        In the order of the variants; of an interrupted sweep only those that are done.
    by : str
        What combinations are ranked by.
    planned : int
        Number of runs of the sweep.
    """

    outcomes: tuple[Outcome, ...]
    by: str
    planned: int

    @property
    def standings(self) -> list[Standing]:
        """The combinations with a result, the best first."""
        groups: defaultdict[tuple[tuple[str, str], ...], list[Outcome]] = defaultdict(list)
        for each in self.outcomes:
            if not each.problem:
                groups[each.variant.settings].append(each)
        found = [
            Standing(dict(settings), tuple(sorted(runs, key=self._rank)), *(_median(runs, name) for name in MEASURES))
            for settings, runs in groups.items()
        ]
        return sorted(found, key=self._rank)

    @property
    def best(self) -> Standing | None:
        """The combination that won; None without any result."""
        return next(iter(self.standings), None)

    @property
    def failed(self) -> list[Outcome]:
        """Runs without a result."""
        return [each for each in self.outcomes if each.problem]

    def _rank(self, each: Outcome | Standing) -> tuple[float, float]:
        value = getattr(each, self.by)
        value = -value if self.by == "r2" else value
        return (float("inf") if np.isnan(value) else value, each.nodes)


def sweep(
    config: str | Path,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    random: int | None = None,
    ranges: Mapping[str, str | tuple[float, float]] | None = None,
    seeds: int | None = None,
    folds: int | None = None,
    holdout: bool = False,
    draw: int = 0,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    by: str | None = None,
    executor: ExecutorSource = None,
    workers: int | None = None,
    tell: Callable[[Outcome], object] | None = None,
) -> SweepResult:
    """Run a configuration with many settings, and rank them.

    Each run has its folder. A sweep that is repeated takes finished runs as they are, goes on with interrupted ones
    and does the others.

    Parameters
    ----------
    config : path
        The YAML file.
    grid : mapping of str to sequence
        Values of settings by their names: ``{"evolution.population": [200, 500]}``.
    random : int, optional
        Draw so many combinations instead of trying all.
    ranges : mapping of str to str or pair
        Settings to draw from a range: ``{"evolution.parsimony": "1e-4..1e-1:log"}``.
    seeds : int, optional
        Runs of each combination, with the seeds 0, 1, ...
    folds : int, optional
        Runs of each combination that learn from all but one of so many parts of the rows, and are judged on the other.
    holdout : bool
        Only the first of the folds.
    draw : int
        Seed of the drawing.
    overrides : sequence of str
        Settings of all runs, as ``stop.seconds=10``.
    out : path, optional
        The folder of the runs; by default ``runs/<name of the configuration>-sweep``.
    by : {"loss", "r2", "nodes", "seconds"}, optional
        Value to rank by; the loss unless the sweep tries several losses or targets, then R2.
    executor, workers
        Where the runs are done (see `shine.base.parallel.opened`); by default in this process, one after the other.
    tell : callable, optional
        Receives each `Outcome`.

    Returns
    -------
    SweepResult
        After Ctrl-C with the runs that are done.

    Raises
    ------
    ValueError, ConfigError, ExportError
        If a setting is wrong, or the folder holds something else. Problems of single runs are in their outcomes.
    """
    plan = Sweep(
        {key: [_yaml(value) for value in values] for key, values in (grid or {}).items()}, random,
        {key: range_of(key, value if isinstance(value, str) else "..".join(map(str, value)))
         for key, value in (ranges or {}).items()},
        seeds, folds, holdout, draw,
    )  # fmt: skip
    return run_sweep(Path(config), plan, overrides, out, by, executor, workers, tell)


def run_sweep(
    config: Path,
    plan: Sweep,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    by: str | None = None,
    executor: ExecutorSource = None,
    workers: int | None = None,
    tell: Callable[[Outcome], object] | None = None,
    report: Callable[[Progress], object] | None = None,
) -> SweepResult:
    """Run what a sweep tries (see `sweep`); `report` receives the progress of runs in this process."""
    variants = plan.variants()
    swept = {key for each in variants for key, _ in each.settings}
    by = by or ("r2" if swept & {"fitness.loss", "data.target"} else "loss")
    if by not in MEASURES:
        raise ValueError(f"by: {by!r} is none of {', '.join(MEASURES)}")
    folder = Path("runs") / f"{config.stem}-sweep" if out is None else Path(out)
    given = {each: (*overrides, *plan.overrides(each)) for each in variants}
    data = {tuple(pair for pair in each.settings if pair[0].startswith("data.")): each for each in reversed(variants)}
    for each in variants:  # what is wrong is told before anything runs; data are read once
        (read_job if each in data.values() else read_config)(config, given[each])
    if isinstance(executor, ParallelSettings) and not executor.is_set:
        executor = None
    spread = executor is not None or workers is not None
    tasks = [
        Task(str(config.absolute()), given[each], str((folder / each.name).absolute()), each, spread)
        for each in variants
    ]
    outcomes: list[Outcome] = []
    try:
        with opened(executor, workers=workers) as pool:
            coming: Iterable[Outcome]
            coming = (run_task(task, report) for task in tasks) if pool is None else _spread(pool, tasks)
            for outcome in coming:
                if outcome.stopped_by == "interrupted":
                    break
                outcomes.append(outcome)
                if tell is not None:
                    tell(outcome)
    except KeyboardInterrupt:  # it has passed `opened`, so that processes end that would still be busy
        pass
    return SweepResult(tuple(outcomes), by, len(variants))


def _spread(pool: Pool, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """The outcomes of runs on workers, in order; a run that kills its workers is left out, and the others go on."""
    while tasks:
        done = 0
        with Shipment(None) as wanted:  # workers stop when it is gone
            this_round = Round(pool, _in_worker, tasks, wanted)
            try:
                for outcome in this_round.results():
                    done += 1
                    yield outcome
            except WorkerError as error:
                yield Outcome(tasks[done].variant, tasks[done].folder, problem=cut(error))
                done += 1
            finally:
                this_round.cancel()
        tasks = tasks[done:]


def _in_worker(value: None, task: Task, stopped: Callable[[], bool]) -> Outcome:
    def end(progress: Progress) -> None:
        if stopped():
            raise KeyboardInterrupt

    return run_task(task, end)


def run_task(task: Task, report: Callable[[Progress], object] | None = None) -> Outcome:
    """Do a run unless it is done already; errors are part of the outcome, so that other runs go on."""
    folder = Path(task.folder)
    try:
        job = read_job(task.config, task.overrides)
        while True:
            try:
                stopped_by = _done(job, folder, task, report)
                return _outcome(job, folder, task, stopped_by)
            except BusyRunError:  # an executor took this run for lost, and both do it
                time.sleep(1.0)  # seconds between looks at a run that another process is writing
    except ShineError as error:
        lines = error.problems if isinstance(error, ConfigError) else str(error).splitlines()
        return Outcome(task.variant, task.folder, problem=cut("; ".join(lines)))
    except Exception as error:
        return Outcome(task.variant, task.folder, problem=cut(f"{type(error).__name__}: {error}"))


def _done(job: Job, folder: Path, task: Task, report: Callable[[Progress], object] | None) -> str:
    """Do what is left of a run; returns what ended it."""
    if not (folder / "config.yaml").is_file():
        with placed(f"{folder}: cannot be made", OSError, kind=ExportError, told=reason):
            folder.mkdir(parents=True, exist_ok=True)
        return run_job(_worker_job(job) if task.spread else job, folder, report, tell=_ignored).stopped_by
    own = read_config(folder / "config.yaml")
    if _identity(own) != _identity(job.config):
        raise ExportError(f"{folder}: holds a run of other settings or limits; choose another folder with --out")
    try:
        stopped_by: str = open_run(folder).record.stopped_by
    except ExportError:
        stopped_by = ""
    if stopped_by in (*LIMITS, "callback"):
        return stopped_by
    return resume_job(folder, report, tell=_ignored).stopped_by


def _outcome(job: Job, folder: Path, task: Task, stopped_by: str) -> Outcome:
    run = open_run(folder)
    best = run.result.best
    loss, r2 = best.loss, best.r2
    if job.config.data.fold is not None:
        loss, r2 = _judged(job, best, task)
    seconds, text = run.record.seconds, best.expression
    return Outcome(task.variant, task.folder, loss, r2, best.complexity, seconds, text, stopped_by)


def _judged(job: Job, model: Model, task: Task) -> tuple[float, float]:
    """Loss and R2 of a formula on the rows of the fold that the run did not see."""
    fold = job.config.data.fold
    assert fold is not None
    rows = read_job(task.config, [*task.overrides, "data.fold=null"]).dataset
    held: Dataset = rows.take(np.flatnonzero(kept_back_by(rows, fold)))
    loss = loss_for(job.config.fitness.loss, held)
    held = data_for_loss(loss, held, job.config.fitness.noise)
    primitives = PrimitiveSet(select(*primitive_table(job.config.primitive_texts)), held.features)
    threads = 1 if task.spread else processors()
    found = measured([model.tree], held, loss, model.weights, primitives, threads)[0]
    return found.loss, found.r2


def _worker_job(job: Job) -> Job:
    """A job for one of the workers that share a machine; neither threads nor workers change a result."""
    fitness = replace(job.config.fitness, threads=job.config.fitness.threads or 1)
    return replace(job, config=job.config.model_copy(update={"fitness": fitness, "parallel": ParallelSettings()}))


def _identity(config: Config) -> Any:
    return settings_of(config), config.data, config.stop


def _median(runs: Sequence[Outcome], name: str) -> float:
    values = [getattr(each, name) for each in runs]
    known = [value for value in values if not np.isnan(value)]
    return median(known) if known else float("nan")


def _yaml(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ignored(notice: Notice) -> None:
    """Notices of single runs are not shown: their files are there."""
