import pytest
from unit.gp.oracles import NO_VARIATION

from shine.gp.settings import EvolutionSettings


def test_a_run_without_variation_is_rejected():
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**NO_VARIATION)
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**{**NO_VARIATION, "coefficient_mutation": 1.0}, constant_steps=0)


@pytest.mark.parametrize("constants", [(1.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_range_of_constants_must_ascend_and_be_finite(constants):
    with pytest.raises(ValueError, match="finite range from low to high"):
        EvolutionSettings(constants=constants)
