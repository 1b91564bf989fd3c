"""Runs of dynamics on the command line: integrate, export."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import DataError, placed
from shine.faces.cli.options import chosen, run_folder
from shine.faces.cli.output import deliver

if TYPE_CHECKING:
    from shine.faces.runs.opening import DynamicsRun
    from shine.lang.forms.rounding import Precision
    from shine.search.dynamics.system import SystemModel

MOST_TIMES = 10_000_000
"""Most times of a trajectory."""


def dynamics_run(folder: Path) -> DynamicsRun | None:
    """The finished run of dynamics in a folder, here or in ``runs``; None if there is none.

    A `click.UsageError` if it is damaged.
    """
    from shine.base.errors import ShineError
    from shine.faces.runs.motion import is_motion
    from shine.faces.runs.opening import DynamicsRun

    folder = run_folder(folder)
    folder = folder.parent if folder.name == "result.json" else folder
    try:
        run = DynamicsRun(folder) if is_motion(folder) else None
        _ = None if run is None else run.result
        return run
    except ShineError as error:
        raise click.UsageError(str(error)) from None
    except (OSError, ValueError):  # a formula can have characters that a file name cannot have
        return None


def system_to_use(run: DynamicsRun, index: int | None) -> SystemModel:
    """The system at an index of a run's front; the recommended one by default, if something was found."""
    chosen(run, index)
    with placed(run.folder, DataError, kind=click.ClickException):
        return run.result.front.taken(index)


def times_of(text: str) -> Any:
    """The times that ``FIRST:LAST:STEP`` stands for, shape (n_times,)."""
    import numpy as np

    try:
        first, last, step = map(float, text.split(":"))
        count = math.floor((last - first) / step * (1 + 1e-12)) + 1
        if not (math.isfinite(first) and step > 0 and 2 <= count <= MOST_TIMES):
            raise ValueError
    except (ValueError, ZeroDivisionError, OverflowError):
        raise click.UsageError(
            f"--times {text}: must be FIRST:LAST:STEP, such as 0:20:0.1, with at most {MOST_TIMES} times"
        ) from None
    return first + step * np.arange(count)


def predicted_states(
    run: DynamicsRun,
    data: Path,
    index: int | None,
    times: str | None,
    interval: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Integrate a system from the states in a file, and write the trajectories as a table."""
    import numpy as np

    from shine.data.opening import open_source
    from shine.data.trajectory_tables import columns_of_file
    from shine.faces.dynamics.scoring import run_number

    model = system_to_use(run, index)
    dynamics = run.config.dynamics
    assert dynamics is not None
    read = list(run.record.headings)
    if model.is_field:
        if times is None:
            raise click.UsageError("fields need --times, such as 0:20:0.1")
        if interval is not None:
            raise click.UsageError("--interval: simulations of fields have no intervals")
        _write(_predicted_fields(run, data, model, times_of(times)), out, as_json)
        return
    # States that nobody read are columns of their own, and lags are the rows before.
    labels = dynamics.run if model.runs else None
    headings = [*read, *model.unread]
    needed = [*headings, *dynamics.controls, *([labels] if labels else [])]
    if times is None:
        source = open_source(data, run.config.data.reading.marks)
        if dynamics.time not in (*source.headings, *source.names):
            raise DataError(f"{data}: has no column {dynamics.time!r} of times; give them by --times, such as 0:20:0.1")
        needed.append(dynamics.time)
    given = columns_of_file(data, needed, labels, run.config.data.reading)
    states = np.column_stack([given[heading] for heading in headings])
    controls = np.array([given[heading] for heading in dynamics.controls]).reshape(-1, len(states)).T
    asked = given[dynamics.time] if times is None else times_of(times)
    if len(states) <= model.lags:
        raise DataError(f"{data}: a start has {model.lags + 1} rows, the oldest first; the file has {len(states)}")
    if model.lags:
        starts = range(model.lags, model.lags + 1)
        asked = asked[model.lags :] if times is None else asked
    else:
        starts = range(1) if times is None else range(len(states))
    if times is None and not (len(asked) > 1 and (asked[1:] > asked[:-1]).all()):
        raise DataError(f"{data}: times are at least two and increase; for starts alone give --times, such as 0:20:0.1")
    if np.isnan(states[: starts.stop]).any() or np.isnan(controls).any():
        raise DataError(f"{data}: a state at the start, or a control, is missing")
    parts = []
    for number in starts:
        # A control of a start is kept.
        inputs = controls[model.lags :] if times is None else np.repeat(controls[[number]], len(asked), axis=0)
        start = model.history(states[: starts.stop])[number]
        own = model.of_run(run_number(model, given[labels][number])) if labels else model
        found = own.simulate(start, asked, inputs, return_std=interval is not None)
        means, deviations = found if interval is not None else (found, None)
        columns = {dynamics.time: asked, **dict(zip(read, means.T, strict=False))}
        if deviations is not None and interval is not None:
            from shine.evaluate.inference.quantiles import two_sided

            reach = two_sided(interval, math.inf) * deviations
            for place, heading in enumerate(read):
                columns |= {f"{heading} low": (means - reach)[:, place], f"{heading} high": (means + reach)[:, place]}
        label = {"start": np.full(len(asked), float(number))} if len(starts) > 1 else {}
        parts.append({**label, **columns})
    _write({heading: np.concatenate([part[heading] for part in parts]) for heading in parts[0]}, out, as_json)


def _predicted_fields(run: DynamicsRun, data: Path, model: SystemModel, times: Any) -> dict[str, Any]:
    """A long table of fields at some times, from those in a file, which has a row for each point."""
    import numpy as np

    from shine.data.fields import UNEVEN, grid_of, on_grid
    from shine.data.trajectory_tables import columns_of_file

    dynamics = run.config.dynamics
    assert dynamics is not None
    read = run.record.headings
    columns = columns_of_file(data, [*dynamics.space, *read], None, run.config.data.reading)
    with placed(data, DataError):
        axes, fields = on_grid(
            {heading: columns[heading] for heading in dynamics.space}, {heading: columns[heading] for heading in read}
        )
        for heading, own, step in zip(dynamics.space, axes, run.record.steps[1:], strict=True):
            found = grid_of(own, heading)[1] if len(own) > 1 else 0.0
            if abs(found - step) > UNEVEN * step:
                raise DataError(f"column {heading!r} has steps of {found:.6g}, and the system is for {step:.6g}")
        start = dict(zip(model.states, fields.values(), strict=True))
        found = model.simulate(start, times)
    states = found if isinstance(found, dict) else {model.states[0]: found}
    grids = np.meshgrid(times, *axes, indexing="ij")
    table = dict(zip((dynamics.time, *dynamics.space), grids, strict=True))
    table |= {heading: states[state] for heading, state in zip(read, model.states, strict=True)}
    return {heading: column.ravel() for heading, column in table.items()}


def _write(table: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """A table as a file, as JSON, or on the screen."""
    from shine.faces.cli.prediction_files import WRITERS, deliver_table

    ending = ".csv" if out is None else next((end for end in WRITERS if out.name.lower().endswith(end)), None)
    if ending is None:
        raise click.UsageError(f"--out {out}: files end in one of {', '.join(WRITERS)}")
    deliver_table(table, out, ending, {} if as_json else None)


def exported_system(
    run: DynamicsRun, to: str, name: str, index: int | None, precision: Precision, out: Path | None, as_json: bool
) -> None:
    """Write a system in another language."""
    from shine.faces.dynamics.fitted import exported
    from shine.formats.write.systems.system import SYSTEM_EXPORTS

    if to not in SYSTEM_EXPORTS:
        raise click.UsageError(f"--to {to}: no such format for dynamics; use one of {', '.join(SYSTEM_EXPORTS)}")
    model = system_to_use(run, index)
    with placed(f"--name {name}", ValueError, kind=click.UsageError):
        text = exported(model, to, name, precision=precision, file=out.stem if out else None)
    record = {"equations": model.lines("exact"), "to": to, "name": name}
    deliver(text, out, to, record if as_json else None, "files")
