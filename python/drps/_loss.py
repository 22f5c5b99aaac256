"""A loss of the user's own, as the library calls it."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._ffi import ffi

Loss = Callable[[np.ndarray, np.ndarray], "tuple[float, np.ndarray]"]


class OwnLoss:
    """struct drps_callbacks of a function (scores, labels) -> (sum of losses, derivatives by the scores).

    The first exception of the function is kept in `raised`; the loss is then not a number, which ends training.
    """

    def __init__(self, function: Loss) -> None:
        self._function = function
        self.raised: Any = None
        self._call = ffi.callback(
            "double(void *, size_t, size_t, const float *, const float *, float *)", self._compute,
            error=float("nan"), onerror=self._on_error,
        )
        self.struct = ffi.new("struct drps_callbacks *")
        self.struct.compute_svg = self._call

    def _compute(self, _ctx: Any, n: int, outputs: int, scores: Any, labels: Any, u: Any) -> float:
        shape = (n,) if outputs == 1 else (n, outputs)
        loss, slopes = self._function(_floats(scores, n * outputs).reshape(shape), _floats(labels, n))
        if u != ffi.NULL:
            slopes = np.asarray(slopes, dtype=np.float32)
            if slopes.shape != shape:
                raise ValueError(f"loss: the derivatives have the shape {slopes.shape}, the scores {shape}")
            _floats(u, n * outputs)[:] = slopes.ravel()
        return float(loss)

    def _on_error(self, _kind: Any, why: BaseException, _trace: Any) -> None:
        if self.raised is None:
            self.raised = why


def _floats(pointer: Any, n: int) -> np.ndarray:
    return np.frombuffer(ffi.buffer(pointer, 4 * n), dtype=np.float32)
