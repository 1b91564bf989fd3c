import numpy as np

from shine.gp.selection import ranking, survivors, tournaments


def sizes_of(*sizes):
    return np.array(sizes, np.int64)


def test_the_smallest_loss_ranks_first():
    assert ranking(np.array([3.0, 1.0, 2.0]), sizes_of(1, 9, 5)).tolist() == [1, 2, 0]


def test_infinite_losses_rank_last():
    assert ranking(np.array([np.inf, 0.0, 1e308]), sizes_of(1, 2, 3)).tolist() == [1, 2, 0]


def test_ties_go_to_the_smaller_individual():
    assert ranking(np.array([1.0, 1.0, 1.0]), sizes_of(5, 3, 4)).tolist() == [1, 2, 0]


def test_losses_within_float_noise_tie():
    assert ranking(np.array([1.5, 1.5 * (1 + 1e-14)]), sizes_of(5, 3)).tolist() == [1, 0]


def test_losses_beyond_float_noise_do_not_tie():
    assert ranking(np.array([1.5, 1.5 * (1 - 1e-6)]), sizes_of(3, 5)).tolist() == [1, 0]


def test_parsimony_charges_for_size():
    losses, sizes = np.array([1.0, 1.1]), sizes_of(20, 2)
    assert ranking(losses, sizes).tolist() == [0, 1]
    assert ranking(losses, sizes, parsimony=0.05).tolist() == [1, 0]


def test_survivors_of_one_size_are_the_fittest():
    assert survivors(np.array([4.0, 1.0, 3.0, 2.0]), sizes_of(1, 1, 1, 1), 2).tolist() == [1, 3]


def test_the_best_of_each_size_survives():
    losses = np.array([1.0, 2.0, 3.0, 9.0])
    assert sorted(survivors(losses, sizes_of(8, 8, 8, 1), 2).tolist()) == [0, 3]


def test_of_a_repeated_loss_the_smallest_survives():
    assert sorted(survivors(np.array([1.0, 1.0, 9.0]), sizes_of(5, 4, 1), 2).tolist()) == [1, 2]


def test_repeated_and_infinite_losses_fill_what_is_left():
    losses = np.array([1.0, np.inf, 1.0, 9.0])
    assert survivors(losses, sizes_of(5, 1, 4, 4), 4).tolist() == [2, 3, 0, 1]


def test_a_tournament_of_one_draws_evenly():
    winners = tournaments(np.arange(4), 8000, 1, np.random.default_rng(0))
    assert np.bincount(winners).min() > 1800


def test_a_tournament_of_two_prefers_the_fittest_as_theory_says():
    # The best of 4 wins unless both competitors are others: 1 - (3/4)^2.
    winners = tournaments(np.array([2, 0, 1, 3]), 20000, 2, np.random.default_rng(0))
    assert abs(np.mean(winners == 2) - 7 / 16) < 0.02
