"""Data sets, from files, folders and recipes."""

from shine.data.opening import Opened, open_dataset

__all__ = ["Opened", "open_dataset"]


def __dir__() -> list[str]:
    return sorted(__all__)
