"""What is shown: progress and plots."""
import io
import math
import sys

import numpy as np
import pytest

import drps
from conftest import clicks
from drps.progress import _Line, _Safe, _Tqdm, bar_for

HALF = drps.Progress("train", "steps", 5, 10, 2, 3, 1.0, 100.0, .25)


def test_a_line_shows_and_goes(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    line = _Line()
    line.show(HALF)
    assert "epoch 2/3, train: 50 %, loss 0.25" in out.getvalue()
    line.close()
    assert out.getvalue().endswith("\r")
    line.show(HALF._replace(total=0, epoch=0, train_loss=math.nan))
    assert "train: 5 steps" in out.getvalue()


def test_a_bar_of_tqdm(monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    out = io.StringIO()
    bar = _Tqdm(lambda **k: tqdm.tqdm(file=out, **k))
    bar.show(HALF)
    bar.show(HALF._replace(done=6))
    assert "epoch 2/3, train:  53%" in out.getvalue() and "16.0/30.0" in out.getvalue() and "loss 0.25" in out.getvalue()
    bar.show(HALF._replace(phase="evaluate", done=1, total=4))
    assert "epoch 2/3, evaluate:  53%" in out.getvalue()
    bar.show(drps.Progress("write", "bytes", 1, 4, 0, 0, 1.0, math.nan, math.nan))
    bar.close()
    assert "write:  25%" in out.getvalue()


def test_a_bar_that_fails_becomes_a_line(monkeypatch, caplog):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)

    def broken(**_):
        raise AttributeError("no style")

    bar = _Safe(_Tqdm(broken))
    assert bar.show(HALF) is False and bar.show(HALF._replace(done=6)) is False
    assert "epoch 2/3, train: 60 %" in out.getvalue()
    assert [r.getMessage() for r in caplog.records] == ["the progress bar has failed (AttributeError: no style): a plain line from now on"]
    bar.close()


def test_no_bar_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert bar_for(True) is None and bar_for(None) is None
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert bar_for(True) is not None
    assert bar_for(lambda p: p.done == 5).show(HALF) is True


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


def test_plots(tmp_path, axes):
    X, y = clicks(columns=2000)
    drps.index((X, y), tmp_path / "plan", test=clicks(300, columns=2000, seed=2), algo="fm")
    drps.train(tmp_path / "plan", tmp_path / "model", epochs=3, store="relay")
    drps.plot.history(tmp_path / "model", ax=axes)
    assert [line.get_label() for line in axes.lines] == ["train loss", "test loss"]
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [1, 2, 3])
    axes.clear()
    drps.plot.forecast(tmp_path / "model", ax=axes)
    assert len(axes.patches) == 6
    axes.clear()
    drps.plot.calibration(np.array([0, 0, 1, 1]), np.array([.1, .2, .8, .9]), bins=2, ax=axes)
    np.testing.assert_allclose(axes.lines[1].get_xdata(), [.15, .85])
