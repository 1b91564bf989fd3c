"""The chosen estimates of a search are those with the least errors, and the best small formulas."""

from shine.search.seeding.screen.estimates import MOST_CHOSEN, Estimate, most_promising, node_price

MANY, FEW = 1000, 20
"""Rows that estimates were made on."""


def estimate(unexplained, size):
    return Estimate(unexplained, size, lambda: None)


def test_the_least_error_comes_first():
    chosen = most_promising([estimate(0.5, 3), estimate(1e-6, 3), estimate(0.1, 3)], MANY)
    assert [e.unexplained for e in chosen] == [1e-6, 0.1, 0.5]


def test_of_equal_errors_the_smaller_formula_comes_first():
    assert [e.size for e in most_promising([estimate(0.1, 9), estimate(0.1, 3)], MANY)] == [3, 9]


def test_small_formulas_get_places_beside_better_ones():
    large = [estimate(1e-9 * (1 + i), 200) for i in range(30)]
    small = estimate(1e-7, 1)
    chosen = most_promising([*large, small], MANY)
    assert small in chosen
    assert len(chosen) <= MOST_CHOSEN


def test_estimates_that_explain_nothing_are_never_chosen():
    assert most_promising([estimate(0.9995, 1), estimate(1.0, 1)], MANY) == []
    assert most_promising([], MANY) == []


def test_from_few_rows_the_best_of_each_small_size_are_chosen():
    better = [estimate(1e-9 * (1 + i), 12) for i in range(60)]
    others = [estimate(0.01 * (1 + size), size) for size in (3, 5, 8)]
    assert set(others) <= set(most_promising([*better, *others], FEW))
    assert not set(others) <= set(most_promising([*better, *others], MANY))


def test_a_node_costs_more_if_rows_are_few():
    assert node_price(0.02, MANY) == 0.02
    assert node_price(0.02, 10) > node_price(0.02, FEW) > 0.1
