"""Banks for tests."""

import numpy as np

from shine.lang.forms.primitives import BASIC, PrimitiveSet
from shine.search.seeding.bank.bank_growth import BankGrowth
from shine.search.seeding.bank.expression_bank import ExpressionBank


def bank(functions, features=2, capacity=4000, max_size=30, rounds=2, generator=0):
    """A bank that has grown for some rounds, and the columns it is made of."""
    rng = np.random.default_rng(generator)
    columns = rng.uniform(0.5, 2, (features, 40))
    primitives = PrimitiveSet(tuple(BASIC[name] for name in functions), tuple(f"x{i}" for i in range(features)))
    members = ExpressionBank(40, primitives, capacity, max_size, rng)
    growth = BankGrowth(members, columns, [((i + 1, 0.0),) for i in range(features)])
    for _, _ in zip(range(rounds), growth.rounds(), strict=False):
        pass
    return members, columns
