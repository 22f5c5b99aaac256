"""How a model was trained, and what a plan's forecast says, as arrays."""
from __future__ import annotations

from typing import Any, Union

import numpy as np

from .model import Model
from .tools import Path, describe

__all__ = ["history", "forecast"]


def _arrays(rows: list) -> dict[str, np.ndarray]:
    """A list of dicts as an array of each member; None becomes NaN."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        name: np.array([np.nan if row.get(name) is None else row[name] for row in rows])
        for name in names if not any(isinstance(row.get(name), (list, dict)) for row in rows)
    }


def history(model: Union[Path, dict, Any]) -> dict[str, np.ndarray]:
    """The epochs of a run as arrays.

    Parameters
    ----------
    model : path of a model, a :class:`drps.Model`, result of :func:`drps.train` or :func:`drps.describe`, or a fitted estimator

    Returns
    -------
    dict of numpy.ndarray
        ``epoch``, ``train_loss``, ``test_loss``, ``samples_per_s``, ``read_bytes`` ... with an element an epoch; NaN where
        there is no value.

    Examples
    --------
    >>> h = history({"epochs": [{"epoch": 1, "train_loss": .5, "test_loss": None}, {"epoch": 2, "train_loss": .4, "test_loss": None}]})
    >>> h["train_loss"].tolist(), h["test_loss"].tolist()
    ([0.5, 0.4], [nan, nan])
    """
    return _arrays(_found(model, "epochs"))


def forecast(plan: Union[Path, dict]) -> dict[str, np.ndarray]:
    """What an epoch would move, by store and by memory for rows.

    Parameters
    ----------
    plan : path of a plan, or result of :func:`drps.index` or :func:`drps.describe`

    Returns
    -------
    dict of numpy.ndarray
        ``store``, ``memory_bytes``, ``feasible``, ``read_bytes``, ``written_bytes``, ``ios`` ... The store is "resident",
        "relay", or "blocks", which are the stores file, rocksdb and leveldb.
    """
    names = {"pib": "blocks"}  # of the file's word, as drps-stat prints it
    return _arrays([{**row, "store": names.get(row["store"], row["store"])} for row in _found(plan, "forecast")])


def _found(source: Any, name: str) -> list:
    """The member `name` of a description, wherever it lies in it."""
    if hasattr(source, "training_"):
        source = source.training_
    elif isinstance(source, Model):
        source = source.path
    described = source if isinstance(source, dict) else describe(source)
    rows = described.get(name) or described.get("training", {}).get(name)
    if not rows:
        kind = described.get("kind", "another result").replace("drps-", "a ")
        raise ValueError(f"{'epochs are of a trained model' if name == 'epochs' else 'a forecast is of a plan'}; this is {kind}")
    return rows
