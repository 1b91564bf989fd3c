"""Callbacks that keep a search in MLflow or TensorBoard; `report=` of `shine.evolve` and `callbacks=` of estimators."""

from shine.faces.callbacks.mlflow import MLflow
from shine.faces.callbacks.tensorboard import TensorBoard

__all__ = ["MLflow", "TensorBoard"]


def __dir__() -> list[str]:
    return sorted(__all__)
