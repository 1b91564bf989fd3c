"""A module of torch as a program of `torch.export`."""

from __future__ import annotations

import warnings
from typing import Any

from shine.base.errors import GraphImportError


def exported(module: Any, features: int, batch: int) -> Any:
    """The program of a module that takes one tensor of shape (batch, features).

    Parameters
    ----------
    module : torch.nn.Module
    features, batch : int

    Raises
    ------
    GraphImportError
        If torch cannot export it.
    """
    import torch

    first = next(module.parameters(), None)
    example = torch.zeros(batch, features) if first is None else first.detach().new_zeros(batch, features)
    training = [each for each in module.modules() if each.training]
    module.eval()
    try:
        with warnings.catch_warnings():
            # Torch warns of its own code.
            warnings.simplefilter("ignore")
            return torch.export.export(module, (example,))
    except Exception as error:
        # Whatever the module raises for rows of so many features.
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise GraphImportError(
            f"torch cannot export the module for a tensor of {batch} rows and {features} features: {reason}; "
            "for other inputs, give torch.export.export(module, inputs)"
        ) from None
    finally:
        for each in training:
            each.training = True
