"""A finished or unfinished run, read back from its folder."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shine.base.errors import ExportError, UnsupportedSyntaxError, placed
from shine.base.lazy import cached_property
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.faces.config import Config, read_config
from shine.faces.config.reading import Job, read_any_job
from shine.faces.runs.files import read_file, record_in
from shine.faces.runs.motion import DynamicsRecord, is_motion, read_motion, result_of_record
from shine.faces.runs.records import ModelRecord, ResultRecord, TemplateRecord, damaged, read_result
from shine.lang.forms.names import cut, shown
from shine.lang.forms.tree import Primitive
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.noise import NoiseEstimate

if TYPE_CHECKING:
    from shine.search.dynamics.result import DynamicsResult


@dataclass(frozen=True, eq=False)
class Run:
    """The run in a folder. Each part is read when it is first used.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @cached_property
    def config(self) -> Config:
        """The configuration of the run; a `ConfigError` if it is missing or damaged."""
        return read_config(self.folder / "config.yaml")

    @cached_property
    def data(self) -> Any:
        """The rows that the run read, as a `Dataset`; of equations of motion, its trajectories. They are read again.

        A `ConfigError` if there are none any more.
        """
        job = read_any_job(self.folder / "config.yaml")
        return job.dataset if isinstance(job, Job) else job.trajectories

    @cached_property
    def record(self) -> ResultRecord:
        """The contents of result.json; an `ExportError` if it is missing or cannot be read."""
        return read_result(self.folder)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that formulas are applied to, in their order."""
        return self.record.features

    @cached_property
    def headings(self) -> dict[str, str]:
        """Original heading of each column, by its name; an `ExportError` if their numbers differ."""
        headings = self.record.headings
        if len(headings) != len(self.features):
            counts = f"{len(headings)} headings for {len(self.features)} features"
            raise ExportError(f"{self.folder / 'result.json'}: there are {counts}")
        return dict(zip(self.features, headings, strict=True))

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.record.target

    @cached_property
    def result(self) -> Result:
        """The result of the run; its models predict the same numbers, to the last bit.

        Raises
        ------
        ExportError
            If result.json is missing, or it or a formula in it cannot be read.
        """
        record = self.record
        if record.best not in record.front:
            raise ExportError(f"{self.folder / 'result.json'}: the chosen formula is not one of the front")
        best = record.front.index(record.best)
        return Result(
            Front(self._models(record.front), best, record.reason, self._models(record.beside)),
            best,
            record.generations,
            record.evaluations,
            record.seconds,
            record.seed,
            record.stopped_by,
            None if record.noise is None else NoiseEstimate(**record.noise.model_dump()),
        ).with_preparation(record.preparation)

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl up to the first incomplete one; empty without a log."""
        path = self.folder / "log.jsonl"
        if not path.exists():
            return []
        return complete_lines(read_file(path))

    @cached_property
    def _table(self) -> dict[str, Primitive]:
        """The functions that formulas may call: Shine's primitives and those of the configuration."""
        with placed(
            f"{self.folder / 'result.json'}: primitives", UnsupportedSyntaxError, ValueError, kind=ExportError, told=cut
        ):
            return primitive_table(self.record.primitives)[0]

    def _models(self, models: Iterable[ModelRecord]) -> tuple[Model, ...]:
        return tuple(map(self._model, models))

    def _model(self, model: ModelRecord) -> Model:
        try:
            if model.template is not None:
                return self._template_model(model, model.template)
            tree = parse(model.expression, self.features, self._table)
        except UnsupportedSyntaxError as error:
            raise damaged(self.folder, f"{shown(model.expression)}: {cut(error)}") from None
        r2 = math.nan if model.r2 is None else model.r2
        weights, known = self.record.weights, self._known(model)
        noise = self.record.weighting
        return Model(tree, model.loss, r2, weights, self.headings, model.digits, noise=noise, known=known)

    def _known(self, model: ModelRecord) -> Uncertainty | None:
        """Uncertainty of the constants of a formula; an `ExportError` if it cannot be read."""
        if model.uncertainty is None:
            return None
        try:
            return model.uncertainty.known
        except (KeyError, TypeError, ValueError):
            raise ExportError(
                f"{self.folder / 'result.json'}: {shown(model.expression)}: its uncertainty is damaged"
            ) from None

    def _template_model(self, model: ModelRecord, found: TemplateRecord) -> Model:
        """A formula of a template, which the configuration has."""
        # Slow to import, and most runs have none.
        from shine.search.models.template_model import TemplateModel
        from shine.search.templates.composition import resolved
        from shine.search.templates.law import Groups, law_from

        given = self.config.search.template
        if given is None:
            raise ExportError(f"{self.folder / 'config.yaml'}: has no template, but the result is that of one")
        template = resolved(given, self.features)
        own = [primitive for unknown in template.unknowns for primitive in unknown.primitives or ()]
        table = primitive_table([*self.record.primitives, *own])[0]
        functions = {each.name: parse(found.functions[each.name], each.arguments, table) for each in template.unknowns}
        constants = {
            name: value if isinstance(value, float) else np.array(value) for name, value in found.constants.items()
        }
        groups = None if self.record.groups is None else Groups(**self.record.groups.model_dump())
        law = law_from(template, self.features, functions, constants, groups)
        r2 = math.nan if model.r2 is None else model.r2
        tree, weights, known = law.composed(), self.record.weights, self._known(model)
        noise = self.record.weighting
        return TemplateModel(
            tree, model.loss, r2, weights, self.headings, model.digits, noise=noise, known=known, law=law
        )


class DynamicsRun(Run):
    """A finished run of dynamics, read back from its folder."""

    @cached_property
    def record(self) -> DynamicsRecord:  # type: ignore[override]
        """The contents of result.json; an `ExportError` if it is damaged."""
        return read_motion(self.folder)

    @cached_property
    def result(self) -> DynamicsResult:  # type: ignore[override]
        """The result of the run without `equations`; an `ExportError` if a formula in result.json cannot be read."""
        return result_of_record(self.record, self.folder)


def open_run(folder: str | Path) -> Run:
    """The run in a folder.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Run
        Of equations of motion a `DynamicsRun`, once it has ended.

    Raises
    ------
    ExportError
        If the folder holds no run.

    Examples
    --------
    >>> open_run("runs/pythagoras").result.best.expression  # doctest: +SKIP
    'sqrt(a*a + b*b)'
    """
    folder = Path(folder)
    if not (folder / "config.yaml").is_file() and not (folder / "result.json").is_file():
        raise ExportError(f"{folder}: holds no run; a run has a config.yaml, and a result.json once it has ended")
    return DynamicsRun(folder) if is_motion(folder) else Run(folder)


def complete_lines(content: bytes) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines, up to the first incomplete or damaged line."""
    lines: list[dict[str, Any]] = []
    for line in content.splitlines(keepends=True):
        record = record_in(line)
        if record is None:
            break
        lines.append(record)
    return lines
