"""Laws that are sums of two to six terms: is their own form found, along one trajectory and on random rows?

`python experiments/sums.py --budget 20 --noise 0,0.01 --count 64` draws laws of growth, reactions, oscillators and
materials (quality/sum_laws.py), every other one along a trajectory, with 1000 rows each. Numbers from 0 are the
development set, those from 1000 (`--first 1000`) the untouched one: its single lines are for nobody who improves an
engine. A formula has the law's own form if it has its values on other random points, to 1e-6 of their standard
deviation, and no more terms once products are expanded; under noise its constants are fitted to the law there first.
Run again, the command goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from quality.command import arguments, main
from quality.engines import Found
from quality.law_scores import NOWHERE, LawRecord, front_scores
from quality.problems import Split
from quality.records import Run
from quality.runner import Measure
from quality.sum_laws import ROWS, judge_sum, sum_law
from quality.summary import grouped, settings_of, table

HEADER = ("laws", "runs", "own form on front", "chosen", "median seconds", "failed")


def scores(run: Run, problem: Any, split: Split, found: Found, simplify: float) -> dict[str, Any]:
    """The fields of a `LawRecord` for a sum."""
    return front_scores(problem, split, found, simplify, lambda f: judge_sum(f, problem, split, run.noise))


def sums_table(records: Sequence[LawRecord], lines: bool = False) -> str:
    """Counts of all laws, of those along a trajectory and on random rows, and of each kind."""
    parts = []
    for name, members in grouped(records, settings_of).items():
        groups = {"all": members, **grouped(members, _rows), **grouped(members, lambda record: record.family)}
        parts.append(f"{name}\n\n{table(HEADER, [_line(group, some) for group, some in groups.items()])}")
        if lines:
            parts += [f"{r.problem}: front {r.constants != NOWHERE}, {r.verdict}: {r.expression}" for r in members]
    return "\n\n".join(parts)


def _rows(record: LawRecord) -> str:
    return "along a trajectory" if int(record.problem.rpartition("-")[2]) % 2 else "random rows"


def _line(name: str, records: Sequence[LawRecord]) -> list[object]:
    seconds = sorted(record.seconds for record in records if not record.error)
    front = sum(record.constants != NOWHERE for record in records)
    chosen = sum(record.verdict in ("identical", "constants") for record in records)
    shares = [f"{count} ({100 * count / len(records):.0f} %)" for count in (front, chosen)]
    middle = f"{seconds[len(seconds) // 2]:.3g}" if seconds else "-"
    return [name, len(records), *shares, middle, sum(bool(record.error) for record in records)]


if __name__ == "__main__":
    parser = arguments(__doc__, "sums", rows=str(ROWS))
    parser.add_argument("--count", type=int, default=64, help="laws (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first law's number (default: %(default)s)")
    parser.add_argument("--lines", action="store_true", help="show each law")
    parser.set_defaults(budget=20.0)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    tabulate = partial(sums_table, lines=options.lines)
    main(options, lambda: [sum_law(number) for number in numbers], tabulate, Measure(LawRecord, scores), None)
