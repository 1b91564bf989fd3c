import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import population_of, primitive_set

from shine.lang.growth import Terminals
from shine.search.evolution.memory import Memory, distinct, hashes
from shine.search.evolution.operators.creation import ptc2

PRIMITIVES = primitive_set()


def hash_of(text, width=8):
    return int(hashes(population_of([text], PRIMITIVES, width))[0])


def keys(*numbers):
    return np.array(numbers, np.uint64)


def test_the_last_bit_of_a_constant_changes_the_hash():
    assert hash_of("1.0 neg") != hash_of("1.0000000000000002 neg")


def test_padding_is_not_a_constant_zero():
    population = population_of(["0", "0 0"], PRIMITIVES, 4)
    first, second = hashes(population).tolist()
    assert first != second


@pytest.mark.slow
def test_a_hundred_thousand_different_tapes_have_different_hashes():
    population = ptc2(100_000, PRIMITIVES, 20, 10, Terminals(), np.random.default_rng(0))
    tapes = np.hstack([population.codes, population.values.view(np.int64), population.sizes[:, None]])
    assert len(np.unique(hashes(population))) == len(np.unique(tapes, axis=0))


def test_memory_agrees_with_a_dictionary_while_it_grows():
    rng, memory, dictionary = np.random.default_rng(1), Memory(), {}
    for _ in range(40):
        drawn = np.unique(rng.integers(1, 30_000, 1000).astype(np.uint64))
        known, found = memory.recall(drawn)
        assert known.tolist() == [key in dictionary for key in drawn.tolist()]
        assert found[known].tolist() == [dictionary[key] for key in drawn[known].tolist()]
        new = drawn[~known]
        losses = rng.random(len(new))
        memory.store(new, losses)
        dictionary.update(zip(new.tolist(), losses.tolist(), strict=True))


def test_a_full_memory_forgets_only_the_oldest():
    memory = Memory(capacity=100)
    everything = np.arange(1, 1001, dtype=np.uint64)
    for start in range(0, 1000, 30):
        batch = everything[start : start + 30]
        memory.store(batch, np.ones(len(batch)))
    known, _ = memory.recall(everything)
    assert known[-100:].all()
    assert not known[:-200].any()
    assert len(memory) <= 200


def test_a_memory_with_the_contents_of_another_behaves_like_it():
    memory, everything = Memory(capacity=100), np.arange(1, 1001, dtype=np.uint64)
    for start in range(0, 250, 30):
        memory.store(everything[start : start + 30], np.full(30, float(start)))
    copy = Memory(capacity=100, known=memory.known)
    for start in (300, 330, 360):
        for each in (memory, copy):
            each.store(everything[start : start + 30], np.full(30, float(start)))
        (known, losses), (other, others) = memory.recall(everything), copy.recall(everything)
        assert known.tolist() == other.tolist()
        assert losses[known].tolist() == others[known].tolist()


@given(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 9), max_size=60))
def test_distinct_keys_come_in_the_order_of_their_arrival(numbers):
    keys = np.array(numbers, np.uint64)
    first, places = distinct(keys)
    assert keys[first].tolist() == list(dict.fromkeys(numbers))
    assert keys[first][places].tolist() == numbers
