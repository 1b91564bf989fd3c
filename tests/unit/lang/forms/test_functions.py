"""Functions: assignments, `if` and `return` become single assignments and a result, with Python's meaning."""

import numpy as np
import pytest

from shine.lang.interpret import evaluate
from shine.lang.parse import parse

SAMPLES = np.arange(-4.0, 5.0)


def early_return(a, b):
    if a < 0:
        return b
    c = a * b
    return c + 1


def both_branches_assign(a, b):
    if a > b:
        d = a - b
        d = d + b
    else:
        d = b - a
    return d * d


def nested(a, b):
    r = 0
    if a > 0:
        r = a
        if b > 0:
            r += b
            if a > b:
                return -r
        elif b < -2:
            return 7
        r = r * 2
    elif a == 0:
        r = 5
    else:
        if b == 0:
            return a
        r -= 1
    return r + b


def division_is_guarded(a, b):
    if b == 0:
        return 0
    q = a / b
    if q > 2:
        q = 1 / (q - 5) if q != 5 else 9
    return q


def logic(a, b):
    if not a or (b > 1 and a != b):
        return a or b
    return a and b


@pytest.mark.parametrize("function", [early_return, both_branches_assign, nested, division_is_guarded, logic])
def test_a_function_has_the_meaning_that_python_gives_it(function):
    a, b = (grid.ravel() for grid in np.meshgrid(SAMPLES, SAMPLES))
    expected = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert evaluate(parse(function), [a, b]).tolist() == expected


def test_integer_division_by_zero_on_a_path_not_taken_is_no_error():
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(-3, 4), np.arange(-3, 4)))
    assert evaluate(parse(division_is_guarded), [a, b], "int64")[b == 0].tolist() == [0] * 7


def test_a_chain_of_elifs_is_read():
    branches = "".join(f"    elif a == {i}:\n        return {i * i}\n" for i in range(1, 90))
    tree = parse(f"def f(a):\n    if a == 0:\n        return 0\n{branches}    else:\n        return -1")
    assert evaluate(tree, [np.array([0.0, 7.0, 89.0, 90.0])]).tolist() == [0, 49, 7921, -1]
