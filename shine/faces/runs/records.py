"""result.json and front.csv: the result of a run, for other programs to read."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import numpy as np
from annotated_types import Ge
from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, JsonValue, ValidationError

from shine import __version__
from shine.base.errors import DataError, ExportError, placed
from shine.data.columns.headings import check_features
from shine.data.datasets.preparation import Preparation
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.faces.runs.files import read_file, write_text
from shine.lang.forms.names import cut
from shine.search.evolution.complexity import normalized_weights
from shine.search.models.model import Model
from shine.search.models.result import Result

if TYPE_CHECKING:
    from shine.search.dynamics.result import DynamicsResult

LEVEL = 0.95
"""Level of the intervals."""


class Record(BaseModel):
    """A part of result.json."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def of_object(cls, source: object, **own: Any) -> Self:
        """A record whose values are the attributes of an object with the same names, but for its `own` ones.

        Numbers that are not finite become None, and arrays tuples; what the object lacks keeps its default.
        """
        there = [name for name in cls.model_fields if name not in own and hasattr(source, name)]
        return cls(**{name: plain(value) for name, value in (own | {n: getattr(source, n) for n in there}).items()})


def plain(value: Any) -> Any:
    """A value without numbers that are not finite, which become None, and without arrays, which become tuples."""
    if isinstance(value, np.ndarray | list):
        return tuple(map(plain, value.tolist() if isinstance(value, np.ndarray) else value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


class ConstantRecord(Record):
    """A constant of a formula. Infinite and unknown numbers are null."""

    name: str
    """Its name in `form`."""
    value: FiniteFloat
    """Its value in the formula."""
    likely: FiniteFloat
    """Its most likely value; the search may have written a simple number near it."""
    standard_error: FiniteFloat | None
    """Its standard error; null if the rows do not determine it."""
    low: FiniteFloat | None
    """Lower end of its 95 % interval."""
    high: FiniteFloat | None
    """Upper end of that interval."""


class UncertaintyRecord(Record):
    """Uncertainty of the constants of a formula."""

    form: str
    """The formula with names in place of its constants: `c0*exp(c1*x)`."""
    constants: tuple[ConstantRecord, ...]
    """The constants in the order of their names."""
    correlations: tuple[tuple[FiniteFloat | None, ...], ...]
    """Correlations of the constants, in their order."""
    intervals: str
    """Method of the intervals: `profile` (likelihood), or `wald` (by standard errors)."""
    notes: tuple[str, ...]
    """Warnings about these numbers."""
    details: dict[str, Any]
    """Numbers from which Shine computes bands of predictions."""

    @classmethod
    def of(cls, model: Model, profile: bool, exact: tuple[float, ...] = ()) -> Self | None:
        """The record of a model; None if it does not know its rows.

        Parameters
        ----------
        model : Model
        profile : bool
            Whether to compute profile-likelihood intervals.
        exact : tuple of float
            Numbers that are known; they need a model with rows.
        """
        try:
            known = model.inference(exact).uncertainty if exact else model.uncertainty
            method = model.quick_method(LEVEL) if profile or LEVEL in known.profiles else "wald"
            ends = model.conf_int(LEVEL, method, exact=exact)
        except DataError:
            return None
        details = known.plain()
        constants = zip(
            known.names, details["values"], details["best"], plain(known.errors), ends.values(), strict=True
        )
        return cls(
            form=model.form(exact).text,
            constants=tuple(
                ConstantRecord(
                    name=name, value=value, likely=likely, standard_error=error, low=plain(low), high=plain(high)
                )
                for name, value, likely, error, (low, high) in constants
            ),
            correlations=plain(known.correlations),
            intervals=method,
            notes=known.notes,
            details=details,
        )

    @property
    def known(self) -> Uncertainty:
        """The uncertainty in the record; a `ValueError`, `KeyError` or `TypeError` if its details are damaged."""
        return Uncertainty.of_plain(self.details)


SCHEMA_VERSION: Final = 1
"""Version of result.json; it rises if readers of the old version would misread the new one."""

FEW_ROWS = 10_000
"""Rows up to which all formulas of a front have intervals: nobody asked for those of the others."""


class TemplateRecord(Record):
    """Functions and constants found for a template."""

    functions: dict[str, str]
    """The formula of each unknown function, in its arguments."""
    constants: dict[str, FiniteFloat | tuple[FiniteFloat, ...]]
    """The value of each parameter; of a parameter by group, a list in the order of `groups`."""


class ModelRecord(Record):
    """One formula of the front."""

    expression: str
    """The formula, in Shine's language, with the scaling written out; its numbers read back to the last bit."""
    loss: FiniteFloat
    """The loss that the run minimized, with the weights of the noise."""
    complexity: Annotated[int, Ge(1)]
    """Number of nodes, each times its weight, rounded."""
    r2: FiniteFloat | None
    """Share of the target's variance that the formula explains, with the weights of the noise; null where it is not
    finite."""
    digits: Annotated[int, Ge(1)] | None = None
    """Significant digits of its constants that the data support, which tables print; null if not known."""
    template: TemplateRecord | None = None
    """Functions and constants of a formula from a template."""
    uncertainty: UncertaintyRecord | None = None
    """Uncertainty of its constants; only of the chosen formula if there are many rows or little time."""


class GroupsRecord(Record):
    """The groups of a template's constants."""

    column: str
    """Name of their column in formulas."""
    values: tuple[FiniteFloat, ...]
    """Value of the column for each group."""
    labels: tuple[str, ...] | None = None
    """Names of the groups in the file, if the column numbers texts."""


class NoiseRecord(Record):
    """The noise, estimated without any formula."""

    model: str
    """Growth of the noise: `absolute`, `relative`, `log`, `counts`, or `sigma` if it was given."""
    source: Literal["replicates", "neighbours"]
    """Rows with equal features (`replicates`), or else rows beside one another (`neighbours`)."""
    loss: FiniteFloat
    """Mean squared error, with the weights of the model, that noise alone leaves."""
    low: FiniteFloat
    """Lower end of its 95 % interval; 0 from neighbours."""
    high: FiniteFloat
    """Upper end of that interval."""


class PutInRecord(Record):
    """A formula that a person put into the search."""

    generation: Annotated[int, Ge(0)]
    """The generation after which it joined."""
    formula: str
    """The formula as it was written."""


class Versions(Record):
    """Versions of the software that made the run."""

    shine: str
    """Version of Shine."""
    python: str
    """Version of Python."""
    numpy: str
    """Version of NumPy."""
    llvmlite: str
    """Version of llvmlite, which brings LLVM."""


def _normalized_features(names: tuple[str, ...]) -> tuple[str, ...]:
    with placed("", DataError, kind=ValueError):
        return check_features(names)


class ResultRecord(Record):
    """The contents of result.json."""

    schema_version: Literal[1]
    """Version of this form; it grows when a reader of the older form would be misled."""
    best: ModelRecord
    """The chosen formula, one of the front."""
    front: tuple[ModelRecord, ...]
    """The best constant, then the best formula of each complexity that is better than all simpler ones."""
    beside: tuple[ModelRecord, ...] = ()
    """Other formulas that describe few rows nearly as well as the best: one of them may be the law."""
    groups: GroupsRecord | None = None
    """The groups of the template's constants; null without any."""
    reason: str
    """Reason of the choice."""
    weighting: str
    """The model of the noise that weights rows in `loss` and `r2`; `absolute` if none does."""
    noise: NoiseRecord | None = None
    """The noise, estimated without any formula; null if the rows do not tell."""
    features: Annotated[tuple[str, ...], AfterValidator(_normalized_features)]
    """Names of the feature columns, in their order."""
    headings: tuple[str, ...]
    """Original headings of these columns."""
    target: str
    """Heading of the target's column; `y` if the data are generated."""
    data: str | None
    """SHA-256 of the names and numbers of the data; null for a search without a run."""
    preparation: Preparation | None = None
    """Conversion of dates, texts and missing values of the file to numbers; null if the file holds only numbers."""
    primitives: tuple[str, ...]
    """Functions in formulas: names of Shine's, definitions of others. Scaling and simplification may bring in more."""
    weights: Annotated[dict[str, float], AfterValidator(normalized_weights)]
    """Complexity of a primitive, a feature or a `constant`, by name; 1 if not listed."""
    generations: Annotated[int, Ge(0)]
    """Generations after the first population."""
    evaluations: Annotated[int, Ge(0)]
    """Formulas whose loss was computed."""
    seconds: Annotated[FiniteFloat, Ge(0)]
    """Duration of the search, of all its parts if it was resumed, without reading the data."""
    seed: int
    """Seed of every random choice."""
    stopped_by: Literal["loss", "generations", "seconds", "stagnation", "interrupted", "callback"]
    """The limit that ended the run; `interrupted` by Ctrl-C, `callback` by a callback or the live page."""
    put_in: tuple[PutInRecord, ...] = ()
    """Formulas put in on the live page; the seed repeats a run only without them."""
    settings: dict[str, JsonValue] | None = None
    """The configuration, with every default; null for a search without one."""
    versions: Versions
    """Versions of Shine and the software it used."""


def write_result(folder: Path, result: Result, target: str = "y", primitives: Sequence[str] = ()) -> None:
    """Write result.json and front.csv.

    Raises
    ------
    ExportError
        If they cannot be written.
    """
    write_text(folder / "result.json", result_json(result_record(result, target, primitives)))
    write_text(folder / "front.csv", front_csv(result))


def result_json(record: BaseModel) -> str:
    """The text of result.json."""
    return json.dumps(record.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def read_result(folder: str | Path) -> ResultRecord:
    """Read result.json back.

    Raises
    ------
    ExportError
        If it is missing or cannot be read.
    """
    path = Path(folder) / "result.json"
    content = read_file(path)
    try:
        return ResultRecord.model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = cut(".".join(map(str, first["loc"])), 100)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        problem = f"{place + ': ' if place else ''}{cut(first['msg'])}{more}"
    if b'"kind": "dynamics"' in content[:100]:
        raise ExportError(
            f"{path}: is a result of dynamics, which shine predict, export, report and summary take; in Python "
            "next_experiment says what to measure"
        )
    raise damaged(path.parent, problem)


def damaged(folder: Path, problem: str) -> ExportError:
    """The error for a result that cannot be read."""
    return ExportError(f"{folder / 'result.json'}: is not a result of this version of Shine: {problem}")


def result_record(
    result: Result,
    target: str = "y",
    primitives: Sequence[str] = (),
    preparation: Preparation | None = None,
    put_in: Sequence[PutInRecord] = (),
    data: str | None = None,
    settings: dict[str, Any] | None = None,
    until: float = math.inf,
) -> ResultRecord:
    """The contents of result.json for a result; `data` is the hash of its data, `settings` the configuration.

    The chosen formula has intervals, and the others have them if their rows are few, and the time `until`, on
    `time.monotonic`, allows.
    """
    best = _model_record(result.best, True)
    front = tuple(
        best if at == result.best_index else _model_record(model, False, until) for at, model in enumerate(result.front)
    )
    return ResultRecord.of_object(
        result,
        schema_version=SCHEMA_VERSION,
        best=best,
        front=front,
        beside=tuple(_model_record(model, False, until) for model in result.front.beside),
        groups=_groups_record(result.best),
        reason=result.front.reason,
        weighting=result.front.noise,
        noise=None if result.noise is None else NoiseRecord.of_object(result.noise),
        features=result.best.tree.parameters,
        headings=tuple(result.best.headings.get(name, name) for name in result.best.tree.parameters),
        target=target,
        data=data,
        preparation=preparation,
        primitives=tuple(primitives),
        weights=dict(result.best.weights),
        put_in=tuple(put_in),
        settings=settings,
        versions=versions(),
    )


def _model_record(model: Model, chosen: bool, until: float = math.inf) -> ModelRecord:
    few = model.basis is None or model.basis.rows.n_rows <= FEW_ROWS
    told = chosen or (few and time.monotonic() < until)
    return ModelRecord.of_object(
        model,
        expression=str(model.tree),
        template=_template_record(model),
        uncertainty=UncertaintyRecord.of(model, profile=chosen) if told else None,
    )


def _template_record(model: Model) -> TemplateRecord | None:
    law = getattr(model, "law", None)
    if law is None:
        return None
    functions = {name: str(tree) for name, tree in law.functions.items()}
    constants = {
        name: value if isinstance(value, float) else tuple(value.tolist()) for name, value in law.constants.items()
    }
    return TemplateRecord(functions=functions, constants=constants)


def _groups_record(model: Model) -> GroupsRecord | None:
    law = getattr(model, "law", None)
    if law is None or law.groups is None:
        return None
    return GroupsRecord.of_object(law.groups)


def front_csv(result: Result | DynamicsResult) -> str:
    """The front as a table, the chosen formula marked."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ["complexity", "loss", "r2", "expression", "best"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "best": int(row["best"])} for row in result.rows())
    return text.getvalue()


def versions() -> Versions:
    """Versions of the software that computes here."""
    return Versions(
        shine=__version__,
        python=platform.python_version(),
        numpy=metadata.version("numpy"),
        llvmlite=metadata.version("llvmlite"),
    )
