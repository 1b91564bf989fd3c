"""The run directory: the configuration, the log, the checkpoints and the result of a run, on disk; past runs."""

import lazy_loader

# The stub beside this file lists the names. They are imported on demand: a look into the index needs few modules.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
