"""Answers are short, and texts of files stay data."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from shine.faces.mcp.answers import LONGEST_ANSWER, brief, plain


def test_numbers_have_six_digits_and_all_of_them_are_json():
    found = plain({"a": np.float64(math.pi), "b": [math.inf, math.nan], "c": np.arange(2), "d": True, "e": None})
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "a": 3.14159, "b": ["inf", "nan"], "c": [0, 1], "d": True, "e": None,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [{"a": ["x" * 1000] * 1000}, {"a": [[["y" * 50] * 60] * 60] * 60}, {"a": "z" * 10**6}]
)
def test_an_answer_is_short_whatever_was_found(answer):
    assert len(json.dumps(brief(answer))) <= LONGEST_ANSWER


def test_the_process_of_a_call_loads_only_what_the_call_needs():
    program = (
        "import sys; from shine.faces.mcp.worker import function_of; function_of('describe_table');"
        "print(sorted({'llvmlite', 'scipy', 'shine.search.run'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
