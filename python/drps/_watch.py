"""Watching a call of the library: messages to logging, progress, epochs, and Ctrl-C.

The library calls back on the thread that called it, some times a second. Python handles Ctrl-C when such a callback runs: the
run is asked to stop, and KeyboardInterrupt is raised when the library has returned. So training has written the model so far
by then. An exception of a callback is handled the same way.
"""
from __future__ import annotations

import json
import logging
import signal
import threading
from typing import Any, Callable, Optional

from ._ffi import ffi
from ._library import check
from .progress import Progress, bar_for

log = logging.getLogger("drps")
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class Watch:
    """Callbacks of one call. Use it as ``with Watch(...) as watch: watch.run(function, ...)``.

    Parameters
    ----------
    callback : callable, optional
        Called with a dict after each epoch; a true result stops training.
    progress : bool or callable, optional
        True: a bar, in a terminal or a notebook. A callable gets :class:`drps.Progress`; a true result stops the run.
    """

    def __init__(self, callback: Optional[Callable[[dict], Any]] = None, progress: Any = None) -> None:
        self._callback = callback
        self._progress = bar_for(progress)
        self._raised: Optional[BaseException] = None
        self._stop = ffi.new("int *")
        self._kept = (
            ffi.callback("void(void *, enum drps_level, const char *)", self._on_message),
            ffi.callback("int(void *, const struct drps_watch_progress *)", self._on_progress, error=1, onerror=self._on_error),
            ffi.callback("int(void *, const char *)", self._on_epoch, error=1, onerror=self._on_error),
        )
        self.struct = ffi.new("struct drps_watch *")
        self.struct.message, self.struct.progress, self.struct.epoch = self._kept
        self.struct.stop = self._stop

    def __enter__(self) -> "Watch":
        """From here on Ctrl-C is noted, not raised in the middle of a callback, unless a program handles it its own way."""
        self._usual = None
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._usual = signal.signal(signal.SIGINT, lambda *_: self._on_error(None, KeyboardInterrupt(), None))
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._usual is not None:
            signal.signal(signal.SIGINT, self._usual)
        if self._progress is not None:
            self._progress.close()
        if kind is None and self._raised is not None:  # it came as the library returned
            raise self._raised

    def run(self, function: Callable[..., int], *arguments: Any, err: Any) -> int:
        """Calls the library. What a callback raised comes first, then what failed."""
        code = function(*arguments, err)
        if self._raised is not None:
            raise self._raised
        return check(code, err)

    def _on_error(self, kind: Any, why: BaseException, _trace: Any) -> None:
        """Keeps the first exception of a callback; its result is then 1, which stops the run."""
        if self._raised is None:
            self._raised = why
        self._stop[0] = 1

    def _on_message(self, _ctx: Any, level: int, text: Any) -> None:
        log.log(_LEVELS[min(int(level), 3)], "%s", ffi.string(text).decode("utf-8", "replace"))

    def _on_progress(self, _ctx: Any, p: Any) -> int:
        if self._progress is None:
            return 0
        return 1 if self._progress.show(Progress(
            phase=_text(p.phase), unit=_text(p.unit), done=p.done, total=p.total, epoch=p.epoch, epochs=p.epochs,
            seconds=p.seconds, samples_per_s=p.samples_per_s, train_loss=p.train_loss,
        )) else 0

    def _on_epoch(self, _ctx: Any, text: Any) -> int:
        return 1 if self._callback is not None and self._callback(json.loads(_text(text))) else 0


def _text(chars: Any) -> str:
    return "" if chars == ffi.NULL else ffi.string(chars).decode("utf-8", "replace")
