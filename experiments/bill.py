"""What does each rule of a search win, cost, and harm?

`python experiments/bill.py --data FOLDER --out bill.jsonl` searches the development collection, one run a problem:
Feynman, classic formulas, empirical laws, sums, random formulas, and real tables with rows kept back. Each run records

* for each search of the seeding: seconds of the processor, whether it found the best guess, and whether the others find
  one as good without it (the seeding again, that search left out);
* for each rule of the end: the end once more from the same individuals, the rule left out: its seconds, and the chosen
  formula's error on fresh rows, free of noise where the law is known.

`python experiments/bill.py --table bill.jsonl` prints the bill: the lines of each rule, its share of the time, what is
won and lost with it by more than `FAR`, and the mean change of log10(1 - R2).
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from blackbox import data_sets
from classics import PROBLEMS
from feynman import find, read_equations
from fresh_rows import Case, random_cases
from laws import LAWS
from quality.problems import Problem, Split, generator, with_noise
from quality.random_trees import random_problem
from quality.sum_laws import sum_law

import shine
from shine.lang.interpret import evaluate
from shine.search import run
from shine.search.finishing.refinement import STAGES
from shine.search.kinds.formula import FormulaProblem
from shine.search.models.result import Result
from shine.search.seeding import Guesses, rounds
from shine.search.seeding.effort import FIRST_SLICE, SLICE, Effort
from shine.search.seeding.search_table import SEARCHES, searches_of
from shine.search.seeding.slices import due_slices

FAR = 0.05
"""Change of log10(1 - R2) on fresh rows that counts as won or lost; below `LEAST`, all are exact."""

DISASTER = 2.0
"""Share of the fresh rows' variance left that counts as a disaster: R2 of -1."""

LEAST = 1e-12
"""Share of the variance left that counts as exact."""

FINISHING = "shine.search.finishing."


@dataclass(frozen=True)
class Rule:
    """A rule of the end of a search, and how it is left out.

    Parameters
    ----------
    purpose : str
    file : str
        Where it is.
    off : tuple of tuple of str, str and object
        Module, name in it (with a class, if it is a method), and what takes its place.
    """

    purpose: str
    file: str
    off: tuple[tuple[str, str, Any], ...]


def unchanged(first: Any, *_: Any, **__: Any) -> Any:
    """What is given first."""
    return first


def unchanged_list(models: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
    """What is given first, as a list."""
    return list(models)


def _left_out(stage: str) -> tuple[tuple[str, str, Any], ...]:
    """The end without one of its stages."""
    assert stage in [each.name for each in STAGES]
    return ((FINISHING + "refinement", "STAGES", tuple(each for each in STAGES if each.name != stage)),)


DOMAIN = "shine.evaluate.domain.check"
RULES = {
    "poles": Rule(
        "formulas with poles leave the front",
        "search/finishing/poles.py",
        (
            (FINISHING + "refinement", "without_poles", unchanged_list),
            (FINISHING + "end", "without_poles", unchanged_list),
        ),
    ),
    "shorter forms": Rule("exact formulas get shorter", "search/finishing/shorter.py", _left_out("shorter forms")),
    "tidied": Rule("tidy constants", "search/finishing/shorter.py", _left_out("tidy")),
    "short numbers": Rule(
        "short numbers in exact formulas", "search/finishing/refinement.py", _left_out("short numbers")
    ),
    "supported digits": Rule(
        "digits that rows support",
        "search/finishing/polishing.py",
        ((FINISHING + "end", "with_supported_digits", unchanged),),
    ),
    "snapping": Rule(
        "simple numbers for constants",
        "search/evolution/snapping.py",
        ((FINISHING + "polishing", "snapped", unchanged), (FINISHING + "polishing", "rounded_off", unchanged)),
    ),
    "idle digits": Rule(
        "constants that rows hardly determine",
        "search/evolution/snapping.py",
        ((FINISHING + "polishing", "without_idle_digits", unchanged),),
    ),
    "written length": Rule(
        "digits cost nats on the front",
        "search/finishing/refinement.py",
        ((FINISHING + "refinement", "surprise", lambda model, *_: model.loss),),
    ),
    "defined": Rule(
        "values wherever rows may lie", "evaluate/domain/check.py", ((DOMAIN, "Domain.defines", lambda *_: True),)
    ),
}


def _together(purpose: str, *names: str) -> Rule:
    """Several rules as one: each may do the work of another that is left out."""
    return Rule(purpose, "", tuple(part for name in names for part in RULES[name].off))


RULES |= {
    "all of the domain": _together("poles and what is like them", "poles", "defined"),
    "all digits": _together(
        "short constants", "snapping", "idle digits", "tidied", "short numbers", "supported digits"
    ),
}


def without(rule: Rule) -> ExitStack:
    """A context in which a rule is left out."""
    stack = ExitStack()
    for module, name, other in rule.off:
        owner: Any = importlib.import_module(module)
        *outer, last = name.split(".")
        for each in outer:
            owner = getattr(owner, each)
        stack.enter_context(patch.object(owner, last, other))
    return stack


@dataclass(frozen=True)
class FreshTable:
    """A small random table with noise, of `fresh_rows.py`: what a formula does on other rows of its kind."""

    case: Case
    text: str = ""

    @property
    def name(self) -> str:
        """As there."""
        return self.case.name

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"x{at}" for at in range(self.case.X.shape[1]))

    def split(self, rng: np.random.Generator, rows: int | None = None) -> Split:
        """Its rows."""
        return Split(self.case.X, self.case.y, self.case.fresh_X, self.case.fresh_y)


HASTY = {"generations": 8, "population": 200, "seeding_members": 1000}
"""Settings for small random tables, as in `fresh_rows.py`."""


FAMILIES = ("feynman", "classics", "random", "sums", "laws", "real", "fresh")


def collection(folder: Path, count: int, seed: int, wanted: Sequence[str]) -> Iterator[tuple[Problem, float]]:
    """Problems of the development collection with their noise; of each family, every so many."""

    def some(problems: Sequence[Any], most: int) -> Sequence[Any]:
        return problems[:: max(len(problems) // most, 1)]

    feynman = [each for each in read_equations(find(folder / "feynman.csv")) if each.expressible]
    classics = [each for each in PROBLEMS if each.expressible]
    randoms = [random_problem(size, number) for number in range(max(count // 4, 1)) for size in (8, 10, 12, 14, 16)]
    cases = [case for case in random_cases(seed + 1) if case.seed == seed]
    families: dict[str, Sequence[Any]] = {
        "feynman": some(feynman, 2 * count),
        "classics": some(classics, count),
        "random": randoms,
        "sums": [sum_law(n) for n in range(count)],
        "laws": some(LAWS, 2 * count),
        "real": list(data_sets(folder)),
        "fresh": [FreshTable(case) for case in some(cases[seed % 3 :], 5 * count)],
    }
    for name in wanted:
        for level in (0.0,) if name in ("laws", "real", "fresh") else (0.0, 0.1):
            yield from ((problem, level) for problem in families[name])


class Recorder:
    """Records one search."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.searches: dict[str, float] = defaultdict(float)
        self.firsts: list[tuple[str, float]] = []
        self.rules: dict[str, dict[str, Any]] = {}
        self.seeding_seconds = 0.0

    def judged(self, result: Result) -> dict[str, Any]:
        """The chosen formula: text, nodes, and share of the fresh rows' variance that it leaves."""
        best, y = result.best, self.split.y_test
        with np.errstate(all="ignore"):
            errors = y - evaluate(best.tree, list(np.ascontiguousarray(self.split.X_test.T)), np.float64)
            left = float(errors @ errors / np.sum((y - y.mean()) ** 2))
        return {"text": best.expression, "nodes": best.complexity, "left": left if math.isfinite(left) else 1e9}


def record(
    problem: Problem, noise: float, seed: int, generations: int, only: Sequence[str] = (), hasty: bool = True
) -> dict[str, Any]:
    """One search, with the end again without each rule, and the seeding without the search of its best guess."""
    rng = generator(problem.name, seed)
    clean = problem.split(rng, None)
    split = with_noise(clean, noise, rng)
    recorder = Recorder(split)

    class Recorded(FormulaProblem):
        def finished(self, outcome: Any, earlier: Any) -> Result:
            result = super().finished(outcome, earlier)
            began = time.process_time()
            result = super().finished(outcome, earlier)  # all is compiled now
            plain = time.process_time() - began
            whole = recorder.judged(result)
            recorder.rules["all"] = {**whole, "seconds": plain}
            for name, rule in (item for item in RULES.items() if item[0] in (only or RULES)):
                with without(rule):
                    began = time.process_time()
                    try:
                        changed = recorder.judged(super().finished(outcome, earlier))
                    except Exception as error:
                        changed = {"text": repr(error), "nodes": 0, "left": 1e9}
                    seconds = time.process_time() - began
                same = changed["text"] == whole["text"]
                recorder.rules[name] = {"seconds": seconds} if same else {**changed, "seconds": seconds}
            return result

        def _in_one_go(self, rng: Any) -> Guesses:
            with np.errstate(all="ignore"):
                slices = due_slices(generations * self.evolving.population, 0.5)
                *_, found = super()._seeded(rng, Effort(FIRST_SLICE + slices * SLICE))
            return found

        def _seeded(self, rng: Any, effort: Any) -> Generator[Guesses]:
            state = rng.bit_generator.state
            recorder.best, recorder.best_search = math.inf, None  # the choice of the noise had searches, too
            began = time.process_time()
            guesses = self._in_one_go(rng)
            recorder.seeding_seconds = time.process_time() - began
            if not only:
                self._again(guesses, state)
            yield guesses

        def _again(self, guesses: Any, state: Any) -> None:
            """The seeding without the search that found the best guess."""
            found = recorder.best_search
            if found is None:
                return
            rng = np.random.default_rng()
            rng.bit_generator.state = state
            kept, recorder.best_search = recorder.best, None
            fewer = lambda *args: tuple(s for s in searches_of(*args) if s.name != found)  # noqa: E731
            recorder.listening = False
            began = time.process_time()
            with patch.object(rounds, "searches_of", fewer):
                again = self._in_one_go(rng)
            recorder.again = {
                "search": found,
                "exact": bool(guesses.exact),
                "left": float(guesses.unexplained[0]),
                "nodes": int(guesses.candidates.sizes[0]),
                "kind": guesses.kinds[0],
                "first": str(guesses.candidates.tree(0)),
                "exact without": bool(again.exact),
                "left without": float(again.unexplained[0]),
                "nodes without": int(again.candidates.sizes[0]),
                "first without": str(again.candidates.tree(0)),
                "seconds": recorder.seeding_seconds,
                "seconds without": time.process_time() - began,
            }
            recorder.best_search, recorder.best = found, kept

    recorder.best_search, recorder.best, recorder.listening, recorder.again = None, math.inf, True, None

    original = rounds.Rounds._take_in

    def take_in(self: Any, step: Any, see: Any) -> None:
        began = time.process_time()
        original(self, step, see)
        if not recorder.listening:
            return
        recorder.searches[step.search.name] += time.process_time() - began
        if self.pool.unexplained:
            best = min(map(self.pool.criterion, self.pool.unexplained))
            if best < recorder.best - 1e-9:
                recorder.best, recorder.best_search = best, step.search.name

    with patch.object(run, "FormulaProblem", Recorded), patch.object(rounds.Rounds, "_take_in", take_in):
        began = time.process_time()
        limits: dict[str, Any] = {"generations": generations, "seconds": None, "threads": 1, "seed": seed}
        if isinstance(problem, FreshTable):
            limits |= {**(HASTY if hasty else {}), "primitives": problem.case.primitives}
        result = shine.evolve(split.X, split.y, features=problem.features, **limits)
        total = time.process_time() - began
    return {
        "problem": problem.name,
        "noise": noise,
        "seed": seed,
        "rows": len(split.y),
        "features": split.X.shape[1],
        "truth": problem.text,
        "total": total,
        "generations": result.generations,
        "model of noise": result.best.noise,
        "searches": dict(recorder.searches),
        "seeding": recorder.again,
        "seeding seconds": recorder.seeding_seconds,
        "rules": recorder.rules,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of tables and of feynman.csv")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="print the bill of these files")
    parser.add_argument("--count", type=int, default=12, help="problems of a family, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generations", type=int, default=150)
    parser.add_argument("--part", default="0/1", help="i/n: every n-th problem from i")
    parser.add_argument("--only", nargs="*", default=[], help="only these rules, and no seeding again")
    parser.add_argument("--thorough", action="store_true", help="no shorter searches for small random tables")
    parser.add_argument("--families", nargs="*", default=FAMILIES, choices=FAMILIES)
    options = parser.parse_args()
    if options.table:
        print(bill([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    part, parts = map(int, options.part.split("/"))
    known = set()
    if options.out.exists():
        known = {(r["problem"], r["noise"], r["seed"]) for r in map(json.loads, options.out.read_text().splitlines())}
    problems = list(collection(options.data, options.count, options.seed, options.families))
    for place in np.random.default_rng(0).permutation(len(problems))[part::parts].tolist():
        problem, noise = problems[place]
        if (problem.name, noise, options.seed) in known:
            continue
        try:
            found = record(problem, noise, options.seed, options.generations, options.only, not options.thorough)
        except Exception as error:
            print(problem.name, noise, repr(error), flush=True)
            continue
        with options.out.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(problem.name, noise, f"{found['total']:.1f} s", found["rules"]["all"], flush=True)


def _log_left(left: float) -> float:
    return math.log10(min(max(left, LEAST), 10.0))


ENOUGH = 3
"""Problems that a rule must win to stay; one disaster on fresh rows is as much."""


def bill(records: Sequence[dict[str, Any]]) -> str:
    """The tables of the rules of the end, and of the searches."""
    head = ("rule", "file", "runs", "changed", "better with", "worse with", "mean gain", "disasters with / without",
            "nodes saved", "share of the end", "verdict")  # fmt: skip
    lines = [_row(head), _row(["---"] * len(head))]
    for name, rule in RULES.items():
        changes, nodes, disasters, seconds = [], [], [0, 0], 0.0
        asked = [each["rules"] for each in records if name in each["rules"]]
        total = sum(rules["all"]["seconds"] for rules in asked) or 1.0
        for rules in asked:
            whole, other = rules["all"], rules[name]
            seconds += whole["seconds"] - other["seconds"]
            if "text" in other:
                changes.append(_log_left(other["left"]) - _log_left(whole["left"]))
                nodes.append(other["nodes"] - whole["nodes"])
                lefts = whole["left"], other["left"]
                disasters = [n + (left > DISASTER) for n, left in zip(disasters, lefts, strict=True)]
        better, worse = sum(c > FAR for c in changes), sum(c < -FAR for c in changes)
        stays = better - worse >= ENOUGH or disasters[1] > disasters[0]
        row = [name, rule.file, len(asked), len(changes), better, worse, f"{np.mean(changes or [0]):+.3f}",
               f"{disasters[0]} / {disasters[1]}", f"{np.mean(nodes or [0]):+.1f}", f"{seconds / total:.0%}",
               "stays" if stays else "no win"]  # fmt: skip
        lines.append(_row(row))
    head = ("search", "runs", "seconds", "share", "found the best guess", "none as good without it", "verdict")
    lines += ["", _row(head), _row(["---"] * len(head))]
    everything = sum(sum(each["searches"].values()) for each in records)
    for search in dict.fromkeys(each.name for each in SEARCHES):
        seconds = sum(each["searches"].get(search, 0.0) for each in records)
        ran = sum(search in each["searches"] for each in records)
        best = [each["seeding"] for each in records if each["seeding"] and each["seeding"]["search"] == search]
        lost = sum(
            (b["exact"] and not b["exact without"])
            or (not b["exact"] and _log_left(b["left without"]) > _log_left(b["left"]) + FAR)
            for b in best
        )
        verdict = "stays" if lost >= ENOUGH else "doubtful" if best else "no win"
        lines.append(_row([search, ran, f"{seconds:.0f}", f"{seconds / everything:.0%}", len(best), lost, verdict]))
    return "\n".join(lines)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
