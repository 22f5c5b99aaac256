"""Settings: keyword arguments of Python as the options of the tools."""
from __future__ import annotations

import difflib
import os
from typing import Any, Iterator, Mapping

from ._ffi import ffi
from ._library import check, lib, new_err, path_bytes
from .errors import SettingError

INDEX, TRAIN, PREDICT, RECOMMEND = "INDEX", "TRAIN", "PREDICT", "RECOMMEND"


def _texts(name: str, value: Any) -> Iterator[bytes]:
    """A value as the texts that a tool takes: several of a list, one for each time that the option is given."""
    if value is None:
        return
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _texts(name, v)
    elif isinstance(value, Mapping):  # columns={"zip": "category"}
        yield ",".join(f"{k}:{v}" for k, v in value.items()).encode()
    elif isinstance(value, (bool,)) or type(value).__name__ == "bool_":
        yield b"1" if value else b"0"
    elif isinstance(value, (bytes, os.PathLike)):
        yield path_bytes(value)
    elif isinstance(value, str):
        yield os.fsencode(value)
    else:
        yield (repr(float(value)) if isinstance(value, float) or hasattr(value, "dtype") and value.dtype.kind == "f" else str(value)).encode()


def make(task: str, values: Mapping[str, Any]) -> Any:
    """struct drps_settings of a task, freed with the object. Names have underscores in place of dashes."""
    err = new_err()
    out = ffi.new("struct drps_settings **")
    check(lib.drps_settings_new(getattr(lib, "DRPS_TASK_" + task), out, err), err)
    settings = ffi.gc(out[0], lib.drps_settings_free)
    for name, value in values.items():
        for text in _texts(name, value):
            code = lib.drps_settings_set(settings, name.rstrip("_").replace("_", "-").encode(), text, err)
            if code < 0:
                _refuse_unknown(task, name)
            check(code, err)
    return settings


def _refuse_unknown(task: str, name: str) -> None:
    """A name that no setting has, told of as Python writes names."""
    known = names(task)
    if name.rstrip("_") not in known:
        like = difflib.get_close_matches(name, known, 1, 0.75)
        raise SettingError(
            f"there is no setting {name!r} of drps-{task.lower()}"
            + (f"; did you mean {like[0]!r}?" if like else f"; drps.settings({task.lower()!r}) lists them")
        )


def names(task: str) -> dict[str, str]:
    """The settings of a task ("index", "train", "predict", "recommend"), and what each does.

    Examples
    --------
    >>> "epochs" in names("train")
    True
    """
    if task.upper() not in (INDEX, TRAIN, PREDICT, RECOMMEND):
        raise SettingError(f"there are no settings of {task!r}, but of 'index', 'train', 'predict' and 'recommend'")
    number = getattr(lib, "DRPS_TASK_" + task.upper())
    found: dict[str, str] = {}
    help_out = ffi.new("const char **")
    while True:
        name = lib.drps_settings_name(number, len(found), help_out)
        if name == ffi.NULL:
            return found
        text = ffi.string(help_out[0]).decode() if help_out[0] != ffi.NULL else ""
        found[ffi.string(name).decode().replace("-", "_")] = text
