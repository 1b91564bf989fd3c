"""Losses: built-in ones by name, ``shine.losses.quantile(0.9)``, and those of users.

``loss=shine.losses.quantile(0.9)`` is the same as ``loss="quantile(0.9)"``; the `help` of each says what its prediction
means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from shine.base.typing import Floats
from shine.evaluate.losses.form import Loss
from shine.evaluate.losses.library import LIBRARY
from shine.evaluate.losses.reading import LossSource, call_text, loss_from, loss_text, numbers_of
from shine.evaluate.losses.rows import loss_for

__all__ = ["LossSource", "errors", "loss_for", "loss_from", "loss_text", *LIBRARY]


def errors(loss: LossSource, prediction: ArrayLike, target: ArrayLike, **columns: ArrayLike) -> Floats:
    """The errors of rows, as the search adds them up.

    Parameters
    ----------
    loss : str, function or Loss
    prediction, target : array-like of shape (n_rows,)
    **columns : array-like of shape (n_rows,)
        Those that the loss reads: `weight`, or columns beside the data.

    Returns
    -------
    ndarray of shape (n_rows,), float64

    Examples
    --------
    >>> errors("quantile(0.9)", [1.0, 3.0], [2.0, 2.0]).tolist()
    [0.9, 0.09999999999999998]
    """
    kind = loss_from(loss, columns).kind
    missing = [name for name in kind.columns if name not in columns]
    if missing or len(columns) > len(kind.columns):
        needed = ", ".join(kind.columns) or "no columns"
        raise TypeError(f"the loss {kind.name} reads {needed}; given are {', '.join(columns) or 'none'}")
    return kind.errors(prediction, target, [columns[name] for name in kind.columns])


def _maker(name: str) -> Callable[..., Loss]:
    built_in = LIBRARY[name]

    def make(*numbers: float, **named: float) -> Loss:
        return loss_from(call_text(name, numbers_of(name, numbers, named)))

    own: Mapping[str, Any] = built_in.numbers
    defaults = ", ".join(f"{word}={each.default:g}" for word, each in own.items())
    columns = loss_from(name).kind.columns
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}({defaults}): the prediction is {built_in.meaning}." + (
        f" It reads {', '.join(columns)} beside the data." if columns else ""
    )
    make.loss_name = name  # type: ignore[attr-defined]
    return make


def __getattr__(name: str) -> Any:
    if name not in LIBRARY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(LIBRARY)}")
    made = globals()[name] = _maker(name)
    return made


def __dir__() -> list[str]:
    return sorted(__all__)
