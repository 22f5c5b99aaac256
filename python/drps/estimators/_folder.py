"""Where an estimator's plan and model lie, and how they are pickled."""
from __future__ import annotations

import io
import logging
import os
import shutil
import tarfile
import tempfile
import weakref
from typing import Any, Optional

from .. import model as _model

#: Larger models are pickled as a path, not as bytes.
PICKLE_BYTES = 256 << 20

log = logging.getLogger("drps")


def _remove(path: str, owner: int) -> None:
    """A forked process does not remove what its parent uses."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _size(path: str) -> int:
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


class Folder:
    """A folder with a plan and the model trained from it; temporary unless the user named one.

    Parameters
    ----------
    work_dir : path or None
        The folder lies in it and stays. None: it lies below TMPDIR, and goes with the object.
    """

    def __init__(self, work_dir: Any = None) -> None:
        self.number = 0  # of the last run; its plan and model carry it
        self.keeps_state = False
        self._open: Optional[_model.Model] = None
        if work_dir is not None:
            os.makedirs(work_dir, exist_ok=True)
        self._own(tempfile.mkdtemp(prefix="drps-", dir=work_dir), work_dir is None)

    def _own(self, path: str, temporary: bool) -> None:
        self.path, self.temporary = os.path.abspath(path), temporary
        if temporary:
            self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())

    def plan(self, number: int) -> str:
        return os.path.join(self.path, f"plan-{number}")

    def model_path(self, number: Optional[int] = None) -> str:
        return os.path.join(self.path, f"model-{self.number if number is None else number}")

    def done(self, number: int) -> None:
        """Model `number` is whole: earlier ones go."""
        self._open = None
        old, self.number = self.number, number
        if old and old != number:
            for path in (self.plan(old), self.model_path(old), self.model_path(old) + ".checkpoint"):
                shutil.rmtree(path, ignore_errors=True)

    def drop_plan(self) -> None:
        """The plan is of no more use."""
        shutil.rmtree(self.plan(self.number), ignore_errors=True)

    @property
    def has_plan(self) -> bool:
        return os.path.isdir(self.plan(self.number))

    def model(self, memory: Any) -> _model.Model:
        """The model, opened once."""
        if self._open is None:
            self._open = _model.Model(self.model_path(), memory)
        return self._open

    def _parts(self) -> list[str]:
        """What is pickled: the model, and what partial_fit goes on from, where it was used."""
        paths = [self.model_path()]
        if self.keeps_state:
            paths += [self.plan(self.number), self.model_path() + ".checkpoint"]
        return [p for p in paths if os.path.exists(p)]

    def __getstate__(self) -> dict:
        state: dict[str, Any] = {"number": self.number, "keeps_state": self.keeps_state}
        if sum(map(_size, self._parts())) > PICKLE_BYTES:
            if self.temporary:
                self._finalizer.detach()
                self.temporary = False
                log.warning("%s: too large to be pickled as bytes: the pickle names this folder, which stays", self.path)
            return {**state, "path": self.path}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:  # files of checkpoints are linked
            for path in self._parts():
                tar.add(path, os.path.relpath(path, self.path))
        return {**state, "packed": packed.getvalue()}

    def __setstate__(self, state: dict) -> None:
        self.number, self.keeps_state, self._open = state["number"], state["keeps_state"], None
        if "path" in state:
            self._own(state["path"], False)
            return
        self._own(tempfile.mkdtemp(prefix="drps-"), True)
        with tarfile.open(fileobj=io.BytesIO(state["packed"])) as tar:
            for member in tar.getmembers():  # a pickle is trusted as code is; names are looked at all the same
                if os.path.isabs(member.name) or ".." in member.name.split("/") or not (member.isfile() or member.isdir()):
                    raise ValueError(f"pickled model: {member.name} does not belong there")
            tar.extractall(self.path)
