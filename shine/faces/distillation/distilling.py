"""Formulas for what a network computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.faces.distillation.lessons import Lesson, lesson
from shine.faces.evolving import evolve
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result


@dataclass(frozen=True)
class Fidelity:
    """Nearness of predictions to their targets.

    Parameters
    ----------
    r2 : float
        Share of the variance that they explain; -inf if there is no variance, and they are not exact.
    rms_error, max_error : float
        Root of the mean squared error, and the largest error, in units of the output. NaN if a prediction is not
        finite.
    rows : int
        Rows that were compared.
    """

    r2: float
    rms_error: float
    max_error: float
    rows: int

    @classmethod
    def of(cls, predictions: Floats, truth: Floats) -> Fidelity:
        """The fidelity of predictions to numbers, both of shape (n_rows,)."""
        with np.errstate(all="ignore"):
            errors = predictions - truth
            square, total = float(np.mean(errors**2)), float(np.var(truth))
            r2 = 1 - square / total if total > 0 else 1.0 if square == 0 else -np.inf
            return cls(float(r2), float(np.sqrt(square)), float(np.max(np.abs(errors))), len(truth))

    def __str__(self) -> str:
        return (
            f"R2 {self.r2:.6g}, rms error {self.rms_error:.3g}, largest error {self.max_error:.3g} ({self.rows} rows)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Distilled:
    """The formula for one output of a network.

    Parameters
    ----------
    output : str
        Name of the output.
    result : Result
        Of the search, with the front and the recommended formula.
    share : float
        Share of the output in the variance of all outputs of the network.
    dropped : int
        Rows that are left out because an output is not finite.
    to_network : Fidelity
        Of the recommended formula to the network, on rows that the search did not see.
    to_data : Fidelity, optional
        Of the recommended formula to the data.
    network_to_data : Fidelity, optional
        Of the network to the data.
    """

    output: str
    result: Result
    share: float
    dropped: int
    to_network: Fidelity
    to_data: Fidelity | None = None
    network_to_data: Fidelity | None = None

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.result.best

    @property
    def front(self) -> Front:
        """The Pareto front of the search."""
        return self.result.front

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the recommended formula, shape (n_rows,)."""
        predictions: Floats = self.result.predict(X)
        return predictions

    @property
    def fidelity_text(self) -> str:
        """The fidelities, a line each."""
        return fidelity_lines(self.to_network, self.to_data, self.network_to_data, self.dropped)

    def __repr__(self) -> str:
        return f"{self.output}:\n{self.result!r}\n{self.fidelity_text}"


class Distillation(Sequence[Distilled]):
    """The formulas for the outputs of a network, one for each.

    Parameters
    ----------
    outputs : iterable of Distilled
    """

    def __init__(self, outputs: Iterable[Distilled]) -> None:
        self.outputs = tuple(outputs)

    @overload
    def __getitem__(self, index: int) -> Distilled: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Distilled, ...]: ...

    def __getitem__(self, index: int | slice) -> Distilled | tuple[Distilled, ...]:
        return self.outputs[index]

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def best(self) -> tuple[Model, ...]:
        """The recommended formula of each output."""
        return tuple(each.best for each in self.outputs)

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the recommended formulas, shape (n_rows, n_outputs)."""
        return np.stack([each.predict(X) for each in self.outputs], axis=1)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.outputs))


def distil(
    model: Any,
    where: Mapping[str, tuple[float, float]] | ArrayLike,
    *,
    y: ArrayLike | None = None,
    layer: str | None = None,
    output: int | str | Sequence[int | str] | None = None,
    largest: int | None = None,
    rows: int | None = None,
    evidence: float | None = None,
    features: Sequence[str] | None = None,
    seed: int = 0,
    reading: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Distillation:
    """Find short formulas for what a trained network computes.

    The network is sampled, and `shine.evolve` searches for each output.

    Parameters
    ----------
    model : path, bytes, TensorFunction, Module, torch.nn.Module, ExportedProgram or callable
        A network as `shine.tensor.load` reads it, which is compiled; or any function from an array of shape (n_rows,
        n_features), float64, to one of shape (n_rows,) or (n_rows, n_outputs). Inputs have the shape (batch, features),
        or several have (batch,) each; a batch of fixed size is filled.
    where : mapping of str to (float, float), or array-like or data frame of shape (n_rows, n_features)
        The range of each feature, in which the network is sampled by a Latin hypercube; or rows. Inputs that are all
        named like features take these; otherwise features are given in order.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Measured outputs for the rows of `where`: the fidelity to them is reported, too. They do not guide the search.
    layer : str, optional
        A value inside of the network to distil in place of its outputs, by its name in the file or program.
    output : int, str, or sequence of them, optional
        Outputs to distil; by default all.
    largest : int, optional
        Distil so many outputs, those with the largest variance.
    rows : int, optional
        Rows that the search sees, 512 by default.
    evidence : float, optional
        Independent rows that they are worth (see `shine.search.problem.settings.FitnessSettings`); by default 16 for
        each feature, and at least 32: the error of a network is smooth, so that more rows say no more about the law.
    features : sequence of str, optional
        Names of the columns of `where`; by default those of a data frame, or ``x0, x1, ...``.
    seed : int
        Seed of the samples and the search.
    reading : mapping, optional
        Options of `shine.tensor.load` for a file: `shapes`, `config`, `checkpoint`, ...
    **settings
        Options of `shine.evolve`: seconds, primitives, ... Here `noise` is "absolute" by default, as the errors of
        networks are that are trained by squared errors. If the error of the network is known, ``stop_loss=1 - R2``
        takes the simplest formula that is as near to the network.

    Returns
    -------
    Distillation
        A `Distilled` for each output: its `result` is that of `shine.evolve`, `to_network` and `to_data` are
        fidelities.

    Raises
    ------
    DataError, GraphImportError, FormError
        If the network cannot be read, does not take these features, or gives no finite numbers.
    ValueError, TypeError
        If an option is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> product = distil(lambda X: X[:, 0] * X[:, 1], {"a": (1, 5), "b": (1, 5)}, primitives=["add", "mul"])
    >>> product[0].best.expression
    'a*b'
    """
    taught = lesson(
        model,
        where,
        layer=layer,
        output=output,
        largest=largest,
        rows=rows,
        features=features,
        seed=seed,
        reading=reading,
    )
    worth = taught.evidence if evidence is None else evidence
    data = None if y is None else data_for(taught, where, y)
    found = []
    for place, name in enumerate(taught.outputs):
        settings = {"noise": "absolute", "outliers": "keep", **settings, "features": taught.features, "seed": seed}
        result = evolve(taught.X, taught.values[:, place], evidence=worth, **settings)
        found.append(
            Distilled(name, result, taught.shares[place], taught.dropped, *judged(taught, place, result, data))
        )
    return Distillation(found)


def data_for(taught: Lesson, X: Any, y: ArrayLike) -> tuple[Floats, Floats]:
    """Rows and measured outputs, of shape (n_rows, n_outputs).

    A `DataError` if the data do not belong to rows, or not to as many outputs.
    """
    if isinstance(X, Mapping):
        raise DataError("y belongs to rows, and ranges are given; give the rows of y in place of the ranges")
    measured = np.asarray(y)
    truth = numbers(measured.reshape(-1, 1) if measured.ndim == 1 else measured, "y", 2)
    rows = numbers(X, "X", 2)
    if truth.shape != (len(rows), len(taught.outputs)):
        raise DataError(
            f"y has the shape {list(measured.shape)}, and there are {len(rows)} rows and {len(taught.outputs)} "
            "outputs; choose the output that it measures with output="
        )
    return rows, truth


def judged(
    taught: Lesson, place: int, result: Result, data: tuple[Floats, Floats] | None
) -> tuple[Fidelity, Fidelity | None, Fidelity | None]:
    """Fidelity of a formula to the network and to data, and of the network to data."""
    to_network = Fidelity.of(result.predict(taught.fresh_X), taught.fresh_values[:, place])
    if data is None:
        return to_network, None, None
    X, truth = data
    of_network = Fidelity.of(taught.of_network(X)[:, place], truth[:, place])
    return to_network, Fidelity.of(result.predict(X), truth[:, place]), of_network


def fidelity_lines(
    to_network: Fidelity, to_data: Fidelity | None, network_to_data: Fidelity | None, dropped: int
) -> str:
    """Fidelities for people, a line each."""
    lines = [f"formula to network: {to_network}"]
    if to_data is not None:
        lines += [f"formula to data:    {to_data}", f"network to data:    {network_to_data}"]
    if dropped:
        lines.append(f"{dropped} row{'s' * (dropped > 1)} left out: the network's output is not finite there")
    return "\n".join(lines)
