"""Calls about one formula or two: explain, compare, predict, draw, write in another language."""

from __future__ import annotations

import io
import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from shine.base.errors import ShineError
from shine.base.files import write_bytes
from shine.base.typing import Floats
from shine.faces.mcp.answers import Answer, Formula, Of, Out, Table, quoted
from shine.faces.mcp.places import CallError, existing, new_file
from shine.faces.mcp.searching import job_of_run, model_at, opened, with_rows
from shine.faces.mcp.tables import columns_of, guessed_unit, tolerant
from shine.faces.runs import Run as OpenedRun
from shine.formats.write import EXPORTS
from shine.lang.forms.names import listed, shown
from shine.lang.parse import parse
from shine.search.models.file_predictions import PREDICTION, predict_table
from shine.search.models.measuring import behaviour
from shine.search.models.measuring.next_measurement import next_measurement as points_of
from shine.search.models.model import Model

ROWS = 10
"""Rows of predictions that are shown."""

FILES = {
    "latex": ".tex", "json": ".json", "c": ".c", "onnx": ".onnx", "graphdef": ".pbtxt", "excel": ".txt", "sql": ".sql",
}  # fmt: skip
"""Ending of the file of an export; all others are Python."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A formula that a call names, and the run that it is from, if it is from one."""

    model: Model
    run: OpenedRun | None = None
    index: int | None = None

    @classmethod
    def of(cls, given: Formula) -> Chosen:
        """The formula of a run, or one that is given as text."""
        run, text, index = given.get("run"), given.get("formula"), given.get("index")
        if (run is None) == (text is None) or (text is not None and index is not None):
            raise CallError('a formula is {"run": "runs/NAME"}, perhaps with an "index", or {"formula": "TEXT"}')
        if text is not None:
            return cls(Model(parse(text), math.nan, math.nan))
        found = opened(str(run))
        result = found.result
        return cls(model_at(result, index), found, result.best_index if index is None else index)

    def its_run(self) -> OpenedRun:
        """The run that it is from."""
        if self.run is None:
            raise CallError('a formula that is given as text knows no rows; name a run: {"run": "runs/NAME"}')
        return self.run

    @property
    def headings(self) -> dict[str, str]:
        """Heading of each feature that it uses."""
        return {name: self.model.headings.get(name, name) for name in self.model.tree.used_parameters}


def explain(
    of: Of,
    data: Annotated[str | None, Field(description="Table of the features; by default the run's own rows")] = None,
    ranges: Annotated[dict[str, list[float]] | None, Field(description='Instead of rows: {"x": [0, 10]}')] = None,
    units: Annotated[dict[str, str] | None, Field(description='By feature: {"x": "m/s", "target": "J"}')] = None,
) -> Answer:
    """Behaviour of a formula: dimensions, where it rises or falls, sensitivities, limits, poles."""
    chosen = Chosen.of(of)
    tree, target, known = chosen.model.tree, None, None
    features = tree.parameters
    for what, given, names in (("ranges", ranges, features), ("units", units, (*features, "target"))):
        for name in given or {}:
            if name not in names:
                raise CallError(f"{what}: {shown(name)} is no feature of the formula; there are {listed(names)}")
    guesses = {name: guessed_unit(heading) for name, heading in chosen.headings.items()}
    if ranges is not None:
        columns = _spread(tree.used_parameters, ranges)
    elif data is not None:
        columns = columns_of(data, chosen.headings, chosen.model.preparation)
    elif chosen.run is None:
        raise CallError("a formula that is given as text needs 'data', a table, or 'ranges', such as {'x': [0, 10]}")
    else:
        job = job_of_run(chosen.run)
        columns = dict(zip(job.dataset.features, job.dataset.columns, strict=True))
        target, constraints = job.dataset.target, job.config.constraints
        guesses["target"] = guessed_unit(job.config.target_name)
        if constraints.units:
            known = {**constraints.units, "target": constraints.target_unit or "1"}
    told = {"formula": chosen.model.formula(), **behaviour.explained(tree, columns, target)}
    own = units or known or {name: unit for name, unit in guesses.items() if unit is not None}
    if not own:
        return {**told, "dimensions": "no units are known; give 'units', with that of 'target'"}
    source = "given" if units else "those of the search" if known else "guessed from headings"
    return {**told, "dimensions": {**behaviour.dimensions(tree, own), "units": own, "units_are": source}}


def _spread(names: tuple[str, ...], ranges: Mapping[str, list[float]]) -> dict[str, Floats]:
    """Points spread evenly and independently over ranges."""
    rng, columns = np.random.default_rng(0), {}
    for name in names:
        low, high = (*ranges.get(name, ()), math.nan, math.nan)[:2]
        if not low < high or math.isinf(high - low):
            raise CallError(f"ranges: {name}: is needed, as [low, high] with low < high")
        columns[name] = np.linspace(low, high, 201)[rng.permutation(201)]
    return columns


def compare(first: Of, second: Of, data: Table, target: Annotated[str, Field(description="Heading")]) -> Answer:
    """Errors of two formulas on the rows of a table, and whether their difference is more than chance."""
    formulas = {"first": Chosen.of(first).model, "second": Chosen.of(second).model}
    known = next((model.preparation for model in formulas.values() if model.preparation is not None), None)
    goal = columns_of(data, {target: target}, known)[target]
    predictions = {}
    for name, model in formulas.items():
        headings = {each: model.headings.get(each, each) for each in model.tree.parameters}
        reader = replace(model, preparation=tolerant(headings, model.preparation or known))
        predictions[name] = predict_table(reader, existing(data))[0][PREDICTION]
    told = behaviour.compared(goal, predictions)
    for name, model in formulas.items():
        told[name] |= {"formula": model.formula(), "complexity": model.complexity}
    return {**told, "note": "on rows that a formula was fitted to, its errors are too small; compare on others"}


def predict(
    of: Of,
    data: Table,
    interval: Annotated[float | None, Field(gt=0, lt=1, description="Level of intervals, such as 0.95")] = None,
    out: Out = None,
) -> Answer:
    """Predictions for the rows of a table: the first ten, or all in a CSV file."""
    chosen, path = Chosen.of(of), None if out is None else new_file(out, (".csv",))
    model = chosen.model
    if interval is not None and model.known is None:
        model = with_rows(model, job_of_run(chosen.its_run()))
    columns, notes = predict_table(model, existing(data), interval)
    values = columns[PREDICTION]
    known = values[np.isfinite(values)]
    told: Answer = {"formula": model.formula(), "rows": len(values), "without_value": len(values) - len(known)}
    if len(known):
        told |= {"least": known.min(), "median": float(np.median(known)), "greatest": known.max()}
    if path is not None:
        rows = zip(*(map(repr, each.tolist()) for each in columns.values()), strict=True)
        write_bytes(path, "\n".join([",".join(columns), *map(",".join, rows), ""]).encode())
        told["file"] = path.as_posix()
    return {**told, "first_rows": {name: each[:ROWS].tolist() for name, each in columns.items()}, "notes": list(notes)}


def plot(
    of: Of,
    kind: Literal["front", "fit", "residuals", "order", "dependence", "band", "constants"] = "front",
    out: Out = None,
) -> Answer:
    """A drawing of a run as a PNG: the front, a formula beside the data, its residuals, its constants."""
    chosen, path = Chosen.of(of), None if out is None else new_file(out, (".png",))
    run = chosen.its_run()
    rows = None if kind in ("front", "constants") else job_of_run(run).dataset
    given = () if rows is None else (rows.columns.T, rows.target)
    axes = np.atleast_1d(run.result.plot(kind, *given, index=chosen.index))
    stream = io.BytesIO()
    axes.flat[0].figure.savefig(stream, format="png", dpi=80)
    if path is not None:
        write_bytes(path, stream.getvalue())
    return {"kind": kind, "formula": chosen.model.formula(), "file": path and path.as_posix(), "png": stream.getvalue()}


def export(
    of: Of,
    to: Annotated[str, Field(description=", ".join(EXPORTS))],
    name: Annotated[str, Field(max_length=60, description="Name of the function")] = "f",
    precision: Annotated[int | None, Field(ge=1, le=17, description="Digits of constants; all by default")] = None,
    out: Out = None,
) -> Answer:
    """A formula in another language, as text, or in a file; C also writes a header."""
    from shine.formats.write.c import c_files

    model = Chosen.of(of).model
    if to not in EXPORTS:
        raise CallError(f"to: {quoted(to)}: no such format; use one of {', '.join(EXPORTS)}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise CallError(f"name: {quoted(name)}: is no name of a function; it takes letters, digits and _, such as f")
    head = {"formula": model.formula(), "to": to, "arguments": list(model.tree.parameters)}
    if out is None:
        made = model.export(to, name, precision=precision)
        if isinstance(made, bytes) or len(made) > 6000:  # most characters of an export that is not a file
            raise CallError(f"out: is needed: this export is {'no text' if isinstance(made, bytes) else 'long'}")
        return {**head, "raw": made}
    path = new_file(out, (FILES.get(to, ".py"),))
    if to == "c":
        texts = c_files(model, name, precision=precision)
        beside = {file: path.with_name(file).as_posix() for file in texts}
        files: dict[Path, str | bytes] = {
            path if file.endswith(".c") else new_file(beside[file], (".h",)): texts[file] for file in texts
        }
    else:
        files = {path: model.export(to, name, precision=precision)}
    for place, content in files.items():
        write_bytes(place, content.encode() if isinstance(content, str) else content)
    return {**head, "files": [place.as_posix() for place in files]}


def next_measurement(
    of: Of,
    box: Annotated[
        dict[str, Any] | None,
        Field(description='What can be measured: {"x": [0, 5], "metal": "tin"}; by default the range of the rows'),
    ] = None,
    count: Annotated[int, Field(ge=1, le=20)] = 1,
    cost: Annotated[str | None, Field(max_length=1000, description="Price of a point, such as 1 + 0.2*x")] = None,
) -> Answer:
    """The points to measure next: they tell apart the formulas that the rows do not."""
    found = Chosen.of(of).its_run()
    models, beside, rows, notes = found.result.front.models, found.result.front.beside, None, []
    try:
        job = job_of_run(found)
        models, beside = (tuple(with_rows(model, job) for model in each) for each in (models, beside))
        rows = job.dataset
    except (ShineError, OSError) as error:
        notes.append(f"without the run's data, all numbers count as continuous: {quoted(error, 200)}")
    limits = {name: tuple(each) if _is_range(each) else each for name, each in (box or {}).items()} or None
    made = points_of(models, limits, count, cost, rows=rows, beside=beside)
    return {"sentence": made.sentence, **made.plain(), "notes": [*made.notes, *notes]}


def _is_range(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(end, int | float) for end in value)
