"""A cached property."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """The `functools.cached_property` of Python 3.12 and later, without the lock of Python 3.11.

    If another thread forks the process while a value is computed under a lock, the new process waits for that lock for
    ever. Without the lock, two threads may compute the same value; both get the value that was ready first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        """The value of an instance; from then on, the instance's own attribute is found before this method."""
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
