"""Exceptions. All of the library's errors are :class:`Error`; its text says what failed, where, and what to do."""
from __future__ import annotations

import errno

__all__ = [
    "Error", "NotFoundError", "SettingError", "DataError", "MemoryBudgetError", "ExistsError", "DamagedError",
    "StoppedError", "LibraryMissingError",
]

_CONFIG = -4099  # DRPS_E_CONFIG of the library


class Error(Exception):
    """A call of the library failed.

    Attributes
    ----------
    code : int
        Negative: ``-errno`` of the system, or a code of drps below -4095.
    """

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)


class NotFoundError(Error, LookupError):
    """There is no such file, model, row or user."""


class ExistsError(Error, FileExistsError):
    """There is something at the place of the result; ``force=True`` replaces it."""

    __str__ = Exception.__str__


class SettingError(Error, ValueError):
    """There is no such setting, a value is bad, or settings do not go together."""

    def __init__(self, text: str, code: int = _CONFIG) -> None:
        super().__init__(text, code)


class DataError(Error, ValueError):
    """Samples are malformed: the text says which."""


class MemoryBudgetError(Error, MemoryError):
    """The memory given is too little; the text says how much is enough."""


class DamagedError(Error):
    """A plan or a model is damaged, or of another version."""


class StoppedError(Error):
    """A callback asked to stop. After training the model so far is there."""


class LibraryMissingError(Error, ImportError):
    """libdrps.so.0 was not found."""


_KINDS = {
    -4096: NotFoundError, -errno.ENOENT: NotFoundError, -errno.EEXIST: ExistsError, _CONFIG: SettingError, -4098: DataError,
    -4101: MemoryBudgetError, -errno.ENOMEM: MemoryBudgetError, -4097: DamagedError, -4104: DamagedError, -4102: StoppedError,
}


def of_code(code: int, text: str) -> Error:
    """The exception of a code of the library."""
    if code == -errno.EEXIST and text.endswith("have it replaced"):
        text += " (force=True)"
    return _KINDS.get(code, Error)(text or f"error {code}", code)
