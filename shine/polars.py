"""Public path of `shine.frames.polars`."""

from shine.frames.polars import *
