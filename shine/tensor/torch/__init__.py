"""Programs of `torch.export` -> modules, and programs of elementwise ones.

`reader` walks the program's graph after torch has decomposed it into core operations, and applies the rule of each
(`rules`) to a `call`.
"""

from shine.tensor.torch.reader import from_exported, program_from_exported

__all__ = ["from_exported", "program_from_exported"]
