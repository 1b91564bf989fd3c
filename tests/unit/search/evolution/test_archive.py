import numpy as np
from unit.search.evolution.oracles import population_of, primitive_set, scores_without_lines

from shine.evaluate.scores import Scores
from shine.search.evolution.archive import Archive

PRIMITIVES = primitive_set()
TEXTS = ["x", "y neg", "x y add", "x y mul", "x neg neg neg"]


def archive_of(*losses, texts=TEXTS):
    population = population_of(texts, PRIMITIVES, 5)
    return Archive.empty(PRIMITIVES, 5).updated(population, scores_without_lines(losses))


def test_the_best_of_each_size_is_kept():
    archive = archive_of(5.0, 4.0, 3.0, 2.0, 1.0)
    assert archive.best_losses.tolist() == [5.0, 4.0, 2.0, 1.0] + [np.inf] * 5


def test_every_form_of_an_individual_has_the_complexity_of_its_line():
    simpler = Scores(*(np.array(each)[:, None] for each in ([5.0, 4.0, 3.0], [1.0, 1.0, 2.0], [0.0, 7.0, 0.0])))
    scores = Scores(np.array([1.0]), np.array([2.5]), np.array([-6.0]), simpler)
    archive = Archive.empty(PRIMITIVES, 5).updated(population_of(["x y mul"], PRIMITIVES, 5), scores)
    assert archive.best_losses.tolist() == [np.inf, np.inf, 5.0, np.inf, 3.0, np.inf, 1.0, np.inf, np.inf]
    assert archive.scores.slopes[[2, 4, 6]].tolist() == [1.0, 2.0, 2.5]
    assert archive.scores.intercepts[[2, 4, 6]].tolist() == [0.0, 0.0, -6.0]
    assert archive.individuals.sizes[[2, 4, 6]].tolist() == [3, 3, 3]


def test_an_update_leaves_the_former_archive_alone():
    archive = archive_of(5.0, 4.0, 3.0, 2.0, 1.0)
    archive.updated(population_of(["y"], PRIMITIVES, 5), scores_without_lines([0.5]))
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


def ranked(archive, complexity):
    """Losses of the formulas of one complexity, the best first."""
    return archive.scores.losses[complexity - 1 :: archive.levels].tolist()


def test_the_second_and_third_best_of_a_complexity_are_kept():
    archive = archive_of(5.0, 3.0, 4.0, 2.0, texts=["x x add", "x y add", "y y mul", "y y add"])
    assert ranked(archive, 3) == [2.0, 3.0, 4.0]
    archive = archive.updated(population_of(["x x mul"], PRIMITIVES, 5), scores_without_lines([2.5]))
    assert ranked(archive, 3) == [2.0, 2.5, 3.0]


def test_of_formulas_of_the_same_symbols_one_is_kept():
    archive = archive_of(2.0, 1.5, 3.0, 2.5, texts=["x y add", "y x add", "x 2.0 mul", "x 3.0 mul"])
    assert ranked(archive, 3) == [1.5, 2.5, np.inf]
