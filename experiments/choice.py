"""Real data: which rule chooses best from a front?

`python experiments/choice.py --splits 20 --budget 30` learns from three quarters of the rows of each table of
blackbox.py, once for each split, and keeps the whole front. Rules are then compared on the *same fronts* by their
R2 on the other rows: the engine's own choice (shipped), the shortest description with half the logarithm of the
rows for each node (former), the lowest training error, and the best in hindsight, which bounds what any rule can
reach, of the whole front or of what is no more complex than the engine's choice; beside them the constant, the mean of
the training rows. `--engine pyoperon` does the same with Operon's fronts. Run again, the command goes on where it was
interrupted.

`python experiments/choice.py --held-out 0.5 --splits 46 --budget 2` learns from random halves: how often is the other
half predicted worse than by the constant though a simpler formula of the front is not (*avoidable*), or with an R2
below -1?
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blackbox import HELD_OUT, data_sets
from quality.choices import ChoiceRecord, choice_scores, choice_table
from quality.command import arguments, main, seeds_of
from quality.runner import Measure

if __name__ == "__main__":
    parser = arguments(__doc__, "choice", rows="three quarters of all")
    parser.add_argument("--data", type=Path, help="folder of tables")
    parser.add_argument("--splits", dest="seeds", type=seeds_of, help="the same as --seeds: another split for each")
    parser.add_argument("--held-out", type=float, default=HELD_OUT, help="share of the rows (default: %(default)s)")
    parser.set_defaults(budget=30.0, seeds=(0, 1, 2))
    options = parser.parse_args()
    if options.held_out != HELD_OUT:
        options.name += f"-{options.held_out:g}"  # other rows are other results
    tables = [replace(table, held_out=options.held_out) for table in data_sets(options.data)]
    main(options, lambda: tables, choice_table, Measure(ChoiceRecord, choice_scores), None)
