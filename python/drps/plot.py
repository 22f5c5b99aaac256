"""Plots, with matplotlib. Each function returns the axes that it has drawn on."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _history
from .tools import describe

__all__ = ["history", "forecast", "calibration"]


def _axes(ax: Optional[Any]) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def history(model: Any, metrics: tuple = ("train_loss", "test_loss"), ax: Optional[Any] = None) -> Any:
    """Curves by epoch.

    Parameters
    ----------
    model : as of :func:`drps.history`
    metrics : tuple of str
        Members of an epoch: "train_loss", "test_loss", "test_auc", "samples_per_s" ... Those without a value are left out.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    values = _history.history(model)
    ax = _axes(ax)
    for name in metrics:
        if name in values and not np.all(np.isnan(values[name].astype(float))):
            ax.plot(values["epoch"], values[name].astype(float), marker="o", markersize=3, label=name.replace("_", " "))
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss" if all("loss" in name for name in metrics) else "")
    ax.legend()
    return ax


def forecast(model: Any, ax: Optional[Any] = None) -> Any:
    """Bytes that the store read and wrote in each epoch, beside the plan's forecast of an epoch.

    Parameters
    ----------
    model : path of a model, or a result of :func:`drps.train` or :func:`drps.describe`
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    described = model if isinstance(model, dict) else describe(model)
    training = described.get("training", described)
    values = _history.history(training)
    ax = _axes(ax)
    mib = 1 / 2**20
    ax.bar(values["epoch"], values["read_bytes"] * mib, label="read")
    ax.bar(values["epoch"], values["written_bytes"] * mib, bottom=values["read_bytes"] * mib, label="written")
    told = training.get("forecast")
    if isinstance(told, dict) and told.get("read_bytes") is not None:
        ax.axhline((told["read_bytes"] + told["written_bytes"]) * mib, color="black", linestyle="--", label="forecast, both")
    ax.set_xlabel("epoch")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("MiB")
    ax.legend()
    return ax


def calibration(y_true: Any, probability: Any, bins: int = 10, ax: Optional[Any] = None) -> Any:
    """Share of positive samples against predicted probability, in bins of equally many samples.

    Parameters
    ----------
    y_true : array of 0 and 1, or of booleans
    probability : array of the same length
    bins : int
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    order = np.argsort(probability, kind="stable")
    parts = [p for p in np.array_split(order, bins) if len(p)]
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
    ax.plot(
        [np.mean(np.asarray(probability)[p]) for p in parts], [np.mean(np.asarray(y_true, float)[p]) for p in parts], marker="o"
    )
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("share of positive samples")
    return ax
