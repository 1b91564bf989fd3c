"""Genetic programming over populations that are arrays, in NumPy.

The run
    `evolution` is the loop, `islands` a generation of one island, `settings` the user's choices. `run_state` is the
    state that checkpoints save, `run_state_checks` checks one that was read.
A generation
    `operators/` has the creation of random individuals, `selection` of parents and survivors, and `variation`.
Scores
    `scoring` evaluates each distinct individual once, by the `memory` of scores; `complexity` weighs nodes; `archive`
    keeps the best of each complexity.
Afterwards
    `snapping` makes the constants of finished formulas simple.
Apart
    `seeding` looks for guesses before the evolution; `constraints` restricts the formulas.
"""
