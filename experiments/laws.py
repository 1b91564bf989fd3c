"""Empirical laws in data of the kind that they were found in: does an engine offer the law, and choose it?

`python experiments/laws.py --budget 30 --seeds 5 --threads 2` draws the measurement of each law of
quality/empirical_laws.py: 6 to 60 rows, noise as it was, units of the field; each seed is another reading of the
instruments. Half of the laws, by a hash of their names, are the *untouched* set: their figures come first, and nobody
looks at their single lines to improve an engine (`--untouched` shows them). The others are the development set.

A formula is *identical* to the law if it has its form, with constants within what the noise allows; it is so *up to
constants* if other constants make it the law (quality/families.py defines both; a law with a superfluous *offset* that
is 0 within the noise is neither, and counted apart). The last column asks SymPy, as
SRBench does: constants rounded to three decimals, then a constant difference or ratio; `--sympy SECONDS` limits each
question and 0 leaves them out. Run again, the command goes on where it was interrupted.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from quality.command import arguments, main
from quality.empirical_laws import LAWS
from quality.engines import Found
from quality.families import VERDICTS
from quality.law_scores import NOWHERE, LawRecord, law_scores
from quality.problems import generator, with_noise
from quality.records import READERS
from quality.runner import Measure
from quality.summary import grouped, settings_of, table

BY_NAME = {law.name: law for law in LAWS}


def laws_table(records: Sequence[LawRecord], untouched: bool = False) -> str:
    """A line for each law of the development set, and the totals, those of the untouched set first."""
    parts = []
    for name, members in grouped(records, settings_of).items():
        groups = grouped(members, _group)
        shown = [r for r in members if untouched or not BY_NAME[r.problem].untouched]
        lines = [_line(some) for some in grouped(shown, lambda record: record.problem).values()]
        totals = [_total(group, groups[group]) for group in ("untouched", "development") if group in groups]
        parts.append(f"{name}\n\n{table(HEADER, lines)}" * bool(lines) + f"\n\n{name}\n\n{table(TOTALS, totals)}")
    return "\n\n".join(parts)


HEADER = ("law", "rows", "noise", "runs", "on front", "up to constants", "chosen", "chosen up to constants",
          "chosen formula")  # fmt: skip
TOTALS = ("laws", "runs", "on front: identical", "up to constants", "or an offset", "SymPy", "chosen: identical",
          "up to constants", "or an offset", "SymPy", "median size", "failed")  # fmt: skip


def _group(record: LawRecord) -> str:
    return "untouched" if BY_NAME[record.problem].untouched else "development"


def _line(records: Sequence[LawRecord]) -> list[object]:
    """One law: counts of runs, and the formula chosen in the first of them."""
    law = BY_NAME[records[0].problem]
    return [law.name, records[0].rows or law.rows, law.noise, len(records), *_counts(records, more=False),
            records[0].expression or records[0].error]  # fmt: skip


def _total(name: str, records: Sequence[LawRecord]) -> list[object]:
    """One set of laws, in per cent of the runs."""
    sizes = sorted(record.size for record in records if not record.error)
    shares = [f"{count} ({100 * count / len(records):.0f} %)" for count in _counts(records, more=True)]
    middle = sizes[len(sizes) // 2] if sizes else "-"
    return [name, len(records), *shares, middle, sum(bool(record.error) for record in records)]


def _counts(records: Sequence[LawRecord], *, more: bool) -> list[int]:
    """How often the law is on the front, and chosen: identical, up to constants, and more leniently."""
    front = [record.__dict__ for record in records]
    verdicts = [record.verdict for record in records]
    counts = [[sum(row[name] != NOWHERE for row in front) for name in ("identical", "constants", "offset", "sympy")]]
    counts.append([sum(v in VERDICTS[:last] for v in verdicts) for last in (1, 2, 3)])
    counts[1].append(sum(record.by_sympy == "yes" for record in records))
    return [count for part in counts for count in part[: 4 if more else 2]]


def rescored(path: Path) -> list[LawRecord]:
    """Records of a file, also one with fewer columns, scored again from their fronts; SymPy is not asked again."""
    records = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            values = {f.name: READERS[str(f.type)](line[f.name]) for f in fields(LawRecord) if f.name in line}
            old = LawRecord(**values)
            if not old.error:
                law, rng = BY_NAME[old.problem], generator(old.problem, old.seed)
                split = with_noise(law.split(rng, old.rows or None), old.noise, rng)
                found = Found(old.expression, old.expression, old.seconds, tuple(json.loads(old.front)))
                scores = law_scores(old.run, law, split, found, 0.0)
                old = replace(old, **{name: value for name, value in scores.items() if "sympy" not in name})
            records.append(old)
    return records


if __name__ == "__main__":
    parser = arguments(__doc__, "laws", rows="as measured")
    parser.add_argument("--untouched", action="store_true", help="show the lines of the untouched laws as well")
    parser.set_defaults(budget=30.0, threads=2, sympy=5.0)
    parser.add_argument("--rescore", type=Path, metavar="CSV", help="only score the fronts of a file again")
    options = parser.parse_args()
    tabulate = partial(laws_table, untouched=options.untouched)
    if options.rescore:
        print(tabulate(rescored(options.rescore)))
    else:
        main(options, lambda: LAWS, tabulate, Measure(LawRecord, law_scores), None)
