import pytest
from unit.search.evolution.oracles import NO_VARIATION

from shine.search.evolution.settings import EvolutionSettings


def test_a_run_without_variation_is_rejected():
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**NO_VARIATION)
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**{**NO_VARIATION, "coefficient_mutation": 1.0}, constant_steps=0)


def test_shares_leave_out_operators_that_cannot_be_used():
    usable = EvolutionSettings().shares(with_parts=True)
    assert len(usable) == 7 and all(usable.values())
    without = EvolutionSettings(constant_steps=0).shares(with_parts=False)
    assert {name for name, share in without.items() if not share} == {"part_mutation", "coefficient_mutation"}


@pytest.mark.parametrize("constants", [(1.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_range_of_constants_must_ascend_and_be_finite(constants):
    with pytest.raises(ValueError, match="finite range from low to high"):
        EvolutionSettings(constants=constants)
