"""Tasks on an executor: results in the order of the tasks, whatever happens to the workers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shine.base.errors import WorkerError
from shine.base.parallel.shipment import Absent, Shipment, Ticket

Task = TypeVar("Task")
Value = TypeVar("Value")

MOST_TRIES = 10
"""Attempts at a task. The death of a worker may end the tasks of the others as well."""

OVERDUE = 10
"""A task that takes so many times as long as the slowest one before it is lost."""

LEAST_WAIT = 60.0
"""Seconds beyond that, because workers may be slow to start."""


@dataclass(frozen=True)
class Done:
    """Result or exception of a task; the executor's own exceptions are raised instead."""

    value: Any = None
    error: Exception | None = None
    absent: bool = False


class Refused(Exception):
    """An executor takes no more tasks; the argument is its own error."""


class Pool:
    """An executor for tasks that may be done twice: pure functions of picklable arguments.

    Parameters
    ----------
    executor : callable
        Gives the executor; called for each task, so that it can replace one that has broken.
    least_wait : float
        Seconds after which a task may count as lost (see `OVERDUE`).
    workers : int
        Tasks that are done at the same time, as far as it is known.
    """

    def __init__(self, executor: Callable[[], Executor], least_wait: float = LEAST_WAIT, workers: int = 1) -> None:
        self._executor, self.least_wait, self.workers = executor, least_wait, workers

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """The future of a call; one that has failed if the executor takes none."""
        try:
            future = self._executor().submit(function, *arguments)
        except Exception as error:
            future = Future()
            future.set_exception(Refused(error))
        if not isinstance(future, Future):
            raise TypeError(
                f"executor: its submit() returns {type(future).__name__}, which is no concurrent.futures.Future; "
                "docs/parallel.md lists the executors that can be used"
            )
        return future


def _done(function: Callable[[Any, Any, Callable[[], bool]], Any], ticket: Ticket | None, task: Any) -> Done:
    """Do a task in a worker."""
    try:
        shared, stopped = (None, bool) if ticket is None else ticket.value()
    except Absent:
        return Done(absent=True)
    try:
        return Done(function(shared, task, stopped))
    except Exception as error:
        return Done(error=error)


class Round(Generic[Task, Value]):
    """Tasks that have been given to an executor together.

    Parameters
    ----------
    pool : Pool
    function : callable
        ``(shared value, task, stopped) -> result``; ``stopped()`` says whether the result is still wanted.
    tasks : sequence
    shipment : Shipment, optional
        The shared value.
    """

    def __init__(
        self,
        pool: Pool,
        function: Callable[[Any, Task, Callable[[], bool]], Value],
        tasks: Sequence[Task],
        shipment: Shipment | None = None,
    ) -> None:
        self._pool, self._function, self._tasks, self._shipment = pool, function, tasks, shipment
        self._tries = [0] * len(tasks)
        self._loaded, self._yielded = False, 0
        self._began = [0.0] * len(tasks)
        self._slowest = 0.0
        self._futures: list[Future[Done]] = [Future() for _ in tasks]
        for number in range(len(tasks)):
            self._submit(number)

    def results(self, deadline: float = float("inf")) -> Iterator[Value]:
        """The results in the order of the tasks.

        Parameters
        ----------
        deadline : float
            On `time.monotonic`.

        Raises
        ------
        WorkerError
            If a task kills its workers.
        TimeoutError
            If the deadline passes before the next result is there.
        """
        for number in range(len(self._tasks)):
            done = self._result(number, deadline)
            if done.error is not None:
                raise done.error
            self._yielded = number + 1
            yield done.value

    def finished(self, seconds: float) -> list[Value]:
        """The further results that are there after some seconds, in the order of the tasks; the others are given up."""
        self.cancel()
        rest = [future for future in self._futures[self._yielded :] if not future.cancelled()]
        wait(rest, timeout=seconds)
        over = [future for future in rest if future.done()]
        done = [future.result() for future in over if future.exception() is None]
        return [each.value for each in done if each.error is None and not each.absent]

    def cancel(self) -> None:
        """Take back the tasks that have not begun."""
        for future in self._futures:
            future.cancel()

    def _submit(self, number: int) -> None:
        ticket = None
        if self._shipment is not None:
            ticket = self._shipment.loaded() if self._loaded else self._shipment.ticket
        self._tries[number] += 1
        self._began[number] = time.monotonic()
        self._futures[number] = self._pool.submit(_done, self._function, ticket, self._tasks[number])

    def _result(self, number: int, deadline: float) -> Done:
        while True:
            future = self._futures[number]
            error: BaseException | None = None
            try:
                # Seconds between checks of overdue tasks and of the deadline.
                error = future.exception(max(0.0, min(1.0, deadline - time.monotonic())))
            except CancelledError as cancelled:
                error = cancelled
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise TimeoutError("the deadline of a round has passed") from None
                if not self._lost(number):
                    continue
                future.cancel()
                error = TimeoutError("it does not come back")
            if error is None:
                done = future.result()
                if not done.absent:
                    self._slowest = max(self._slowest, time.monotonic() - self._began[number])
                    return done
                # Workers of another file system: from now on the value travels with the tasks.
                self._loaded = True
            if self._tries[number] >= MOST_TRIES:
                if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
                    # This process must not die as well.
                    raise WorkerError(
                        f"workers died {MOST_TRIES} times over one task; give each of them more memory, or look into "
                        "their logs"
                    ) from error
                return self._run_locally(number, error.args[0] if isinstance(error, Refused) else error)
            self._submit(number)

    def _lost(self, number: int) -> bool:
        """Whether a task takes so long that it must be lost; nothing is known before another one is done."""
        if not self._slowest:
            return False
        return time.monotonic() - self._began[number] > OVERDUE * self._slowest + self._pool.least_wait

    def _run_locally(self, number: int, error: BaseException | None) -> Done:
        """Do a task in this process, and say so."""
        warnings.warn(
            f"the executor lost a task {MOST_TRIES} times ({_told(error)}); this process does it "
            "itself. The result is the same, but it takes longer: check the workers",
            RuntimeWarning,
            stacklevel=2,
        )
        ticket = None if self._shipment is None else self._shipment.ticket
        return _done(self._function, ticket, self._tasks[number])


MOST = 256
"""Tasks of a stream that wait for a worker or have one: more than there are workers, mostly."""


class Stream(Generic[Task, Value]):
    """Tasks without end, whose results come in any order; those of dead workers are lost.

    Parameters
    ----------
    pool : Pool
    function : callable
        As that of a `Round`.
    tasks : iterator
        Asked for a task when it is submitted.
    shipment : Shipment
        The shared value.
    """

    def __init__(
        self,
        pool: Pool,
        function: Callable[[Any, Task, Callable[[], bool]], Value],
        tasks: Iterator[Task],
        shipment: Shipment,
    ) -> None:
        self._pool, self._function, self._tasks, self._shipment = pool, function, tasks, shipment
        self._ticket, self._failures = shipment.ticket, 0
        self._futures: list[Future[Done]] = []
        self._submit()

    def ready(self) -> list[Value]:
        """The results that are there; as many tasks follow. An error that a task raised is raised here."""
        over = [future for future in self._futures if future.done()]
        if not over:
            return []
        self._futures = [future for future in self._futures if future not in over]
        done, lost = self._done(over)
        if any(each.absent for each in done):
            # Workers of another file system: from now on the value travels with the tasks.
            self._ticket = self._shipment.loaded()
        self._failures = 0 if done else self._failures + 1
        if self._failures < MOST_TRIES:
            self._submit()
        else:
            warnings.warn(
                f"workers were lost {MOST_TRIES} times ({_told(lost[0])}); this process goes on alone: check them",
                RuntimeWarning,
                stacklevel=2,
            )
        return [each.value for each in done if not each.absent]

    def finished(self, seconds: float) -> list[Value]:
        """The results that are there after some seconds; no task begins any more."""
        self.cancel()
        wait(self._futures, timeout=seconds)
        done, _ = self._done([future for future in self._futures if future.done()])
        return [each.value for each in done if not each.absent]

    def cancel(self) -> None:
        """Take back the tasks that have not begun."""
        for future in self._futures:
            future.cancel()

    def _submit(self) -> None:
        for _ in range(MOST - len(self._futures)):
            self._futures.append(self._pool.submit(_done, self._function, self._ticket, next(self._tasks)))

    def _done(self, futures: Sequence[Future[Done]]) -> tuple[list[Done], list[BaseException]]:
        """The results of futures that are over, and the errors of those that executors have lost."""
        errors = [CancelledError() if future.cancelled() else future.exception() for future in futures]
        done = [future.result() for future, error in zip(futures, errors, strict=True) if error is None]
        for each in done:
            if each.error is not None:
                raise each.error
        return done, [error for error in errors if error is not None]


def _told(error: BaseException | None) -> str:
    """An error in a line."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
