"""Systems of differential equations as compiled objects: rates, and rollouts with their sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.threads import ONE_THREAD, Workers
from shine.evaluate.rollouts.controls import Controls, controls_of
from shine.evaluate.rollouts.native import JOB, functions, rows_function
from shine.evaluate.rollouts.rates import rate_of, with_numbers
from shine.evaluate.rollouts.work import AUTOMATIC, EXPLICIT, IMPLICIT, ITEM, ITEM_SIZE, MAP, system_words
from shine.lang.forms.tree import Tree

LEAST_TOLERANCE = 1e-13


Word = AnyArray | int


def item_table(count: int, system: Indices, words: Mapping[str, Word]) -> AnyArray:
    """Items of a system, shape (count, n_words), by its words and those of the rollouts; those not given are 0.

    An array gives each rollout its own word.
    """
    items = np.zeros((count, ITEM_SIZE), np.int64)
    items[:, len(ITEM) :] = system
    for name, value in words.items():
        items[:, ITEM.index(name)] = value
    return items


def places(array: AnyArray) -> Indices:
    """Address of each entry along the first axis."""
    addresses: Indices = array.ctypes.data + array.strides[0] * np.arange(len(array))
    return addresses


def run_items(items: AnyArray, doubles: int, workers: Workers) -> None:
    """Roll out the items of a table, by threads that take one after the other.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_words), int64
    doubles : int
        Memory of a thread.
    workers : Workers
    """
    entry, worker_loop = functions()
    memory = np.zeros((workers.threads, doubles))
    jobs = np.zeros((workers.threads, 8), np.int64)
    begun, count = np.zeros(8, np.int64), len(items)
    jobs[:, JOB.index("items")] = items.ctypes.data
    jobs[:, JOB.index("memory")] = places(memory)
    addresses, range_ = places(jobs), 8 * JOB.index("first")

    def work(thread: int) -> None:
        own = int(addresses[thread])
        while begun[0] < count:
            # Rollouts after which a thread looks for an interrupt.
            worker_loop(entry, own, own + range_, begun.ctypes.data, count, 1, 64)

    workers.run(work, lambda: begun.fill(count))


MOST_STEPS = 100_000
"""Most steps of a rollout: some hundredths of a second."""

METHODS = {"auto": AUTOMATIC, "explicit": EXPLICIT, "implicit": IMPLICIT}

_UNCONTROLLED = Controls(np.array([0.0, 1.0]), np.zeros((1, 0, 4)), False)


@dataclass(frozen=True, eq=False)
class Rollout:
    """Trajectories; the leading axes are those of starts and constants.

    Parameters
    ----------
    states : ndarray of shape (..., n_times, n_states)
        NaN at times that were not reached.
    by_constants : ndarray of shape (..., n_times, n_states, n_constants), or None
        Derivatives of the states by the constants.
    by_start : ndarray of shape (..., n_times, n_states, n_states), or None
        Derivatives of the states by those at the first time.
    reached : ndarray of shape (...), int
        Number of times reached.
    status : ndarray of shape (...), int
        0 if all times are reached, 1 if a step became too small (a pole or an explosion), 2 after too many steps.
    steps : ndarray of shape (...), int
    stiff : ndarray of shape (...), int
        1 where implicit steps were taken.
    """

    states: Floats
    by_constants: Floats | None
    by_start: Floats | None
    reached: AnyArray
    status: AnyArray
    steps: AnyArray
    stiff: AnyArray


@dataclass(frozen=True, eq=False)
class Request:
    """Rollouts of one system that share their times.

    Parameters
    ----------
    system : CompiledSystem
    starts : ndarray of shape (n_rollouts, n_states)
    constants : ndarray of shape (n_rollouts, n_constants)
    times : ndarray of shape (n_times,)
        They do not decrease; the start is the state at the first one.
    scales : ndarray of shape (n_states,), or None
        Typical sizes of the states, which bound the error from below where a state is near 0.
    controls : Controls, optional
        Needed if the system has controls.
    """

    system: CompiledSystem
    starts: Floats
    constants: Floats
    times: Floats
    scales: Floats | None = None
    controls: Controls | None = None


class CompiledSystem:
    """A system ``state' = f(states, controls, time)``, compiled to native code.

    Parameters
    ----------
    trees : sequence of Tree
        The rate of each state, in terms of the states, the controls and the time.
    states, controls : sequence of str
    time : str, optional
        Name of the time in the trees.
    is_map : bool
        Whether the trees are the next states, a unit of the time later, and not rates. Times are then whole numbers
        apart, and controls are those of the time before.

    Attributes
    ----------
    constants : ndarray of shape (n_constants,)
        The numbers in the trees, in the order of the text, tree after tree. Whole and half exponents are none.
    """

    def __init__(
        self,
        trees: Sequence[Tree],
        states: Sequence[str],
        controls: Sequence[str] = (),
        time: str | None = None,
        *,
        is_map: bool = False,
    ) -> None:
        if len(trees) != len(states) or not states:
            raise ValueError(f"there are {len(trees)} rates for {len(states)} states; give one a state")
        self.trees, self.states, self.controls, self.time = tuple(trees), tuple(states), tuple(controls), time
        self.is_map = is_map
        inputs = (*self.states, *self.controls, time or "a time that no tree names")
        rates = [rate_of(tree, inputs, len(self.states)) for tree in trees]
        self.constants: Floats = np.concatenate([rate.values for rate in rates])
        self._rates = rates
        self._functions = np.array([(rate.value, rate.slopes) for rate in rates], np.uint64)
        self._counts = np.array([len(rate.values) for rate in rates], np.int64)
        sizes = len(self.states), len(self.controls), len(self.constants)
        addresses = self._functions.ctypes.data, self._counts.ctypes.data
        tables = [np.array(system_words(*sizes, *addresses, wanted), np.int64) for wanted in (False, True)]
        self.words, self.memory = [words[:-1] for words in tables], int(tables[True][-1])

    @property
    def ends(self) -> tuple[int, ...]:
        """Place after the last constant of each state."""
        return tuple(accumulate(map(int, self._counts)))

    def trees_with(self, constants: Floats) -> tuple[Tree, ...]:
        """The trees with other constants."""
        parts = np.split(constants, self.ends[:-1])
        return tuple(with_numbers(tree, part) for tree, part in zip(self.trees, parts, strict=True))

    def steered(self, times: Floats, controls: Floats) -> Controls:
        """Controls that are known at some times, shape (n_times, n_controls), as functions of the time."""
        return controls_of(times, controls, "previous" if self.is_map else None)

    def rates(
        self,
        states: Floats,
        controls: Floats | None = None,
        times: Floats | None = None,
        constants: Floats | None = None,
    ) -> Floats:
        """Rates of states, or the next states of a map, shape (n_rows, n_states).

        Parameters
        ----------
        states : ndarray of shape (n_rows, n_states)
        controls : ndarray of shape (n_rows, n_controls), optional
        times : ndarray of shape (n_rows,), optional
            0 by default.
        constants : ndarray of shape (n_constants,), optional
        """
        rows = len(states)
        given = (
            states,
            np.zeros((rows, 0)) if controls is None else controls,
            (np.zeros(rows) if times is None else times)[:, None],
        )
        inputs = np.concatenate(given, axis=1, dtype=np.float64)
        if inputs.shape[1] != len(self.states) + len(self.controls) + 1:
            raise ValueError(f"rates need {len(self.states)} states and {len(self.controls)} controls a row")
        own = np.ascontiguousarray(self.constants if constants is None else constants, np.float64)
        out = np.empty((rows, len(self.states)))
        arrays = (self._functions, self._counts, own, inputs, out)
        rows_function()(*(array.ctypes.data for array in arrays), len(self.states), inputs.shape[1], rows)
        return out

    def words_of_items(self, controls: Controls | None) -> dict[str, int]:
        """Words of rollouts that the system and its controls decide; they point to arrays of both.

        A `ValueError` if the system has other controls.
        """
        count = 0 if controls is None else controls.pieces.shape[1]
        if count != len(self.controls):
            names = ", ".join(self.controls) or "none"
            raise ValueError(f"the system has {len(self.controls)} controls ({names}), and {count} are given")
        given = _UNCONTROLLED if controls is None else controls
        words = {
            "breaks": given.breaks.ctypes.data,
            "pieces": given.pieces.ctypes.data,
            "last_break": len(given.breaks) - 1,
            "kinked": int(given.kinked),
        }
        return words | ({"method": MAP} if self.is_map else {})

    def rollout(
        self,
        start: Floats,
        times: Floats,
        constants: Floats | None = None,
        controls: Controls | Floats | None = None,
        *,
        sensitivities: bool = False,
        tolerance: float = 1e-8,
        scales: Floats | None = None,
        most_steps: int = MOST_STEPS,
        method: str = "auto",
        workers: Workers = ONE_THREAD,
    ) -> Rollout:
        """Integrate from the first time to all others, or apply the map.

        Parameters
        ----------
        start : ndarray of shape (..., n_states)
            States at the first time.
        times : ndarray of shape (n_times,)
            They do not decrease.
        constants : ndarray of shape (..., n_constants), optional
            Their leading axes broadcast with those of `start`.
        controls : Controls or ndarray of shape (n_times, n_controls), optional
            As functions of the time, or known at the times (see `controls_of`).
        sensitivities : bool
            Whether to compute the derivatives of the states.
        tolerance : float
            Error of a step, relative to the size of a state.
        method : {"auto", "explicit", "implicit"}
            Of the integration; implicit steps suit stiff systems, and "auto" finds out.
        scales, most_steps, workers
            As of `Request` and `roll`.

        Returns
        -------
        Rollout
            A rollout that explodes, or needs too many steps, ends early: that is a status, not an error.
        """
        starts = np.asarray(start, np.float64)
        given = self.constants if constants is None else np.asarray(constants, np.float64)
        shape = np.broadcast_shapes(starts.shape[:-1], given.shape[:-1])
        count = prod(shape)
        starts, given = (
            np.broadcast_to(array, (*shape, size)).reshape(count, size)
            for array, size in ((starts, len(self.states)), (given, len(self.constants)))
        )
        points = np.asarray(times, np.float64)
        steered = controls if controls is None or isinstance(controls, Controls) else self.steered(points, controls)
        request = Request(self, starts, given, points, scales, steered)
        (found,) = roll(
            [request],
            sensitivities=sensitivities,
            tolerance=tolerance,
            most_steps=most_steps,
            method=method,
            workers=workers,
        )

        def shaped(array: AnyArray | None) -> AnyArray | None:
            return None if array is None else array.reshape((*shape, *array.shape[1:]))

        return Rollout(*(shaped(getattr(found, name)) for name in Rollout.__dataclass_fields__))  # type: ignore[arg-type]


def roll(
    requests: Sequence[Request],
    *,
    sensitivities: bool = False,
    tolerance: float = 1e-8,
    most_steps: int = MOST_STEPS,
    method: str = "auto",
    workers: Workers = ONE_THREAD,
) -> list[Rollout]:
    """Roll out many systems, starts, constants and runs in one native call.

    The number of threads changes no bit: each rollout is computed by one.

    A `ValueError` if there is no time, times decrease, or the controls are not those of the system.
    """
    for request in requests:
        if not len(request.times) or not (request.times[1:] >= request.times[:-1]).all():
            raise ValueError("a rollout needs at least one time, and times that do not decrease")
    limit = np.array([max(tolerance, LEAST_TOLERANCE)])
    given: dict[str, Word] = {
        "most_steps": most_steps,
        "method": METHODS[method],
        "tolerance": limit.ctypes.data,
    }
    batches = [_Batch(request, sensitivities, given) for request in requests]
    items = np.concatenate([batch.items for batch in batches])
    run_items(items, max(request.system.memory for request in requests), workers)
    return [batch.rollout() for batch in batches]


class _Batch:
    """The items of a request, and the arrays that they point to."""

    def __init__(self, request: Request, sensitivities: bool, given: Mapping[str, Word]) -> None:
        system, self.request = request.system, request
        count, times, states = len(request.starts), len(request.times), len(system.states)
        columns = len(system.constants) + states
        self.states = np.full((count, times, states), np.nan)
        self.slopes = np.full((count, times, states, columns), np.nan) if sensitivities else None
        self.progress = np.zeros((count, 4), np.int64)
        scales = np.zeros(states) if request.scales is None else request.scales
        kept = (request.starts, request.constants, request.times, scales)
        self.kept = [np.ascontiguousarray(array, np.float64) for array in kept]
        starts, constants, points, scales = self.kept
        words: dict[str, Word] = {
            "given": places(constants),
            "start": places(starts),
            "times": points.ctypes.data,
            "count": times,
            "scales": scales.ctypes.data,
            "states_out": places(self.states),
            "slopes_out": 0 if self.slopes is None else places(self.slopes),
            "progress": places(self.progress),
        }
        own = system.words_of_items(request.controls)
        self.items = item_table(count, system.words[sensitivities], {**given, **words, **own})

    def rollout(self) -> Rollout:
        """The results."""
        constants = len(self.request.system.constants)
        slopes = self.slopes
        by = (None, None) if slopes is None else (slopes[..., :constants], slopes[..., constants:])
        return Rollout(self.states, *by, *self.progress.T)
