"""Redundant numbers of a formula: the others make up for any change of them.

In ``a/(b + c*x)`` one of the three constants can be any number. Where that is a simple number, 1 say, people mean the
others: it belongs to the structure of the formula.
"""

from __future__ import annotations

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.constants import Form, is_simple
from shine.evaluate.inference.determined import NOT_DETERMINED
from shine.evaluate.inference.likelihood import Likelihood, gram
from shine.evaluate.inference.row_errors import row_error
from shine.lang.numerals import cost_as_written

ROWS = 2000
"""Number of rows for comparisons of changes."""


def redundant(form: Form, rows: Dataset) -> frozenset[int]:
    """Places of simple numbers that the other constants make redundant, the simplest first.

    Parameters
    ----------
    form : Form
        All its numbers are constants.
    rows : Dataset
    """
    simple = [at >= 0 and is_simple(value) for at, value in zip(form.places, form.values.tolist(), strict=True)]
    if not any(simple):
        return frozenset()
    sample = rows.sampled(ROWS, np.random.default_rng(0))
    count = len(form.names)
    products = np.zeros((count, count))
    with np.errstate(all="ignore"):
        for block in Likelihood(form, sample, row_error("mse")).blocks(form.values):
            partials = np.where(np.isfinite(block.partials).all(axis=0), block.partials, 0.0)
            products += gram(partials, block.counts)
        scale = np.sqrt(np.diagonal(products))
        scale = np.where(scale > 0, scale, 1.0)
        products = products / scale / scale[:, None]
    if not np.isfinite(products).all():
        return frozenset()
    costs = [cost_as_written(value) if own else np.inf for own, value in zip(simple, form.values.tolist(), strict=True)]
    kept: list[int] = []
    found = set()
    # The simplest come last, when the others may already span their changes; first of all those that are not written.
    for index in sorted(range(count), key=lambda at: (form.places[at] in form.implied, -costs[at])):
        own = products[np.ix_(kept, kept)]
        others = products[kept, index]
        left = products[index, index] - float(others @ np.linalg.lstsq(own, others, rcond=None)[0] if kept else 0.0)
        if left > count * NOT_DETERMINED:
            kept.append(index)
        elif simple[index]:
            found.add(form.places[index])
    return frozenset(found)
