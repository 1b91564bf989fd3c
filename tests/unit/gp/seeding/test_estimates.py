"""The chosen estimates of a search are those with the least errors, and the best small formulas."""

from shine.gp.seeding.estimates import MOST_CHOSEN, Estimate, most_promising


def estimate(unexplained, size):
    return Estimate(unexplained, size, lambda: None)


def test_the_least_error_comes_first():
    chosen = most_promising([estimate(0.5, 3), estimate(1e-6, 3), estimate(0.1, 3)])
    assert [e.unexplained for e in chosen] == [1e-6, 0.1, 0.5]


def test_of_equal_errors_the_smaller_formula_comes_first():
    assert [e.size for e in most_promising([estimate(0.1, 9), estimate(0.1, 3)])] == [3, 9]


def test_small_formulas_get_places_beside_better_ones():
    large = [estimate(1e-9 * (1 + i), 200) for i in range(30)]
    small = estimate(1e-7, 1)
    chosen = most_promising([*large, small])
    assert small in chosen
    assert len(chosen) <= MOST_CHOSEN


def test_estimates_that_explain_nothing_are_never_chosen():
    assert most_promising([estimate(0.9995, 1), estimate(1.0, 1)]) == []
    assert most_promising([]) == []
