"""The compiled code of a loss: it adds up errors, and makes least squares of them. It serves all machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Floats
from shine.compiler.codegen.identity import Functions, source_digest
from shine.compiler.codegen.numbers import Numbers
from shine.compiler.llvm import Engine, cached, host_object
from shine.data.datasets.dataset import Dataset, Whole
from shine.evaluate.fitness.row_loss import RowLoss
from shine.evaluate.gradient.line_fitting import LINES_NAMES, lines_module
from shine.evaluate.gradient.working_residuals import Derivatives, residuals_module, residuals_name
from shine.evaluate.loss_code.row_errors import VARIANTS, errors_module, variant_name
from shine.lang.forms.tree import Primitive

_SHORTEST = 1e-6
"""Errors with a kink are fitted as if they were at least this share of the target's deviation away from it."""


class Table:
    """Addresses of compiled functions, and the code they are in.

    Parameters
    ----------
    names : list of str
    description : tuple of str
        Meaning of the code, for the cache.
    module : callable
        Returns the module of the functions; its text is compiled.
    """

    def __init__(self, names: list[str], description: tuple[str, ...], module: Callable[[], object]) -> None:
        code = cached((*description, source_digest("evaluate")), lambda: host_object(str(module())))
        self._engine = Engine.of_object(code, names)
        self.addresses: NDArray[np.uint64] = np.array([self._engine.address(name) for name in names], np.uint64)

    @property
    def address(self) -> int:
        """Address of the addresses."""
        return int(self.addresses.ctypes.data)


def errors_code(kind: RowLoss, dtype: str) -> Table:
    """The functions that add up errors of predictions of a number type, in the order of `VARIANTS`."""
    return _errors_code(Functions.of((kind.function,)), kind.least, dtype)


@lru_cache(maxsize=64)
def _errors_code(function: Functions, least: float | None, dtype: str) -> Table:
    return Table(
        [variant_name(*variant) for variant in VARIANTS],
        ("errors", dtype, repr(least), *function.meaning),
        lambda: errors_module(function.functions[0], least, Numbers(dtype)),
    )


class ResidualsCode:
    """The functions of working residuals, without and with weights.

    Parameters
    ----------
    function : Primitive
    meaning : tuple of str
    least : float, optional
    """

    def __init__(self, function: Primitive, meaning: tuple[str, ...], least: float | None) -> None:
        self.reweights = Derivatives.of(function).reweights
        self.table = Table(
            [residuals_name(weighted) for weighted in (False, True)],
            ("residuals", repr(least), *meaning),
            lambda: residuals_module(function, least),
        )


def residuals_code(kind: RowLoss) -> ResidualsCode:
    """The code that fits constants by a loss."""
    return _residuals_code(Functions.of((kind.function,)), kind.least)


@lru_cache(maxsize=64)
def _residuals_code(function: Functions, least: float | None) -> ResidualsCode:
    return ResidualsCode(function.functions[0], function.meaning, least)


def lines_code(kind: RowLoss, dtype: str) -> Table:
    """The functions that fit lines to predictions of a number type, in the order of `LINES_NAMES`."""
    return _lines_code(Functions.of((kind.function,)), kind.least, dtype)


@lru_cache(maxsize=64)
def _lines_code(function: Functions, least: float | None, dtype: str) -> Table:
    return Table(
        list(LINES_NAMES),
        ("lines", dtype, repr(least), *function.meaning),
        lambda: lines_module(function.functions[0], least, Numbers(dtype)),
    )


def scales_of(dataset: Dataset | Whole) -> Floats:
    """The `SCALES` of fits to a data set."""
    deviation = np.sqrt(dataset.target_square / dataset.weight)
    return np.maximum([_SHORTEST * deviation, deviation], np.finfo(np.float64).tiny)
