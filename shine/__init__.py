"""Shine: symbolic regression, with formulas compiled to native code."""

import lazy_loader

__version__ = "0.1.0"

# The stub beside this file says where each name is. Names are imported at their first use: NumPy and LLVM are slow to
# import, and not every use needs them.
__getattr__, _dir, _names = lazy_loader.attach_stub(__name__, __file__)

_PACKAGES = {
    "aot", "arrow", "callbacks", "data", "deap", "estimators", "export", "losses", "report", "runs", "tensor",
    "trees",
}  # fmt: skip
"""Packages that users reach as attributes; `from shine import *` leaves them out, for some need extras."""

__all__ = [name for name in _names if name not in _PACKAGES]


def __dir__() -> list[str]:
    return sorted([*_names, "__version__"])
