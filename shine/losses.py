"""Public path of `shine.evaluate.losses`."""

from shine.evaluate.losses import *
from shine.evaluate.losses import __all__, __dir__, __getattr__
