import pytest

from shine.gp.settings import EvolutionSettings

SHARES = (
    "crossover",
    "subtree_mutation",
    "hoist_mutation",
    "point_mutation",
    "constant_mutation",
    "coefficient_mutation",
)


def test_a_run_without_variation_is_rejected():
    nothing = dict.fromkeys(SHARES, 0.0)
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**nothing)
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(**{**nothing, "coefficient_mutation": 1.0}, constant_steps=0)


@pytest.mark.parametrize("constants", [(1.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_range_of_constants_must_ascend_and_be_finite(constants):
    with pytest.raises(ValueError, match="finite range from low to high"):
        EvolutionSettings(constants=constants)
