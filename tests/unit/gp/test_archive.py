import numpy as np
from unit.gp.oracles import population_of, primitive_set, scores_of

from shine.gp.archive import Archive

PRIMITIVES = primitive_set()
TEXTS = ["x", "y neg", "x y add", "x y mul", "x neg neg neg"]


def archive_of(*losses, texts=TEXTS):
    population = population_of(texts, PRIMITIVES, 5)
    return Archive.empty(PRIMITIVES, 5).updated(population, scores_of(list(losses)))


def test_the_best_of_each_size_is_kept():
    archive = archive_of(5.0, 4.0, 3.0, 2.0, 1.0)
    assert archive.scores.losses.tolist() == [5.0, 4.0, 2.0, 1.0, np.inf]


def test_codes_and_scaling_come_with_the_loss():
    archive = archive_of(5.0, 4.0, 3.0, 2.0, 1.0)
    expected = population_of(["x y mul"], PRIMITIVES, 5)
    assert archive.individuals.codes[2].tolist() == expected.codes[0].tolist()
    assert (archive.scores.slopes[2], archive.scores.intercepts[2]) == (13.0, 23.0)


def test_the_first_seen_of_equal_losses_stays():
    assert archive_of(5.0, 4.0, 3.0, 3.0, 1.0).scores.slopes[2] == 12.0


def test_a_worse_individual_changes_nothing():
    archive = archive_of(1.0, 1.0, 1.0, 1.0, 1.0)
    assert archive.updated(population_of(["y"], PRIMITIVES, 5), scores_of([2.0])) is archive


def test_an_update_leaves_the_former_archive_alone():
    archive = archive_of(5.0, 4.0, 3.0, 2.0, 1.0)
    archive.updated(population_of(["y"], PRIMITIVES, 5), scores_of([0.5]))
    assert archive.scores.losses[0] == 5.0


def test_the_front_ascends_in_size_and_descends_in_loss():
    front, scores = archive_of(5.0, 6.0, 5.0, 3.0, 3.0).front()
    assert front.sizes.tolist() == [1, 3]
    assert scores.losses.tolist() == [5.0, 3.0]


def test_the_front_ends_at_the_first_loss_that_is_enough():
    front, _ = archive_of(5.0, 1e-14, 1e-15, 1e-16, 0.0).front(enough=1e-12)
    assert front.sizes.tolist() == [1, 2]


def test_the_front_of_infinite_losses_is_empty():
    front, scores = archive_of(*[np.inf] * 5).front()
    assert len(front) == len(scores.losses) == 0


def test_the_best_loss_of_an_empty_archive_is_infinite():
    assert Archive.empty(PRIMITIVES, 3).best_loss == np.inf


def test_without_some_rows_the_front_has_the_individuals_they_hid():
    # Sizes 1, 2, 3, 3 and 4: rows 0, 1, 2 and 3.
    archive = archive_of(5.0, 1.0, 4.0, 6.0, 2.0)
    assert archive.front_rows().tolist() == [0, 1]
    assert archive.front_rows(without=[1]).tolist() == [0, 2, 3]
    assert archive.front_rows(without=[1, 2]).tolist() == [0, 3]
    assert archive.front_rows(enough=4.5, without=[1]).tolist() == [0, 2]
