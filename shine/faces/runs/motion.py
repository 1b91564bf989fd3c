"""A run of dynamics: its search, and its result.json, written and read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from pydantic import FiniteFloat, ValidationError

from shine.base.errors import ExportError, UnsupportedSyntaxError, placed
from shine.data.fields import AXES, Field
from shine.faces.config import Config, DynamicsJob, config_values
from shine.faces.runs.files import read_file
from shine.faces.runs.records import PutInRecord, Record, Versions, versions
from shine.lang.forms.names import cut
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.models.model import Model

if TYPE_CHECKING:
    from shine.search.dynamics.result import DynamicsResult
    from shine.search.dynamics.session import MotionState
    from shine.search.dynamics.system import SystemModel
    from shine.search.evolution.observers import Observers

SCHEMA_VERSION: Final = 1
"""Version of result.json of dynamics; it rises if readers of the old version would misread the new one."""

OF_SYSTEMS = "states", "headings", "controls", "time", "is_map", "step", "lags", "order", "hidden", "runs"
"""Keys of result.json, and attributes of systems, of the same meaning."""

OF_FIELDS = "steps", "derivatives", "periodic", "widths"
"""Keys of result.json, and attributes of systems, that only fields have."""


class EquationRecord(Record):
    """The rate of one state."""

    expression: str
    """The formula, in Shine's language; its numbers read back to the last bit."""
    complexity: int
    """Number of nodes, each times its weight, rounded."""
    loss: FiniteFloat | None
    """Loss of the rates; null where it is not finite."""
    r2: FiniteFloat | None
    """R2 of the rates; null where it is not finite."""
    digits: int | None = None
    """Significant digits of its constants that the data support; null if not known."""


class SystemRecord(Record):
    """One system of the front."""

    expression: str
    """Its equations, as text."""
    complexity: int
    """Sum of those of its equations."""
    loss: FiniteFloat | None
    """Squared error of the rollouts as a share of the readings' variance, mean over the states; null if they end."""
    r2: FiniteFloat | None
    """R2 of the rollouts, mean over the states; null if they end."""
    equations: tuple[EquationRecord, ...]
    """The rate of each state, in the order of `states`."""
    losses: tuple[FiniteFloat | None, ...]
    """Mean squared error of the rollouts of each state."""
    variances: tuple[FiniteFloat | None, ...]
    """Variance of the readings of each state; null for one that nobody read."""
    starts: tuple[tuple[FiniteFloat | None, ...], ...]
    """Fitted states at the first time of each run."""
    noise: tuple[FiniteFloat | None, ...]
    """Standard deviation of the readings of each state around the rollouts."""
    covariance: tuple[tuple[FiniteFloat | None, ...], ...] | None
    """Covariance of the constants, equation after equation; null if not known."""
    restarts: int = 0
    """New starts within runs: their rollouts are stretches."""
    stiff: bool = False
    """Whether the fitted rollouts took implicit steps."""
    nats: FiniteFloat | None
    """Length of the description of the readings, less that by constants; null if the system cannot be integrated."""


class DynamicsRecord(Record):
    """The contents of result.json of a run of dynamics."""

    schema_version: Literal[1]
    """Version of this form."""
    kind: Literal["dynamics"]
    """Subject of the search."""
    best: SystemRecord
    """The chosen system, one of the front."""
    front: tuple[SystemRecord, ...]
    """Systems by rising complexity and falling error."""
    reason: str
    """Reason of the choice, or why nothing was found."""
    found: bool = True
    """Whether the chosen system explains the readings; if not, it is only the best of the front."""
    target: str
    """The states, for lists of runs."""
    states: tuple[str, ...]
    """Names of the states in formulas."""
    headings: tuple[str, ...]
    """Headings of the states in the file."""
    controls: tuple[str, ...]
    """Names of the controls."""
    time: str | None
    """Name of the time in formulas; null if rates do not depend on it."""
    is_map: bool = False
    """Whether the equations give the states a step later, and not rates."""
    step: FiniteFloat = 1.0
    """Step of the times of a map."""
    lags: int = 0
    """Steps back whose states follow those of the last step among the states."""
    order: int = 1
    """2 if the states are positions, and then their rates."""
    hidden: int | None = None
    """Position of the state whose rate shows the last state, which nobody read; null if all were."""
    runs: tuple[str, ...] = ()
    """Names of the runs, if constants depend on them: their number is the last control then."""
    steps: tuple[FiniteFloat, ...] = ()
    """Of fields, the steps of the time and of each axis; empty for trajectories, as the next three are then."""
    derivatives: int = 0
    """Highest derivative in space of the fields."""
    periodic: bool = False
    """Whether the last point of an axis is followed by the first."""
    widths: tuple[FiniteFloat, ...] = ()
    """Widths of the kernel that smooths fields, along the time and the axes."""
    primitives: tuple[str, ...]
    """Functions in formulas."""
    weights: dict[str, FiniteFloat]
    """Complexity of primitives, features and constants that is not 1."""
    seconds: FiniteFloat
    """Duration of the search."""
    seed: int
    """Seed of the search."""
    stopped_by: str
    """End of the search."""
    systems: int
    """Number of systems that were fitted to the trajectories."""
    put_in: tuple[PutInRecord, ...] = ()
    """Formulas put in on the live page; the seed repeats a run only without them."""
    data: str | None = None
    """SHA-256 of the names and numbers of the readings; null for a search without a run."""
    settings: dict[str, Any]
    """The configuration, with every default."""
    versions: Versions
    """Versions of the software."""


def result_of_record(record: DynamicsRecord, folder: Path) -> DynamicsResult:
    """The result of a run, whose systems have the values of those of the search to the last bit.

    An `ExportError` if a formula cannot be read.
    """
    from shine.search.dynamics.result import DynamicsResult, SystemFront

    if record.best not in record.front:
        raise ExportError(f"{folder / 'result.json'}: the chosen system is not one of the front")
    best = record.front.index(record.best)
    models = tuple(_system(each, record, folder) for each in record.front)
    front = SystemFront(models, best, record.reason, found=record.found)
    return DynamicsResult(front, {}, record.seconds, record.seed, record.stopped_by, record.systems)


def _system(found: SystemRecord, record: DynamicsRecord, folder: Path) -> SystemModel:
    from shine.search.dynamics.fields.model import FieldModel
    from shine.search.dynamics.fields.mollifying import feature_names
    from shine.search.dynamics.system import SystemModel

    features = [*record.states, *record.controls, *([] if record.time is None else [record.time])]
    kind: Any = FieldModel if record.steps else SystemModel
    if record.steps:
        features = feature_names(record.states, AXES[: len(record.steps) - 1], record.derivatives)
    table = primitive_table(record.primitives)[0]
    equations = []
    for each in found.equations:
        with placed(folder / "result.json", UnsupportedSyntaxError, kind=ExportError, told=cut):
            tree = parse(each.expression, features, table)
        loss, r2 = _number(each.loss, math.inf), _number(each.r2, math.nan)
        equations.append(Model(tree, loss, r2, record.weights, digits=each.digits))
    model: SystemModel = kind(
        tuple(equations),
        losses=_array(found.losses, math.inf),
        variances=_array(found.variances, math.inf),
        starts=np.array([_array(start) for start in found.starts]).reshape(-1, len(record.states)),
        noise=_array(found.noise),
        covariance=None if found.covariance is None else _matrix(found.covariance),
        nats=_number(found.nats, math.inf),
        restarts=found.restarts,
        stiff=found.stiff,
        **{name: getattr(record, name) for name in (*OF_SYSTEMS, *(OF_FIELDS if record.steps else ()))},
    )
    return model


def _number(value: float | None, missing: float) -> float:
    return missing if value is None else value


def _array(values: Any, missing: float = math.nan) -> Any:
    return np.array([_number(value, missing) for value in values], dtype=np.float64)


def _matrix(rows: Any) -> Any:
    """A square matrix, also one without rows, of a system without constants."""
    return np.array([_array(row) for row in rows]).reshape(len(rows), len(rows))


def found_motion(
    job: DynamicsJob, observers: Observers, state: MotionState | None, save: Callable[[MotionState], object]
) -> DynamicsResult:
    """Search for equations of motion (see `shine.search.dynamics.session.Session` for the other parameters)."""
    # Slow to import, and reading a result does not need it.
    from shine.search.dynamics import run
    from shine.search.dynamics.fields import run as fields
    from shine.search.dynamics.session import Session
    from shine.search.dynamics.settings import DynamicsSettings

    asked = job.config.dynamics
    assert asked is not None
    form = asked.autonomous, asked.kind, asked.lags, asked.order, asked.known if asked.template else ""
    settings = DynamicsSettings(
        job.config.search, *form, asked.conserve, asked.units, asked.derivatives, str(asked.hidden)
    )
    session = Session(observers, state, save)
    if isinstance(job.trajectories, Field):
        return fields.find_fields(job.trajectories, settings, session)
    return run.find_dynamics(job.trajectories, settings, session)


def dynamics_record(
    result: DynamicsResult, config: Config, put_in: Sequence[PutInRecord] = (), data: str | None = None
) -> DynamicsRecord:
    """The contents of result.json; `data` is the hash of the readings."""
    best = result.chosen
    return DynamicsRecord.of_object(
        best,
        schema_version=SCHEMA_VERSION,
        kind="dynamics",
        best=_system_record(best),
        front=tuple(map(_system_record, result.front)),
        reason=result.front.reason,
        found=result.front.found,
        target=", ".join(best.headings),
        primitives=config.primitive_texts,
        weights=dict(best.equations[0].weights),
        **{name: getattr(result, name) for name in ("seconds", "seed", "stopped_by", "systems")},
        put_in=tuple(put_in),
        data=data,
        settings=config_values(config),
        versions=versions(),
    )


def _system_record(model: SystemModel) -> SystemRecord:
    equations = tuple(EquationRecord.of_object(each, expression=str(each.tree)) for each in model.equations)
    return SystemRecord.of_object(model, loss=model.error, equations=equations)


def is_motion(folder: Path) -> bool:
    """Whether a folder has the result of a run of dynamics."""
    path = folder / "result.json"
    return path.is_file() and b'"kind": "dynamics"' in read_file(path)[:100]


def read_motion(folder: Path) -> DynamicsRecord:
    """The contents of result.json of a run of dynamics; an `ExportError` if it is damaged."""
    path = folder / "result.json"
    try:
        return DynamicsRecord.model_validate_json(read_file(path), strict=True)
    except ValidationError as error:
        raise ExportError(f"{path}: is damaged: {cut(error.errors()[0]['msg'])}") from None
