import numpy as np
import pytest
from unit.search.evolution.oracles import primitive_set, tree_of

from shine.compiler import tapes
from shine.compiler.tapes import Subtrees, depths
from shine.lang.growth import Terminals, grow_tapes, grown_tapes
from shine.search.evolution.operators.creation import native_growth, ptc2


def random_population(seed=0, width=40):
    return ptc2(200, primitive_set(), width, 9, Terminals(), np.random.default_rng(seed))


def test_sizes_depths_and_levels_agree_with_a_walk_of_the_tree():
    population = random_population()
    subtrees = Subtrees.of(population)
    for index in range(len(population)):
        for node, level in tree_of(population, index).with_levels():
            found = [cells[index, node.position] for cells in (subtrees.sizes, subtrees.depths, subtrees.levels)]
            assert found == [node.size, node.depth, level]


def test_depth_of_an_individual_is_the_depth_at_its_root():
    population = random_population()
    assert depths(population).tolist() == [tree_of(population, i).depth for i in range(len(population))]


def test_an_empty_population_has_empty_arrays():
    empty = random_population().take(np.zeros(0, int))
    assert Subtrees.of(empty).sizes.shape == (0, 40)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_native_kernels_do_what_they_do_in_python():
    population = random_population(1, 25)
    n, width, arities = len(population), population.width, population.primitives.arities
    rng = np.random.default_rng(2)
    mask, losses = rng.random(n) < 0.5, rng.choice([1.0, 2.0, np.inf], n)
    names = population.primitives.function_codes
    codes, sizes = population.codes, population.sizes
    keys = rng.integers(1, 1 << 62, 90).astype(np.uint64)
    known = np.append(np.uint64(0), keys)
    for kernel, given, room in (
        (tapes._sweep, (n, width, codes, sizes, arities), [np.empty((n, width), np.int32) for _ in range(3)]),
        (tapes.count_constants, (n, width, codes, sizes), [np.empty(n, np.int64)]),
        (tapes.compare_rows, (n, width, population.values, np.zeros((n, width))), [np.empty(n, np.bool_)]),
        (tapes.count_powers, (n, width, names["neg"], names["add"], names["neg"], codes, sizes, arities),
         [np.empty(n, np.int64)]),
        (tapes.find_coefficients, (n, width, names["mul"], names["add"], codes, sizes, arities),
         [np.empty(n, np.bool_)]),
        (tapes.weigh_forms, (n, 4, rng.choice([1.0, 2.0], 4 * n), rng.choice([-1.0, 0.0, 2.0], 4 * n),
                             9 * rng.random(n), mask, np.array([0.7, 1.2, 0.9, 0.5])), [np.empty(4 * n, np.int64)]),
        (tapes.find_largest, (n, 9, 30, losses, sizes, np.arange(0, 45, 5)), [np.empty(31), np.empty(9)]),
        (tapes.order_survivors, (n, 30, rng.choice([3, 5, 2047 << 32], n), sizes, np.argsort(losses)),
         [np.empty(31, np.int64), np.empty(n, np.int64), np.empty(n + 2, np.int64), np.empty(n, np.int64)]),
        (tapes.choose_scales, (n, 4, rng.choice([0.0, 1e-300, 1e-3, -1e200, np.inf, np.nan], (n, 4)),
                               np.array([1e-100, 1e250, 1e-50, 1e150, 4.0])), [np.empty((3, n)), np.empty(n)]),
        (tapes.fit_lines, (n, rng.random((3, n)), rng.choice([1.0, 2.0**600, 2.0**-600], n),
                           np.array([2.0, 0.5, 1.0, 1e-9, 1.5, 0.7, 0.9, 1e-300])),
         [*np.empty((3, 4, n)), np.empty((4, n), np.bool_)]),
        (tapes.keep_finite, (n,), list(rng.choice([1.0, 2.0, np.inf, np.nan], (3, n)))),
        (tapes.insert_keys, (90, 128, 1, keys), [np.zeros(128, np.int32)]),
        (tapes.find_distinct, (90, 128, keys // np.uint64(1 << 57)),
         [np.zeros(128, np.int32), *np.zeros((2, 90), np.int64), np.zeros(1, np.int64)]),
    ):  # fmt: skip
        again = [array.copy() for array in room]
        kernel(*given, *room)
        with np.errstate(all="ignore"):
            kernel.__wrapped__(*(np.ravel(a) if np.ndim(a) else a for a in given), *(a.reshape(-1) for a in again))
        for own, oracle in zip(room, again, strict=True):
            np.testing.assert_array_equal(own, oracle)
    table, found = np.zeros(128, np.int32), np.zeros(90, np.int32)
    tapes.insert_keys(90, 128, 1, keys, table)
    tapes.find_keys(90, 128, keys, table, known, found)
    assert found.tolist() == list(range(1, 91))


def test_native_growth_does_what_it_does_in_python():
    sizes = np.arange(60) % 20 + 1
    limits = sizes, sizes // 3 + 1
    found = [
        grown_tapes(primitive_set(), 20, *limits, Terminals(), np.random.default_rng(4), grow)
        for grow in (grow_tapes, native_growth)
    ]
    for own, oracle in zip(*found, strict=True):
        assert np.array_equal(own, oracle)


def test_hashes_are_sums_of_splitmix64():
    population = random_population(3, 12)
    for whole in (False, True):
        found = np.empty(len(population), np.uint64)
        bits = population.values.view(np.uint64)
        tapes.hash_tapes(len(population), 12, whole, population.codes, bits, population.sizes, found)
        for i, size in enumerate(population.sizes.tolist()):
            numbers = []
            for place, (code, own) in enumerate(
                zip(population.codes[i, :size].tolist(), bits[i].tolist(), strict=False)
            ):
                number = splitmix64((place << 16 if whole else 0) + code + 1)
                numbers.append(splitmix64(number ^ own) if whole and code == 0 else number)
            assert int(found[i]) == sum(numbers) % 2**64


def splitmix64(x):
    x = x * 0x9E3779B97F4A7C15 % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def test_a_kernel_does_not_write_to_arrays_of_another_type():
    with pytest.raises(TypeError, match="writes to an array of int32 in one piece"):
        tapes.insert_keys(1, 1, 1, np.ones(1, np.uint64), np.zeros(1, np.int64))
