"""Element types of TensorFlow's tensors that modules have, too."""

from __future__ import annotations

from shine.formats.read.graphdef.constants import DTYPES, HALF_TYPES

ELEMENTS: dict[int, str] = {**DTYPES, 4: "uint8", 5: "int16", 6: "int8", **dict.fromkeys(HALF_TYPES, "float32")}
"""NumPy's names by TensorFlow's numbers; half precision is read as float32."""

RESOURCE = 20
"""Number of the type of variables themselves."""

VARIANT = 21
"""Number of the type of lists of tensors."""
