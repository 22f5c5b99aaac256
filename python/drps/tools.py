"""The tools as functions: compile data into a plan, train it, predict, recommend.

Keyword arguments are the options of the tool of that name with underscores in place of dashes, as :func:`drps.settings`
lists them; values are numbers, texts, True or False, and lists where an option may be given several times. Results are dicts:
what the tool prints with ``--json``.
"""
from __future__ import annotations

import os
import tempfile
from typing import Any, Callable, Optional, Sequence, Union

from . import _settings
from ._ffi import ffi
from ._library import check, lib, new_err, own_json, path_bytes, path_list, text_array
from ._loss import Loss, OwnLoss
from ._matrix import Matrix, is_samples
from ._watch import Watch
from .errors import StoppedError

__all__ = ["index", "train", "predict", "recommend", "describe"]

Path = Union[str, "os.PathLike[str]"]
ProgressLike = Union[bool, Callable[[Any], Any], None]


def index(data: Any, plan: Path, *, test: Any = None, progress: ProgressLike = None, **settings: Any) -> dict:
    """Compile data into a plan: the folder that :func:`train` runs, as often as one likes.

    Parameters
    ----------
    data : path, list of paths, or samples in memory
        Files in any format of ``drps-index``; or a CSR matrix with labels, as ``(X, y)``, ``(X, y, sample_weight)`` or a
        :class:`drps.Matrix`. Matrices are read as they are and not copied.
    plan : path
        Folder to make.
    test : as data, optional
        Held-out samples, which measure every epoch.
    progress : bool or callable, optional
        True shows a bar; a function gets each :class:`drps.Progress`, and stops the run by a true result.
    **settings
        Options of ``drps-index``: ``algo="lor"`` (needed), ``memory="1G"``, ``batch_size=500`` ...

    Returns
    -------
    dict
        What the plan has: ``samples``, ``rows``, ``batches``, ``forecast`` ...

    Examples
    --------
    >>> import drps, numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> X = np.eye(8, 2, dtype="f4"); y = np.array([1, 0] * 4)
    >>> drps.index((X, y), folder.name + "/plan", algo="lor")["samples"]
    8
    """
    err, out = new_err(), ffi.new("char **")
    if is_samples(data):
        matrix = Matrix.of(data)
        held = ffi.NULL if test is None else Matrix.of(test)
        s = _settings.make(_settings.INDEX, settings)
        call: tuple = (lib.drps_index_matrix, s, matrix.struct, held if held == ffi.NULL else held.struct)
    else:
        s = _settings.make(_settings.INDEX, {**settings, "test": None if test is None else path_list(test)})
        files, _kept = text_array([path_bytes(f) for f in path_list(data)])
        call = (lib.drps_index_files, s, files, len(path_list(data)))
    with Watch(progress=progress) as watch:
        watch.run(*call, path_bytes(plan), watch.struct, out, err=err)
    return own_json(out)


def train(
    plan: Path, model: Path, *, callback: Optional[Callable[[dict], Any]] = None, progress: ProgressLike = None,
    own_loss: Optional[Loss] = None, **settings: Any,
) -> dict:
    """Train a plan, and write the model.

    Parameters
    ----------
    plan, model : path
        The folder that :func:`index` made, and the folder to make.
    callback : callable, optional
        Called after each epoch with a dict: ``epoch``, ``train_loss``, ``test_loss`` ... A true result ends training.
    progress : bool or callable, optional
        As of :func:`index`.
    own_loss : callable, optional
        In place of the plan's loss: a function of scores, (n,) or (n, outputs), and labels, (n,), both float32, that returns the
        sum of the losses and their derivatives by the scores. Several threads may call it.
    **settings
        Options of ``drps-train``: ``epochs=3``, ``lr=0.1``, ``memory="512M"``, ``patience=2`` ...

    Returns
    -------
    dict
        What training did: ``epochs`` (a list with a dict each), ``store``, ``seconds`` ...

    Notes
    -----
    Where `callback` or `progress` ends training, and after Ctrl-C, the model of the steps that are done is written; Ctrl-C
    then raises KeyboardInterrupt.
    """
    err, out = new_err(), ffi.new("char **")
    s = _settings.make(_settings.TRAIN, settings)
    loss = None if own_loss is None else OwnLoss(own_loss)
    call: tuple = (lib.drps_train, s, path_bytes(plan), path_bytes(model))
    if loss is not None:
        call = (lib.drps_train_with_loss, *call[1:], loss.struct)
    try:
        with Watch(callback, progress) as watch:
            watch.run(*call, watch.struct, out, err=err)
    except StoppedError:
        result = own_json(out)
        if not result:
            raise
        return result
    except BaseException as why:
        own_json(out)
        if loss is not None and loss.raised is not None:
            raise loss.raised from why
        raise
    return own_json(out)


def predict(
    model: Path, data: Union[Path, Sequence[Path]], output: Optional[Path] = None, *, progress: ProgressLike = None, **settings: Any
) -> dict:
    """Score files, one line a sample, into the file `output`.

    Parameters
    ----------
    model : path
    data : path or list of paths
    output : path, optional
        File to write. It may be left out where the settings ask for ``metrics`` or a calibration alone.
    progress : bool or callable, optional
        As of :func:`index`.
    **settings
        Options of ``drps-predict``: ``metrics=True``, ``explain=5``, ``calibrate="platt"``, ``memory="256M"`` ...

    Returns
    -------
    dict
        ``test_samples``, ``test_unseen``; with ``metrics=True`` ``test_loss``, ``test_auc`` ...
    """
    if output is None and settings.get("metrics") and not (settings.get("calibration") or settings.get("calibrate")):
        with tempfile.TemporaryDirectory(prefix="drps-") as folder:
            return predict(model, data, os.path.join(folder, "scores"), progress=progress, **settings)
    err, out = new_err(), ffi.new("char **")
    s = _settings.make(_settings.PREDICT, settings)
    files, _kept = text_array([path_bytes(f) for f in path_list(data)])
    target = ffi.NULL if output is None else ffi.new("char[]", path_bytes(output))
    with Watch(progress=progress) as watch:
        watch.run(lib.drps_predict_files, s, path_bytes(model), files, len(path_list(data)), target, watch.struct, out, err=err)
    return own_json(out)


def recommend(model: Path, output: Path, *, progress: ProgressLike = None, **settings: Any) -> dict:
    """Write recommendations for many users into the file `output`, as ``drps-recommend`` does.

    Parameters
    ----------
    model, output : path
    progress : bool or callable, optional
        As of :func:`index`.
    **settings
        Options of ``drps-recommend``: ``number=10``, ``seen="ratings.tsv"``, ``users="users.txt"`` ...

    Returns
    -------
    dict
    """
    err, out = new_err(), ffi.new("char **")
    s = _settings.make(_settings.RECOMMEND, settings)
    with Watch(progress=progress) as watch:
        watch.run(lib.drps_recommend_files, s, path_bytes(model), path_bytes(output), watch.struct, out, err=err)
    return own_json(out)


def describe(path: Path) -> dict:
    """What a plan or a model is, as ``drps-stat --json`` prints it.

    Parameters
    ----------
    path : path of a plan or a model

    Returns
    -------
    dict
        Of a plan its ``forecast``, of a model how it was trained. :func:`drps.history` and :func:`drps.forecast` have the
        same as arrays.
    """
    err, out = new_err(), ffi.new("char **")
    check(lib.drps_describe(path_bytes(path), out, err), err)
    return own_json(out)
