"""Finds libdrps, and calls it: results or exceptions."""
from __future__ import annotations

import json
import os
from typing import Any

from ._ffi import ffi
from .errors import LibraryMissingError, of_code

NAME = "libdrps.so.0"


def _load() -> Any:
    path = os.environ.get("DRPS_LIBRARY")
    try:
        return ffi.dlopen(path or NAME)
    except OSError as why:
        advice = (
            "DRPS_LIBRARY names it: correct or unset that" if path else
            "install the package libdrps0, or set DRPS_LIBRARY to the file that 'cmake -DBUILD_SHARED_LIBS=ON' builds"
        )
        raise LibraryMissingError(f"drps: cannot load the C library: {why}; {advice}") from None


lib = _load()


def new_err() -> Any:
    """A struct drps_err, empty."""
    return ffi.new("struct drps_err *")


def check(code: int, err: Any) -> int:
    """Returns a result that is no failure; raises what a failure is."""
    if code < 0:
        raise of_code(code, ffi.string(err.text).decode("utf-8", "replace"))
    return code


def own_text(out: Any) -> str:
    """The text of a `char **` that the library has filled; it is freed. Empty where there is none."""
    if out[0] == ffi.NULL:
        return ""
    try:
        return ffi.string(out[0]).decode("utf-8", "replace")
    finally:
        lib.drps_free(out[0])
        out[0] = ffi.NULL


def own_json(out: Any) -> dict:
    """The same, as a dict."""
    text = own_text(out)
    return json.loads(text) if text else {}


def path_bytes(path: Any) -> bytes:
    """A path as the system has it."""
    return os.fsencode(os.fspath(path))


def path_list(files: Any) -> list:
    """One path or several, as a list."""
    return [files] if isinstance(files, (str, bytes, os.PathLike)) else list(files)


def text_array(texts: list) -> tuple:
    """A `const char *[]` of bytes, and what has to live as long."""
    kept = [ffi.new("char[]", t) for t in texts]
    return ffi.new("const char *[]", kept or [ffi.NULL]), kept


def version() -> str:
    """The version of the C library."""
    return ffi.string(lib.drps_version()).decode()
