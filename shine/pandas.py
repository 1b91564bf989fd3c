"""Public path of `shine.frames.pandas`."""

from shine.frames.pandas import *
