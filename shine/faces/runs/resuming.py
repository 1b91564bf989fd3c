"""The state that a run goes on from, and whether it is still the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shine import __version__
from shine.base.errors import ConfigError, DataError, ExportError
from shine.data.datasets.dataset import Dataset
from shine.data.fields import Field
from shine.data.trajectories import Trajectories
from shine.faces.config import AnyJob, Config, Job
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.faces.runs.entries import read_entry
from shine.faces.runs.keeping import Notice
from shine.faces.runs.opening import open_run
from shine.lang.forms.names import cut, shown
from shine.lang.vocabulary import primitive_table
from shine.search.templates.template import Unknown, read_unknowns

if TYPE_CHECKING:
    from shine.faces.runs.records import ResultRecord
    from shine.search.dynamics.session import MotionState
    from shine.search.evolution.run_state import State
    from shine.search.evolution.settings import StopSettings


def last_state(job: AnyJob, folder: Path, tell: Callable[[Notice], None]) -> State | MotionState | None:
    """The state in the last undamaged checkpoint; None if there are no checkpoints."""
    damaged = []
    for found in Shelf(folder).readable():
        if not isinstance(found, Checkpoint):
            damaged.append(found)
            continue
        for error in damaged:
            tell(Notice(f"{error}; the run goes on from the one before"))
        if not {"shine", "data"} <= found.header.keys() or not isinstance(found.header.get("settings"), Mapping):
            raise ExportError(f"{folder}: the checkpoint is undamaged, but does not name its run")
        _check(job, folder, found.header)
        if found.header["shine"] != __version__:
            begun_by = shown(found.header["shine"], 30)
            tell(Notice(f"{folder}: was begun by Shine {begun_by}; {__version__} may find something else"))
        return _state(folder, found, job)
    if damaged:
        raise ExportError(
            "\n".join([*map(str, damaged), f"{folder}: has no other checkpoint; run its config.yaml anew"])
        )
    entry, before = read_entry(folder), settings_of(open_run(folder).config)
    _check(job, folder, {"settings": before, "data": entry.data_hash or data_digest(job)})
    tell(Notice(f"{folder}: has no checkpoint yet; the run begins anew"))
    return None


def _state(folder: Path, checkpoint: Checkpoint, job: AnyJob) -> State | MotionState:
    # The evolution is slow to import, and reading a result does not need it.
    from shine.search.dynamics.session import MotionState
    from shine.search.evolution.run_state import State

    template, dynamics = job.config.search.template, job.config.dynamics
    unknowns: Iterable[Unknown] = () if template is None else template.unknowns
    if dynamics is not None:
        unknowns = (read_unknowns(dynamics.known.get("unknown")) or {}).values()
    own = [primitive for unknown in unknowns for primitive in unknown.primitives or ()]
    table, _ = primitive_table([*job.config.search.primitives, *own])
    kind = State if dynamics is None else MotionState
    try:
        return kind.from_arrays(checkpoint.header, checkpoint.arrays, table)
    except ValueError as error:
        raise not_of_this_run(folder, error) from None


def not_of_this_run(folder: Path, problem: ValueError) -> ExportError:
    """The error for the state of another run."""
    told = f"{folder}: the checkpoint is undamaged, but is not a state of this run: {cut(problem)}"
    return ExportError(f"{told}; run its config.yaml anew")


def _check(job: AnyJob, folder: Path, header: Mapping[str, Any]) -> None:
    """Raise an error if the settings (`ConfigError`) or the data (`DataError`) are not the run's."""
    then, now = dict(_leaves(header["settings"])), dict(_leaves(settings_of(job.config)))
    changed = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    if changed:
        raise ConfigError(
            [
                f"{cut(key, 100)}: is {cut(json.dumps(now.get(key), ensure_ascii=False), 100)}, and was "
                f"{cut(json.dumps(then.get(key), ensure_ascii=False), 100)} when the run began; only stop, parallel "
                "and fitness.threads may change"
                for key in changed
            ]
        )
    if header["data"] != data_digest(job):
        told = "only these rows can go on, perhaps from another file: --set data.path=FILE"
        raise DataError(f"{folder}: the data have changed since the run began; {told}")


def check_limits(stop: StopSettings, state: State | MotionState, record: ResultRecord | None) -> None:
    """Raise a `ConfigError` if there is no time or no generation left.

    A run that ended because nothing was left to find goes on to the same end.
    """
    seconds = max(state.seconds, 0.0 if record is None else record.seconds)
    over, passed = [], getattr(state, "least_generation", state.generation)
    if stop.generations is not None and stop.generations <= passed:
        over.append(f"stop.generations: {stop.generations} are over, the run has had {passed}; give more")
    if stop.seconds is not None and stop.seconds <= seconds:
        over.append(f"stop.seconds: {stop.seconds:g} are over, the run has taken {seconds:.1f}; give more")
    if over:
        raise ConfigError(over)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested mappings, by their dotted names."""
    # Without recursion: a header of another program may be nested as deeply as the JSON reader allows.
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += reversed([(f"{path}.{key}" if path else str(key), part) for key, part in value.items()])
        else:
            yield path, value


def description(job: AnyJob) -> dict[str, Any]:
    """The settings and data that, with its state, decide a run's outcome; and the versions of Shine and NumPy."""
    return {
        "shine": __version__,
        "numpy": np.__version__,
        "data": data_digest(job),
        "settings": settings_of(job.config),
    }


def settings_of(config: Config) -> dict[str, Any]:
    """The settings that decide the result of a run, except its limits, as JSON values."""
    no_matter: Any = {"data": True, "stop": True, "fitness": {"threads"}, "parallel": True}
    values: dict[str, Any] = json.loads(config.model_dump_json(exclude=no_matter))
    return values


def data_digest(job: AnyJob) -> str:
    """SHA-256 of the shape, names and numbers of data; of rows that are not in memory, by their checksum."""
    return _digest_of_rows(job.dataset) if isinstance(job, Job) else _digest_of_readings(job.trajectories)


def _digest_of_readings(readings: Trajectories | Field) -> str:
    if isinstance(readings, Field):
        told, arrays = [readings.steps, readings.periodic], [readings.values]
    else:
        told = [readings.controls, [run.name for run in readings.runs]]
        arrays = [each for run in readings.runs for each in (run.times, run.states, run.controls)]
    digest = hashlib.sha256(json.dumps([readings.states, told, [each.shape for each in arrays]]).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _digest_of_rows(dataset: Dataset) -> str:
    digest = hashlib.sha256(json.dumps([dataset.features, dataset.n_rows, dataset.weights is not None]).encode())
    for array in (dataset.columns, dataset.target, dataset.weights, dataset.groups, dataset.times):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    for name, column in dataset.loss_columns.items():
        # The weights contain known deviations.
        if dataset.deviations is None or name != "sigma":
            digest.update(name.encode() + column.tobytes())
    if dataset.all_rows is not None:
        digest.update(json.dumps([dataset.all_rows.n_rows, dataset.all_rows.checksum]).encode())
    return digest.hexdigest()
