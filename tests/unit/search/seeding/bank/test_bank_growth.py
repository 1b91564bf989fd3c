"""A bank grows by all expressions of a cost, and by larger ones of certain kinds."""

from itertools import product

import numpy as np
from unit.search.seeding.banks import bank

from shine.search.seeding.bank.bank_growth import CONSTANTS


def test_every_expression_of_three_nodes_is_there():
    members, columns = bank(("add", "sub", "mul", "div", "sqrt"))
    leaves = [*columns, *(np.full(40, value) for value in CONSTANTS)]
    operations = [np.add, np.subtract, np.multiply, np.divide]
    for operation, left, right in product(operations, leaves, leaves):
        expected = operation(left, right)
        if np.ptp(expected) > 0:
            distances = np.abs(members.values[: members.count] - expected).max(axis=1)
            assert distances.min() < 1e-12


def test_members_are_finite_and_vary():
    members, _ = bank(("sub", "div", "log", "exp", "sqrt"), rounds=4)
    values = members.values[: members.count]
    assert np.isfinite(values).all()
    constant = np.ptp(values, axis=1) == 0
    assert (members.codes[: members.count][constant] == 0).all()


def test_a_bank_with_less_room_than_features_is_grown():
    members, _ = bank(("add", "mul", "sin"), features=15, capacity=10)
    assert members.count == 10
