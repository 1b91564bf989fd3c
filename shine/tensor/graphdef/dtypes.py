"""Element types of TensorFlow's tensors that modules have, too."""

from __future__ import annotations

from shine.frontends.graphdef.constants import DTYPES

ELEMENTS: dict[int, str] = {**DTYPES, 4: "uint8", 5: "int16", 6: "int8"}
"""NumPy's names by TensorFlow's numbers."""

RESOURCE = 20
"""Number of the type of variables themselves."""

VARIANT = 21
"""Number of the type of lists of tensors."""
