"""Jobs of the gradient machine: arrays of words, each an address or a number, that Python hands over."""

from __future__ import annotations

GRADIENT_JOB = (
    "codes", "values", "sizes", "width", "functions", "rows", "full", "columns", "target", "weights", "tail_columns",
    "tail_target", "tail_weights", "weighted", "loss_columns", "tail_loss_columns", "lines", "limits", "residuals",
    "reweighted", "bounded", "scales", "out", "stride", "most", "derived", "instructions", "nodes", "constants",
    "tiles", "normal", "residual", "scratch", "whole", "first", "last",
)  # fmt: skip
"""Words of a job of normal equations; words shared with `shine.evaluate.machine.job.JOB` have the same meaning.

============== ========================================================================================
``residuals``  address of two addresses: the working residuals of rows without and with weights (see
               `working_residuals`)
``reweighted`` whether these functions give rows other weights than their own
``bounded``    whether errors are never negative, so that an evaluation may stop at a limit
``scales``     address of the `SCALES` of `working_residuals`
``limits``     sum of errors of each individual beyond which its evaluation stops; a limit below 0 skips it
``stride``     numbers in a row of the matrix of normal equations
``most``       constants of an individual that are fitted: the first ones of its tape
``out``        results: ``1 + stride * stride`` numbers per individual, its errors and the matrix
============== ========================================================================================

``instructions`` to ``whole`` are memory of one thread.
"""

FIT_FIELDS = ("steps", "scaled", "fixed", "tolerance", "goals", "errors", "going", "records", "fitting")

FIT_JOB = (*GRADIENT_JOB[:-2], *FIT_FIELDS, *GRADIENT_JOB[-2:])
"""Words of a job of fitting. ``values`` and ``lines`` hold the trial of each individual, at the end its result.

============= =============================================================================================
``steps``     number of steps left
``scaled``    whether slope and intercept are fitted
``fixed``     a byte for each individual and fitted constant, not 0 if the constant is fixed
``tolerance`` address of the least share of the error that a step must promise to remove
``goals``     sum of errors below which each individual must come; at the start as a share of its first sum
``errors``    sum of errors of each individual; inf at the start, and at the end where it is not finite
``going``     a word for each individual: whether its fit goes on; 1 at the start
``records``   what ``advance`` keeps of each individual between two calls (see `constant_fitting`)
``fitting``   memory of one thread
============= =============================================================================================
"""

GROUPED_FIELDS = (
    "grouped", "outputs", "n_outputs", "sections", "n_groups", "own", "shared", "steps", "tolerance", "unknowns",
    "errors", "group_errors", "blocks", "fixed", "lows", "highs", "prior", "state", "kept", "fresh", "work", "reduced",
    "trial", "totals", "flags", "step",
)  # fmt: skip

GROUPED_JOB = (*GRADIENT_JOB[:-2], *GROUPED_FIELDS, *GRADIENT_JOB[-2:])
"""Words of a job of fits with groups (see `grouped` and `grouped_fitting`). ``columns``, ``target`` and ``weights`` are
those of all rows, in sections that are padded each.

================ ==========================================================================================
``grouped``      address of the function that measures an individual
``outputs``      `OUTPUT` words of each output
``sections``     `SECTION` words of each section, those of an output together
``own``          unknowns of each group
``shared``       unknowns of all groups: room for them in each individual
``unknowns``     of each individual: those of each group, then the shared ones; at the start and at the end
``fixed``        a byte for each unknown, not 0 if it keeps its value
``lows``         bounds: ``own + shared`` numbers of each individual
``highs``
``prior``        ``own`` precisions and ``own`` centers of each individual; or 0
``errors``       sum of errors and penalties of each individual; at the start inf, or a limit: who does not come below
                 it keeps it
``group_errors`` results, if not 0: errors of each group of each individual are added to these
``blocks``       results of the elimination of groups, if not 0: the blocks of each individual
================ ==========================================================================================

``state`` to ``step`` are memory of one thread.
"""

OUTPUT = (
    "codes", "values", "sizes", "width", "constants", "starts", "nodes", "slots", "first_section", "last_section"
)  # fmt: skip
"""Words of an output: its formulas; the greatest number of constants that are fitted; for each constant of all formulas
its position on the tape and its unknown, or -1, and where those of an individual start."""

SECTION = ("block", "begin", "end")
"""Words of a section: its group, its first row, and the row after its last."""
