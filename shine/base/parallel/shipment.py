"""A value for many tasks: it travels to each worker once."""

from __future__ import annotations

import io
import secrets
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pickle import PicklingError
from types import TracebackType
from typing import Any, Self

from shine.base.errors import placed


class Absent(Exception):
    """A worker has not got the value, and does not see the file of it."""


@dataclass(frozen=True)
class Ticket:
    """Stand-in for a large value in a task.

    Parameters
    ----------
    key : str
        Random: no other value has it.
    path : str
        File of the value, which workers that share the file system map into their memory.
    content : bytes, optional
        The value itself, for a worker that sees no such file.
    """

    key: str
    path: str
    content: bytes | None = None

    def value(self) -> tuple[Any, Callable[[], bool]]:
        """The value, read at the first call in a thread of a worker, and whether it is no longer wanted.

        An `Absent` if this worker has neither the value nor its file, and the ticket does not carry it.
        """
        import joblib

        kept = _KEPT.values
        if self.key in kept:
            kept.move_to_end(self.key)
            return kept[self.key]
        try:
            kept[self.key] = joblib.load(self.path, mmap_mode="r"), self.recalled
        except OSError:
            if self.content is None:
                raise Absent from None
            kept[self.key] = joblib.load(io.BytesIO(self.content)), bool
        # Values that a thread of a worker keeps: that of the search in progress, and that of the one before.
        while len(kept) > 2:
            kept.popitem(last=False)
        return kept[self.key]

    def recalled(self) -> bool:
        """Whether the file is no longer there: a worker that has seen it should stop."""
        return not Path(self.path).exists()


class _Kept(threading.local):
    """The values of this thread: a value need not be safe to use in several threads at once."""

    def __init__(self) -> None:
        self.values: OrderedDict[str, tuple[Any, Callable[[], bool]]] = OrderedDict()


_KEPT = _Kept()


class Shipment:
    """A value in a file of a private folder, until the end of a `with` block.

    Parameters
    ----------
    value : object
        Anything that pickle or cloudpickle takes.
    light : object, optional
        What travels with tasks to workers that see no file: smaller than the value, and unpickled as one of the same
        bits. By default the value itself.

    Raises
    ------
    ValueError
        If the value cannot be pickled.
    """

    _is_there = False

    def __init__(self, value: object, light: object = None) -> None:
        self._light, self._content = light, b""
        # Named before it is made: Ctrl-C at any moment leaves an object that removes it.
        self._folder = Path(tempfile.gettempdir(), f"shine-{secrets.token_hex(8)}")
        from joblib.externals.loky.backend import resource_tracker

        self._tracker, self._is_there = resource_tracker, True
        path = self._folder / "value"
        try:
            # If this process is killed, the tracker, a process of its own, removes the folder.
            self._tracker.register(str(self._folder), "folder")
            self._folder.mkdir(mode=0o700)
            _written(value, path)
        except BaseException:
            self.recall()
            raise
        self.ticket = Ticket(secrets.token_hex(16), str(path))

    def loaded(self) -> Ticket:
        """A ticket that carries the value."""
        import joblib

        if not self._content and self._light is not None:
            stream = io.BytesIO()
            joblib.dump(self._light, stream)
            self._content = stream.getvalue()
        self._content = self._content or Path(self.ticket.path).read_bytes()
        return Ticket(self.ticket.key, self.ticket.path, self._content)

    def recall(self) -> None:
        """Remove the file: workers that see it stop soon."""
        if self._is_there:
            # One file in one folder: `rmtree`, interrupted, closes what is closed already.
            with suppress(OSError):
                (self._folder / "value").unlink(missing_ok=True)
                self._folder.rmdir()
            self._is_there = False
            self._tracker.unregister(str(self._folder), "folder")

    def __del__(self) -> None:
        """Remove the file though Ctrl-C came before anyone knew of it, or while it was being removed."""
        self.recall()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.recall()


def _written(value: object, path: Path) -> None:
    """Write a value; functions that pickle does not take, such as lambdas, by cloudpickle."""
    import joblib

    try:
        joblib.dump(value, path)
        return
    except (PicklingError, AttributeError, TypeError):
        pass
    with placed(
        "the search cannot be sent to other processes", PicklingError, AttributeError, TypeError, kind=ValueError
    ):
        joblib.dump(joblib.wrap_non_picklable_objects(value, keep_wrapper=False), path)
