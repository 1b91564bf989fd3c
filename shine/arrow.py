"""Public path of `shine.frames.arrow`."""

from shine.frames.arrow import *
from shine.frames.arrow import __all__, __dir__
