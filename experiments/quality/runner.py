"""Runs engines on problems, each run in a process of its own, and records the outcome.

An engine that fails, hangs or kills its process costs one line of the table and no more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic

from tqdm import tqdm

from quality.engines import Found, Task
from quality.problems import Problem, Split, generator, with_noise
from quality.records import AnyOutcome, Record, Run, append_record, read_records
from quality.scoring import score_both
from quality.simplification import simplified
from quality.worker import read_result, write_task

EXPERIMENTS = Path(__file__).resolve().parents[1]


class RunError(Exception):
    """A run ended without a result; the message says why."""


def patience(budget: float) -> float:
    """Seconds after which a worker is stopped: starting, importing and compiling included."""
    return 3 * budget + 60


def _recovery(run: Run, problem: Problem, split: Split, found: Found, simplify: float) -> dict[str, Any]:
    """The scores of the recommended and of the most accurate formula."""
    chosen, accurate = (asdict(score) for score in score_both(found, problem, split))
    if simplify and problem.text:
        chosen["simplified"] = simplified(found.chosen, problem.text, problem.features, problem.bounds, simplify)
    return {"seconds": found.seconds, **chosen, **{f"accurate_{name}": value for name, value in accurate.items()}}


@dataclass(frozen=True)
class Measure(Generic[AnyOutcome]):
    """What an experiment records of a run.

    Parameters
    ----------
    record : type
        The class of its records.
    score : callable
        From the run, its problem, the rows, the engine's result and the seconds that SymPy may take, the values of the
        fields that only these records have.
    """

    record: type[AnyOutcome]
    score: Callable[[Run, Any, Split, Found, float], dict[str, Any]]


RECOVERY = Measure(Record, _recovery)
"""Whether the recommended and the most accurate formula are the truth, and how accurate they are."""


def execute(
    run: Run,
    problem: Problem,
    python: str,
    limit: float | None = None,
    simplify: float = 0.0,
    measure: Measure[Any] = RECOVERY,
) -> Any:
    """One run, from drawing the rows to the scores: a record of the measure's class.

    Parameters
    ----------
    run : Run
    problem : Problem
    python : str
        The interpreter the engine runs under.
    limit : float, optional
        Seconds the worker may take; `patience` of the budget by default.
    simplify : float
        Seconds SymPy may take to recognize the truth; 0 if it is not asked.
    measure : Measure
        What is recorded.
    """
    fixed = asdict(run) | {"expressible": problem.expressible}
    try:
        rng = generator(problem.name, run.seed)
        split = with_noise(problem.split(rng, run.rows or None), run.noise, rng)
        found = _search(run, problem, split, python, patience(run.budget) if limit is None else limit)
        return measure.record(**fixed, **measure.score(run, problem, split, found, simplify))
    except Exception as error:  # a failing engine costs one line of the table
        return measure.record(**fixed, error=" ".join(f"{type(error).__name__}: {error}".split())[:500])


def _search(run: Run, problem: Problem, split: Split, python: str, limit: float) -> Found:
    """Let a worker search."""
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        source, target, log = (Path(folder) / name for name in ("task.npz", "result.json", "log.txt"))
        write_task(source, run.engine, Task(split.X, split.y, problem.features, run.budget, run.threads, run.seed))
        # Numeric libraries may use no more threads than the run.
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(run.threads))
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [python, "-m", "quality.worker", str(source), str(target)],
                env=os.environ | threads,
                cwd=EXPERIMENTS,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            try:
                code = worker.wait(limit)
            except subprocess.TimeoutExpired:
                raise RunError(f"no result after {limit:g} s; its budget was {run.budget:g} s") from None
            finally:
                worker.kill()
                worker.wait()
        if code != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise RunError(f"the worker ended with {code}: {lines[-1] if lines else 'no message'}")
        return read_result(target)


def run_all(
    runs: Iterable[tuple[Run, Problem]],
    path: Path,
    python: str = sys.executable,
    *,
    jobs: int = 1,
    retry: bool = False,
    simplify: float = 0.0,
    measure: Measure[AnyOutcome] = RECOVERY,
) -> list[AnyOutcome]:
    """Do the runs that a file does not hold yet, and add them to it; Ctrl-C ends this early.

    Parameters
    ----------
    runs : iterable of (Run, Problem)
    path : Path
        The CSV file.
    python : str
        The interpreter engines run under.
    jobs : int
        Runs at the same time.
    retry : bool
        Whether failed runs are repeated.
    simplify, measure
        See `execute`.

    Returns
    -------
    list of records
        All of these runs that the file now holds.
    """
    wanted = list(runs)
    done = {record.run for record in read_records(path, measure.record) if not (retry and record.error)}
    missing = [(run, problem) for run, problem in wanted if run not in done]
    pool = ThreadPoolExecutor(jobs)
    with tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", smoothing=0) as bar:
        futures = [
            pool.submit(execute, run, problem, python, simplify=simplify, measure=measure) for run, problem in missing
        ]
        try:
            for future in as_completed(futures):
                record = future.result()
                append_record(path, record)
                bar.set_postfix_str(record.headline, refresh=False)
                bar.update()
        except KeyboardInterrupt:
            # The terminal sends the signal to the workers as well: what they leave is no result.
            pool.shutdown(wait=False, cancel_futures=True)
            print("\ninterrupted; run the same command again to go on", file=sys.stderr)
        else:
            pool.shutdown()
    return records_of(path, [run for run, _ in wanted], measure.record)


def records_of(path: Path, runs: Sequence[Run], kind: type[AnyOutcome]) -> list[AnyOutcome]:
    """The last record of each of these runs in a file, in the order of the runs."""
    found = {record.run: record for record in read_records(path, kind)}
    return [found[run] for run in runs if run in found]
