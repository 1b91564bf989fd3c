"""Tables of sorted keys, looked up by native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shine.base.typing import AnyArray, Indices
from shine.compiler.llvm.object_layout import is_readable
from shine.lang.forms.names import value_text
from shine.trees.key_code import FIND, LEFT, RIGHT, level_order, lookup
from shine.trees.objects import key_words, of_key


class KeyTable:
    """A map from numbers to values, as a balanced search tree.

    Parameters
    ----------
    keys : array-like of shape (n_keys,)
        Different integers or floating-point numbers, in any order, none of them NaN.
    values : array-like of shape (n_keys, ...), optional
        A value for each key; by default its position in `keys`.

    Attributes
    ----------
    keys : ndarray of shape (n_keys,)
        In increasing order.
    values : ndarray of shape (n_keys, ...)
        In the order of `keys`.

    Raises
    ------
    TypeError
        If keys are not numbers, or no type holds them.
    ValueError
        If keys have another shape, or there are equal ones, NaN, or another number of values.

    Examples
    --------
    >>> table = KeyTable([30, 10, 20], ["c", "a", "b"])
    >>> str(table[20]), table.find([10, 15, 30]).tolist()
    ('b', [0, -1, 2])
    """

    def __init__(self, keys: Any, values: Any = None) -> None:
        given = _array("keys", keys)
        if given.ndim != 1:
            raise ValueError(f"keys have {given.ndim} dimensions; give one")
        if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
            if given.size:
                raise TypeError(f"keys are of type {given.dtype}; give integers or floating-point numbers")
            given = given.astype(np.float64)
        given = given.astype(np.result_type(given.dtype.newbyteorder("="), f"{given.dtype.kind}4"))
        if given.dtype.kind == "f" and given.size and not hasattr(keys, "dtype"):
            # NumPy makes floats of whole numbers above 2**63, and of those beside floats or negative ones.
            if all(type(key) is int for key in keys) and min(keys) >= 0 and max(keys) < 2**64:
                given = np.array(keys, np.uint64)
            lost = [key for key, kept in zip(keys, given.tolist(), strict=True) if isinstance(key, int) and key != kept]
            if lost:
                raise TypeError(
                    f"key {value_text(lost[0])} would be rounded to a floating-point number; give an array of a type "
                    "that holds all keys"
                )
        contents = np.arange(len(given)) if values is None else _array("values", values)
        if contents.ndim < 1 or len(contents) != len(given):
            raise ValueError(f"there are {len(given)} keys, but values have the shape {contents.shape}")
        if given.dtype.kind == "f" and np.isnan(given).any():
            raise ValueError(f"key {int(np.flatnonzero(np.isnan(given))[0])} is NaN, which is equal to nothing")
        order = np.argsort(given, kind="stable")
        self.keys: AnyArray = given[order]
        same = np.flatnonzero(self.keys[1:] == self.keys[:-1])
        if len(same):
            raise ValueError(f"key {self.keys[same[0]]} is there twice, at {order[same[0]]} and {order[same[0] + 1]}")
        self.values: AnyArray = contents[order]
        self._prepare()

    def _prepare(self) -> None:
        self.keys.flags.writeable = False
        self._tree = level_order(self.keys)
        self._depth = len(self.keys).bit_length()
        self._table = self._tree.ctypes.data, self._depth, self.keys.ctypes.data, len(self.keys)
        self._table_words = np.array(self._table, np.int64)
        self._one: Callable[[Any, Any], int | None] | None = None
        self._words: Any = None

    def __getstate__(self) -> dict[str, AnyArray]:
        return {"keys": self.keys, "values": self.values}

    def __setstate__(self, state: dict[str, AnyArray]) -> None:
        self.keys, self.values = state["keys"], state["values"]
        self._prepare()

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<KeyTable of {len(self)} keys of {self.keys.dtype}>"

    def __contains__(self, key: Any) -> bool:
        return self._place(key) >= 0

    def __getitem__(self, key: Any) -> Any:
        """The value of a key.

        Raises
        ------
        KeyError
            If there is no such key.
        """
        place = self._place(key)
        if place < 0:
            raise KeyError(key)
        return self.values[place]

    def find(self, queries: Any) -> Indices:
        """Positions of queries in the sorted `keys`, -1 where there is no such key.

        Parameters
        ----------
        queries : array-like
            Of the keys' type, or of one that it holds.

        Returns
        -------
        ndarray of int64, of the shape of `queries`

        Raises
        ------
        TypeError
            If the keys' type cannot hold the queries.
        """
        return self._run(FIND, queries)

    def get(self, queries: Any, default: Any = None) -> AnyArray:
        """Values of queries.

        Parameters
        ----------
        queries : array-like
            As for `find`.
        default : optional
            Value of queries that are not among the keys; by default, there must be none.

        Returns
        -------
        ndarray
            Of the shape of `queries`, then that of a value.

        Raises
        ------
        KeyError
            If a query is not among the keys, and there is no default.
        TypeError
            If the keys' type cannot hold the queries, or no type holds both values and default.
        """
        places = self.find(queries)
        absent = places < 0
        if default is None:
            if absent.any():
                raise KeyError(np.asarray(queries)[absent].reshape(-1)[0].item())
            return self.values[places]
        if not len(self):
            return np.full((*places.shape, *self.values.shape[1:]), default)
        replaced = absent.reshape(*absent.shape, *[1] * (self.values.ndim - 1))
        try:
            # NumPy 1 makes texts of numbers beside texts.
            if (self.values.dtype.kind in "US") != isinstance(default, str | bytes):
                raise TypeError
            # A position of -1 is the last value, which is replaced.
            return np.where(replaced, default, self.values[places])
        except TypeError:
            raise TypeError(f"default={value_text(default)} does not go with values of {self.values.dtype}") from None

    def searchsorted(self, queries: Any, side: str = "left") -> Indices:
        """Number of keys below each query, or of keys not above it, as `numpy.searchsorted` on the sorted `keys`.

        Parameters
        ----------
        queries : array-like
            As for `find`. NaN is above all keys.
        side : {"left", "right"}

        Returns
        -------
        ndarray of int64, of the shape of `queries`

        Raises
        ------
        ValueError
            If there is no such side.
        TypeError
            If the keys' type cannot hold the queries.
        """
        if side not in (LEFT, RIGHT):
            raise ValueError(f"side must be 'left' or 'right', not {side!r}")
        return self._run(side, queries)

    def _place(self, key: Any) -> int:
        if self._one is None:
            self._open()
        assert self._one is not None
        found = self._one(self._words, key)
        if found is not None:
            return found
        place = self._run(FIND, key)
        if place.ndim:
            raise TypeError("give one key; `find` and `get` take many")
        return int(place)

    def _open(self) -> None:
        """Compile the way for single keys."""
        if not len(self) or not is_readable():
            self._one = lambda *_: None
            return
        dtype = self.keys.dtype.name
        self._words = key_words(dtype, self._table_words.ctypes.data)
        self._one = of_key(dtype)

    def _run(self, what: str, queries: Any) -> Indices:
        dtype = self.keys.dtype
        given = queries if type(queries) is np.ndarray and queries.dtype == dtype else self._converted(queries)
        given = np.ascontiguousarray(given).reshape(given.shape)
        out = np.empty(given.shape, np.int64)
        if not len(self):
            out[...] = -1 if what == FIND else 0
        else:
            lookup(dtype.name, what)(*self._table, given.ctypes.data, given.size, out.ctypes.data)
        return out

    def _converted(self, queries: Any) -> AnyArray:
        array, dtype = _array("queries", queries), self.keys.dtype
        is_python = not hasattr(queries, "dtype") and array.dtype.kind in "iuf"
        if is_python and (array.dtype.kind != "f" or dtype.kind == "f"):
            # Numbers of Python have no size: they must fit.
            with np.errstate(over="ignore"):
                converted = array.astype(dtype)
            if dtype.kind == "f" or np.array_equal(converted, array):
                return converted
        if array.dtype.kind in "iuf" and np.can_cast(array.dtype, dtype, "safe"):
            return array.astype(dtype)
        if not array.size:
            return array.astype(dtype)
        raise TypeError(f"queries are of type {array.dtype}, which keys of {dtype} cannot hold; convert one of them")


def _array(what: str, given: Any) -> AnyArray:
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(f"{what} are no array; give an array, or lists of one length") from None
