import pytest

from shine.gp.settings import EvolutionSettings


def test_a_run_without_variation_is_rejected():
    with pytest.raises(ValueError, match="every share of variation is 0"):
        EvolutionSettings(crossover=0, subtree_mutation=0, hoist_mutation=0, point_mutation=0, constant_mutation=0)


@pytest.mark.parametrize("constants", [(1.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_range_of_constants_must_ascend_and_be_finite(constants):
    with pytest.raises(ValueError, match="finite range from low to high"):
        EvolutionSettings(constants=constants)
