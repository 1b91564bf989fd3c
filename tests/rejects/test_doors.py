"""Random input at every door is read, or refused with one clear error of Shine."""

from __future__ import annotations

import random

import pytest
from helpers.doors import DOORS


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_random_input_is_read_or_refused(door, tmp_path):
    DOORS[door](random.Random(door), 150, tmp_path)
