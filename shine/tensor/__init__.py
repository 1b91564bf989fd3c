"""Tensor graphs: a typed form, its frontends, passes and gradients, and native code for it."""

import lazy_loader

# The stub beside this file says where each name is; it is imported at its first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
