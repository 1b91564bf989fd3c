"""Data sets, from files, folders and recipes."""

from shine.data.opened import Opened, open_dataset
from shine.moved import names_of

__all__ = ["Opened", "open_dataset"]

__getattr__ = names_of(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
