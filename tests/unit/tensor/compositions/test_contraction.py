"""`einsum` against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions.contraction import einsum

SIZES = {"i": 2, "j": 3, "k": 4, "l": 5, "b": 6, "h": 1}

EQUATIONS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ki", "i,i->", "i,j->ij", "ij->ji", "ij->", "ij->j", "ii->i", "ii", "ii,i->i",
    "bij,bjk->bik", "bhik,bhjk->bhij", "bij,bkj->ikb", "i,ij,j->", "ij,jk,kl->il", "ij,ij->ij", "ij,ij->i",
    "iji->j", "bii->b", "ij,kl->ljki", "i,i,i->i", "ijk->kji", "ij,jk->", "b,bij,bij->b", "...ij,...jk->...ik",
    "...i,i->...", "...ij->...ji", "i...->...i", "...,...->...", "ij,k->i", "iii->i", "ijij->ij", "kj , ji -> ik",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_sums_of_products(equation):
    rng = np.random.default_rng(len(equation))
    shapes = [
        tuple(SIZES[c] for c in term.replace("...", "bl").strip())
        for term in equation.split("->")[0].split(",")
    ]  # fmt: skip
    operands = [rng.normal(size=shape) for shape in shapes]
    value = evaluated(lambda b, *operands: einsum(b, equation, *operands), *operands)
    expected = np.einsum(equation, *operands)
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13)


def test_axes_of_size_1_and_0_and_other_ranks():
    a, c = np.ones((4, 1, 2, 3)), np.arange(30.0).reshape(5, 3, 2)
    value = evaluated(lambda b, a, c: einsum(b, "...ij,...jk->...ik", a, c), a, c)
    np.testing.assert_allclose(value, np.einsum("...ij,...jk->...ik", a, c))
    value = evaluated(lambda b, a, c: einsum(b, "ij,jk->ik", a, c), np.ones((2, 1)), np.ones((3, 4)))
    np.testing.assert_allclose(value, np.full((2, 4), 3))
    assert evaluated(lambda b, a, c: einsum(b, "ij,jk->ik", a, c), np.ones((2, 0)), np.ones((0, 3))).tolist() == [
        [0, 0, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk->ik,", "must be letters"),
        ("ij->ij", "1 operands, and 2 are given"),
        ("ijk,jk->ik", "'ijk' does not fit <2 x 3 x f64>"),
        ("ij,ij->ij", "the axes 'i' have sizes 2 and 3"),
        ("ij,jk->iz", r"the result has \['z'\]"),
        ("ij,jk->ii", "the result has a letter twice"),
        ("i1,1k->ik", "must be letters"),
        ("i...j...,jk->ik", "must be letters"),
        ("ij,ji->", "the axes 'i' have sizes 2 and 4"),
    ],
)
def test_what_does_not_fit_is_rejected(equation, message):
    with pytest.raises(FormError, match=message):
        evaluated(lambda b, x, y: einsum(b, equation, x, y), np.zeros((2, 3)), np.zeros((3, 4)))
