"""Progress of a run: a bar in a terminal or a notebook (tqdm where it is installed), else a plain line."""
from __future__ import annotations

import logging
import math
import sys
from typing import Any, Callable, NamedTuple, Optional

__all__ = ["Progress"]

log = logging.getLogger("drps")


class Progress(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    phase, unit : str
        What is done ("train", "batch" ...), and what is counted.
    done, total : int
        `total` is 0 where it is not known.
    epoch, epochs : int
        Of training, from 1; else 0.
    seconds, samples_per_s, train_loss : float
        NaN where they do not apply.
    """

    phase: str
    unit: str
    done: int
    total: int
    epoch: int
    epochs: int
    seconds: float
    samples_per_s: float
    train_loss: float

    @property
    def title(self) -> str:
        """The phase, with the epoch of training."""
        return f"epoch {self.epoch}/{self.epochs}, {self.phase}" if self.epoch else self.phase


class _Call:
    """Hands progress to a function of the user's."""

    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self._function = function

    def show(self, p: Progress) -> bool:
        return bool(self._function(p))

    def close(self) -> None:
        pass


class _Tqdm:
    """A bar of tqdm for each phase; one for all epochs of training."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._phase = ""

    def show(self, p: Progress) -> bool:
        phase = "train" if p.epoch else p.phase
        done, total = p.done, p.total
        if p.epoch:
            done, total = (p.epoch - 1) * p.total + p.done, p.epochs * p.total
        if self._bar is None or phase != self._phase:
            self.close()
            self._phase = phase
            self._bar = self._tqdm(
                total=total or None, initial=done, desc=p.title, unit=" " + p.unit, unit_scale=True, leave=False
            )
        if p.phase == phase:  # not where test samples are evaluated between two epochs
            self._bar.n = done
        self._bar.set_description_str(p.title, refresh=False)
        if not math.isnan(p.train_loss):
            self._bar.set_postfix_str(f"loss {p.train_loss:.6g}", refresh=False)
        self._bar.refresh()
        return False

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Safe:
    """A bar, or a plain line from when the bar fails: tqdm and widgets of some versions do not fit, which ends no run."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def _instead(self, why: Exception) -> None:
        log.warning("the progress bar has failed (%s: %s): a plain line from now on", type(why).__name__, why)
        self._bar = _Line()

    def show(self, p: Progress) -> bool:
        try:
            return self._bar.show(p)
        except Exception as why:
            self._instead(why)
            return self._bar.show(p)

    def close(self) -> None:
        try:
            self._bar.close()
        except Exception as why:
            self._instead(why)


class _Line:
    """One line on standard error that is written over."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, p: Progress) -> bool:
        share = f"{100 * p.done / p.total:.0f} %" if p.total else f"{p.done:,} {p.unit}"
        loss = "" if math.isnan(p.train_loss) else f", loss {p.train_loss:.6g}"
        text = f"{p.title}: {share}{loss}"
        self._write("\r" + text.ljust(self._width))
        self._width = len(text)
        return False

    def close(self) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def bar_for(progress: Any) -> Optional[Any]:
    """What shows progress: of True a bar, of a callable that, else nothing. A bar needs a terminal or a notebook."""
    if callable(progress):
        return _Call(progress)
    if not progress:
        return None
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line()
    return _Safe(_Tqdm(tqdm))
